/* SPDX-License-Identifier: Apache-2.0 */
/* Attention: see struct mu_attention. */
#include "layer.h"

/* The reason why there can be no such attention; NULL: there can. */
static const char *fault(const struct mu_attention *a, const struct mu_shape *in)
{
	const int kv = a->kv_heads ? a->kv_heads : a->heads;
	const size_t parts = (size_t)(a->heads + 2 * kv);

	if (a->heads < 1 || kv < 1 || a->heads % kv != 0)
		return "heads must be at least 1, and a multiple of kv_heads";
	if (in->dims[3] != 1)
		return "the last dimension of the input must be 1";
	if (in->dims[1] % parts != 0)
		return "the channels of the input must be a multiple of heads + 2 kv_heads";
	if (!(a->rotary >= 0) || (a->rotary > 0 && in->dims[1] / parts % 2 != 0))
		return "rotary needs an even number of channels per head";
	if (!(a->dropout >= 0 && a->dropout < 1))
		return "dropout must be at least 0 and below 1";
	return NULL;
}

static int shape(struct net_draft *d)
{
	const struct mu_attention *a = d->layer->attr;
	const char *why = fault(a, d->in);
	struct mu_attention_sizes sizes;
	char text[96];

	if (why)
		return mu_layer_fail(d->net, "has %d heads, %d kv_heads, an input of %s: %s",
				     a->heads, a->kv_heads ? a->kv_heads : a->heads,
				     mu_shape_text(d->in, text, sizeof text), why);
	sizes = mu_attention_sizes(a, d->in);
	d->out.dims[1] = sizes.heads * sizes.d;
	return 0;
}

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
	.shape = shape,
	.macs = macs,
	.can_remember = is_causal,
	.past = past,
};

int mu_net_attention(struct mu_net *net, int in, const struct mu_attention *attr, const char *name)
{
	return mu_net_add_one(net, &mu_layer_attention, in, attr, name);
}

bool mu_net_attends(const struct mu_net *net)
{
	for (int i = 0; i < net->n_layers; i++)
		if (net->layers[i].kind == &mu_layer_attention)
			return true;
	return false;
}
