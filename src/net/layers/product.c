/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise product of two tensors. Backward reads both, so that neither is overwritten. */
#include "layer.h"
#include "net/onnx/onnx.h"

static int shape(struct net_draft *d)
{
	const struct mu_shape *s = &d->net->tensors[d->layer->inputs[1]].shape;
	char a[96], b[96];

	return mu_shape_equal(d->in, s)
		       ? 0
		       : mu_layer_fail(d->net, "needs inputs of one shape, not %s and %s",
				       mu_shape_text(d->in, a, sizeof a),
				       mu_shape_text(s, b, sizeof b));
}

static void onnx(struct onnx_layer *o)
{
	mu_onnx_node(o, "Mul", mu_onnx_in(o, 0), mu_onnx_in(o, 1));
}

const struct mu_layer_kind mu_layer_product = {
	.op = MU_OP_PRODUCT,
	.min_inputs = 2,
	.traits = MU_LAYER_OUTPUT_UNUSED | MU_LAYER_STEPWISE,
	.restored = 1u << MU_RECOMPUTE_ATTENTION | 1u << MU_RECOMPUTE_ALL,
	.shape = shape,
	.onnx = onnx,
};

int mu_net_product(struct mu_net *net, int a, int b, const char *name)
{
	const struct net_spec spec = {
		&mu_layer_product, name, .n_inputs = 2, .inputs = (const int[]){a, b}};

	return mu_net_add(net, &spec);
}
