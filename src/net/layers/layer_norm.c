/* SPDX-License-Identifier: Apache-2.0 */
/* Layer normalisation: see struct mu_layer_norm. */
#include "layer.h"

const struct mu_layer_kind mu_layer_layer_norm = {
	.op = MU_OP_LAYER_NORM,
	.attr_nbytes = sizeof(struct mu_layer_norm),
	.traits = MU_LAYER_OUTPUT_UNUSED | MU_LAYER_STEPWISE,
	.restored = 1u << MU_RECOMPUTE_ATTENTION | 1u << MU_RECOMPUTE_ALL,
};
