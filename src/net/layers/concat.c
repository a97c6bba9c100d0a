/* SPDX-License-Identifier: Apache-2.0 */
/* Concatenation along channels. */
#include "layer.h"

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

const struct mu_layer_kind mu_layer_concat = {
	.op = MU_OP_CONCAT,
	.min_inputs = 2,
	.traits = MU_LAYER_INPUT_UNUSED | MU_LAYER_OUTPUT_UNUSED | MU_LAYER_STEPWISE |
		  MU_LAYER_LENDS_OUTPUT,
	.shape = shape,
};

int mu_net_concat(struct mu_net *net, int n, const int *ins, const char *name)
{
	return mu_net_add(
		net, &(struct net_spec){
			     .kind = &mu_layer_concat, .name = name, .n_inputs = n, .inputs = ins});
}
