/* SPDX-License-Identifier: Apache-2.0 */
/* Local response normalisation: see struct mu_lrn. */
#include "layer.h"

const struct mu_layer_kind mu_layer_lrn = {
	.op = MU_OP_LRN,
	.attr_nbytes = sizeof(struct mu_lrn),
	.ndims = 4,
	.traits = MU_LAYER_OUTPUT_UNUSED | MU_LAYER_STEPWISE,
};
