/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout: see struct mu_dropout. */
#include "layer.h"

const struct mu_layer_kind mu_layer_dropout = {
	.op = MU_OP_DROPOUT,
	.attr_nbytes = sizeof(struct mu_dropout),
	.traits = MU_LAYER_INPUT_UNUSED | MU_LAYER_OUTPUT_UNUSED | MU_LAYER_STEPWISE,
	.restored = 1u << MU_RECOMPUTE_ALL,
};
