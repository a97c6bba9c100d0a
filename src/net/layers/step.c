/* SPDX-License-Identifier: Apache-2.0 */
/* One step of a sequence: see struct mu_step. */
#include "layer.h"

const struct mu_layer_kind mu_layer_step = {
	.op = MU_OP_STEP,
	.attr_nbytes = sizeof(struct mu_step),
	.ndims = 4,
	.traits = MU_LAYER_INPUT_UNUSED | MU_LAYER_OUTPUT_UNUSED,
};
