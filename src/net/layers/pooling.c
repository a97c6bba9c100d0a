/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling: see struct mu_pooling. */
#include "layer.h"

static bool is_maximum(const void *attr)
{
	return !((const struct mu_pooling *)attr)->average;
}

const struct mu_layer_kind mu_layer_pooling = {
	.op = MU_OP_POOLING,
	.attr_nbytes = sizeof(struct mu_pooling),
	.ndims = 4,
	.traits = MU_LAYER_INPUT_UNUSED | MU_LAYER_OUTPUT_UNUSED | MU_LAYER_LENDS_OUTPUT,
	.commutes = is_maximum,
};
