/* SPDX-License-Identifier: Apache-2.0 */
/* Learned positions: see struct mu_positions. */
#include "layer.h"

static bool has_no_token(const struct mu_op *op)
{
	return op->n_params == 1;
}

/* It counts the steps only. */
static size_t past(const struct mu_op *op, size_t most)
{
	(void)op;
	(void)most;
	return 0;
}

const struct mu_layer_kind mu_layer_positions = {
	.op = MU_OP_POSITIONS,
	.attr_nbytes = sizeof(struct mu_positions),
	.ndims = 4,
	.traits = MU_LAYER_INPUT_UNUSED | MU_LAYER_OUTPUT_UNUSED,
	.can_remember = has_no_token,
	.past = past,
};
