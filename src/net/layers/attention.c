/* SPDX-License-Identifier: Apache-2.0 */
/* Attention: see struct mu_attention. */
#include "layer.h"

/* For each step and all that it sees, a product with keys and one with values. */
static double macs(const struct net_layer *l, const struct mu_shape *out)
{
	const struct mu_attention *a = l->attr;
	const double steps = (double)out->dims[2];

	return 2 * (double)out->dims[1] * steps * (a->causal ? (steps + 1) / 2 : steps);
}

static bool is_causal(const struct mu_op *op)
{
	return ((const struct mu_attention *)op->attr)->causal;
}

/* Keys and values of `most` steps, and scores. */
static size_t past(const struct mu_op *op, size_t most)
{
	const struct mu_attention_sizes s = mu_attention_sizes(op->attr, &op->inputs[0]->shape);

	return most * (s.n * 2 * s.kv * s.d + 2);
}

/* A fused one reads its output in backward. */
const struct mu_layer_kind mu_layer_attention = {
	.op = MU_OP_ATTENTION,
	.attr_nbytes = sizeof(struct mu_attention),
	.ndims = 4,
	.restored = 1u << MU_RECOMPUTE_ATTENTION | 1u << MU_RECOMPUTE_ALL,
	.macs = macs,
	.can_remember = is_causal,
	.past = past,
};
