/* SPDX-License-Identifier: Apache-2.0 */
/* Learned positions: see struct mu_positions. */
#include "layer.h"
#include "net/onnx/onnx.h"

static int shape(struct net_draft *d)
{
	const struct mu_positions *a = d->layer->attr;
	const size_t steps = mu_shape_positions(d->in) + (a->token ? 1 : 0);
	const size_t most = a->most_steps ? (size_t)a->most_steps : steps;

	if (a->most_steps < 0 || most < steps)
		return mu_layer_fail(d->net, "has a sequence of %zu steps; there are %d positions",
				     steps, a->most_steps);
	d->out.dims[2] = steps;
	d->out.dims[3] = 1;
	mu_net_add_param(d->net, "weight", mu_layer_matrix(most, d->in->dims[1]), 0);
	if (a->token)
		mu_net_add_param(d->net, "token", mu_layer_vector(d->in->dims[1]), 0);
	return 0;
}

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

/* What is added at each step, (1, c, steps, 1). A token's step is one of zeros before. */
static void onnx(struct onnx_layer *o)
{
	const struct mu_positions *a = o->layer->attr;
	const size_t c = o->out->dims[1], steps = o->out->dims[2];
	const size_t dims[] = {1, c, steps, 1};
	const long row[] = {0, (long)c, (long)mu_shape_positions(o->in), 1};
	const long pads[] = {0, 0, 1, 0, 0, 0, 0, 0};
	const float *weight = mu_onnx_values(o, o->layer, 0),
		    *token = a->token ? mu_onnx_values(o, o->layer, 1) : NULL;
	float *added = mu_onnx_room(o, c * steps);

	for (size_t k = 0; k < c && added && weight; k++) {
		for (size_t t = 0; t < steps; t++)
			added[k * steps + t] = weight[t * c + k];
		if (token)
			added[k * steps] += token[k];
	}
	mu_onnx_reshape(o, mu_onnx_in(o, 0), 4, row);
	if (a->token)
		mu_onnx_node(o, "Pad", o->value, mu_onnx_whole(o, pads, 8));
	mu_onnx_node(o, "Add", o->value, mu_onnx_floats(o, "weight", added, 4, dims));
}

const struct mu_layer_kind mu_layer_positions = {
	.op = MU_OP_POSITIONS,
	.attr_nbytes = sizeof(struct mu_positions),
	.ndims = 4,
	.traits = MU_LAYER_INPUT_UNUSED | MU_LAYER_OUTPUT_UNUSED,
	.shape = shape,
	.can_remember = has_no_token,
	.past = past,
	.onnx = onnx,
};

int mu_net_positions(struct mu_net *net, int in, const struct mu_positions *attr, const char *name)
{
	return mu_net_add_one(net, &mu_layer_positions, in, attr, name);
}
