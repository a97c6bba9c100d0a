/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise sum. With MU_RECOMPUTE_ALL a residual network keeps its sums alone. */
#include "layer.h"
#include "net/onnx/onnx.h"

static int shape(struct net_draft *d)
{
	char a[96], b[96];

	for (int i = 1; i < d->layer->n_inputs; i++) {
		const struct mu_shape *s = &d->net->tensors[d->layer->inputs[i]].shape;

		if (!mu_shape_equal(d->in, s))
			return mu_layer_fail(d->net, "needs inputs of one shape, not %s and %s",
					     mu_shape_text(d->in, a, sizeof a),
					     mu_shape_text(s, b, sizeof b));
	}
	return 0;
}

static void onnx(struct onnx_layer *o)
{
	mu_onnx_pass(o);
	for (int i = 1; i < o->layer->n_inputs; i++)
		mu_onnx_node(o, "Add", o->value, mu_onnx_in(o, i));
}

const struct mu_layer_kind mu_layer_sum = {
	.op = MU_OP_SUM,
	.min_inputs = 2,
	.traits = MU_LAYER_INPUT_UNUSED | MU_LAYER_OUTPUT_UNUSED | MU_LAYER_STEPWISE |
		  MU_LAYER_ABSORBS_ACTIVATION | MU_LAYER_IS_ADDITION,
	.restored = 1u << MU_RECOMPUTE_AUTO | 1u << MU_RECOMPUTE_ATTENTION,
	.shape = shape,
	.onnx = onnx,
};

int mu_net_sum(struct mu_net *net, int n, const int *ins, const char *name)
{
	return mu_net_add(
		net, &(struct net_spec){
			     .kind = &mu_layer_sum, .name = name, .n_inputs = n, .inputs = ins});
}
