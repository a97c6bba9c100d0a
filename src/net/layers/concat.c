/* SPDX-License-Identifier: Apache-2.0 */
/* Concatenation along channels. */
#include "layer.h"
#include "net/onnx/onnx.h"

static int shape(struct net_draft *d)
{
	char a[96], b[96];

	for (int i = 1; i < d->layer->n_inputs; i++) {
		struct mu_shape s = d->net->tensors[d->layer->inputs[i]].shape;
		const size_t c = s.dims[1];

		s.dims[1] = d->in->dims[1];
		if (!mu_shape_equal(d->in, &s))
			return mu_layer_fail(
				d->net, "needs inputs that differ in channels only, not %s and %s",
				mu_shape_text(d->in, a, sizeof a),
				mu_shape_text(&d->net->tensors[d->layer->inputs[i]].shape, b,
					      sizeof b));
		d->out.dims[1] += c;
	}
	return 0;
}

static void onnx(struct onnx_layer *o)
{
	const char **all = mu_onnx_keep(o->onnx, ((size_t)o->layer->n_inputs + 1) * sizeof *all);

	if (!all)
		return;
	for (int i = 0; i < o->layer->n_inputs; i++)
		all[i] = mu_onnx_in(o, i);
	all[o->layer->n_inputs] = NULL;
	mu_onnx_int(o, "axis", 1);
	mu_onnx_add_node(o, "Concat", 1, all);
}

const struct mu_layer_kind mu_layer_concat = {
	.op = MU_OP_CONCAT,
	.min_inputs = 2,
	.traits = MU_LAYER_INPUT_UNUSED | MU_LAYER_OUTPUT_UNUSED | MU_LAYER_STEPWISE |
		  MU_LAYER_LENDS_OUTPUT,
	.shape = shape,
	.onnx = onnx,
};

int mu_net_concat(struct mu_net *net, int n, const int *ins, const char *name)
{
	return mu_net_add(
		net, &(struct net_spec){
			     .kind = &mu_layer_concat, .name = name, .n_inputs = n, .inputs = ins});
}
