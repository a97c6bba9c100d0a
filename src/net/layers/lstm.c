/* SPDX-License-Identifier: Apache-2.0 */
/* Long short-term memory: see struct mu_lstm. */
#include "layer.h"

#include <string.h>

#include "net/onnx/onnx.h"

static int shape(struct net_draft *d)
{
	const int units = ((const struct mu_lstm *)d->layer->attr)->units;
	const size_t gates = 4 * (size_t)units;

	if (d->in->ndims != 4 || d->in->dims[3] != 1)
		return mu_layer_needs(d->net, "(n, c, steps, 1)", d->in);
	if (units < 1)
		return mu_layer_fail(d->net, "has %d units; at least 1 is needed", units);
	d->out.dims[1] = (size_t)units;
	mu_net_add_param(d->net, "i2h_weight", mu_layer_matrix(gates, d->in->dims[1]), 0);
	mu_net_add_param(d->net, "i2h_bias", mu_layer_vector(gates), 0);
	mu_net_add_param(d->net, "h2h_weight", mu_layer_matrix(gates, d->out.dims[1]), 0);
	mu_net_add_param(d->net, "h2h_bias", mu_layer_vector(gates), 0);
	return 0;
}

/* Weights are used once per step. */
static double macs(const struct net_layer *l, const struct mu_shape *out)
{
	return (double)(mu_shape_n(&l->params[0].shape) + mu_shape_n(&l->params[2].shape)) *
	       (double)out->dims[2];
}

/* h and c */
static size_t state(const struct mu_shape *out)
{
	return 2 * out->dims[0] * out->dims[1];
}

/* Rows of ONNX's gates, input, output, forget, cell, from ours: input, cell, forget, output. */
static float *reorder(struct onnx_layer *o, float *to, int param, size_t n)
{
	static const size_t from[] = {0, 3, 2, 1};
	const size_t units = o->out->dims[1];
	const float *values = mu_onnx_values(o, o->layer, param);

	for (size_t gate = 0; gate < 4 && to && values; gate++)
		memcpy(to + gate * units * n, values + from[gate] * units * n,
		       units * n * sizeof *to);
	return to;
}

/* (n, c, steps, 1) becomes (steps, n, c); the result is (steps, directions, n, units). */
static void onnx(struct onnx_layer *o)
{
	const size_t c = o->in->dims[1], units = o->out->dims[1], steps = o->in->dims[2];
	const size_t i2h[] = {1, 4 * units, c}, h2h[] = {1, 4 * units, units},
		     biases[] = {1, 8 * units};
	const long sequence[] = {0, (long)c, (long)steps}, one = 1;
	float *bias = mu_onnx_room(o, biases[1]);
	const char *x, *w, *r, *b;

	w = mu_onnx_floats(o, "i2h_weight", reorder(o, mu_onnx_room(o, 4 * units * c), 0, c), 3,
			   i2h);
	r = mu_onnx_floats(o, "h2h_weight",
			   reorder(o, mu_onnx_room(o, 4 * units * units), 2, units), 3, h2h);
	reorder(o, bias, 1, 1);
	reorder(o, bias ? bias + 4 * units : NULL, 3, 1);
	b = mu_onnx_floats(o, "bias", bias, 2, biases);
	x = mu_onnx_reshape(o, mu_onnx_in(o, 0), 3, sequence);
	x = mu_onnx_transpose(o, x, 3, (const int[]){2, 0, 1});
	mu_onnx_int(o, "hidden_size", (long)units);
	mu_onnx_node(o, "LSTM", x, w, r, b);
	mu_onnx_node(o, "Squeeze", o->value, mu_onnx_whole(o, &one, 1));
	mu_onnx_transpose(o, o->value, 3, (const int[]){1, 2, 0});
	mu_onnx_reshape_to(o, o->value, o->out);
}

const struct mu_layer_kind mu_layer_lstm = {
	.op = MU_OP_LSTM,
	.attr_nbytes = sizeof(struct mu_lstm),
	.traits = MU_LAYER_OVERWRITES_GRAD,
	.shape = shape,
	.macs = macs,
	.state = state,
	.onnx = onnx,
};

int mu_net_lstm(struct mu_net *net, int in, const struct mu_lstm *attr, const char *name)
{
	return mu_net_add_one(net, &mu_layer_lstm, in, attr, name);
}
