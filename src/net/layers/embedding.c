/* SPDX-License-Identifier: Apache-2.0 */
/* Embedding: see struct mu_embedding. */
#include "layer.h"
#include "net/onnx/onnx.h"

static int shape(struct net_draft *d)
{
	const struct mu_embedding *a = d->layer->attr;

	if (d->in->ndims != 4 || d->in->dims[1] != 1)
		return mu_layer_needs(d->net, "(n, 1, h, w) of whole numbers", d->in);
	if (a->inputs < 1 || a->units < 1)
		return mu_layer_fail(d->net, "has %d numbers in %d units; both must be at least 1",
				     a->inputs, a->units);
	d->out.dims[1] = (size_t)a->units;
	mu_net_add_param(d->net, "weight", mu_layer_matrix((size_t)a->inputs, d->out.dims[1]), 0);
	return 0;
}

/* Gather reads whole numbers, of rows; the units come last. */
static void onnx(struct onnx_layer *o)
{
	const long rows[] = {0, (long)mu_shape_positions(o->in)};
	const char *x = mu_onnx_in(o, 0), *table = mu_onnx_param(o, 0);

	if (!mu_onnx_reads_words(o)) {
		mu_onnx_int(o, "to", ONNX_INT64);
		x = mu_onnx_node(o, "Cast", x);
		x = mu_onnx_reshape(o, x, 2, rows);
	}
	mu_onnx_node(o, "Gather", table, x);
	mu_onnx_transpose(o, o->value, 3, (const int[]){0, 2, 1});
	mu_onnx_reshape_to(o, o->value, o->out);
}

const struct mu_layer_kind mu_layer_embedding = {
	.op = MU_OP_EMBEDDING,
	.attr_nbytes = sizeof(struct mu_embedding),
	.traits = MU_LAYER_OUTPUT_UNUSED | MU_LAYER_STEPWISE | MU_LAYER_HAS_TABLE,
	.shape = shape,
	.onnx = onnx,
};

int mu_net_embedding(struct mu_net *net, int in, const struct mu_embedding *attr, const char *name)
{
	return mu_net_add_one(net, &mu_layer_embedding, in, attr, name);
}
