/* SPDX-License-Identifier: Apache-2.0 */
/* Long short-term memory: see struct mu_lstm. */
#include "layer.h"

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

const struct mu_layer_kind mu_layer_lstm = {
	.op = MU_OP_LSTM,
	.attr_nbytes = sizeof(struct mu_lstm),
	.traits = MU_LAYER_OVERWRITES_GRAD,
	.shape = shape,
	.macs = macs,
	.state = state,
};

int mu_net_lstm(struct mu_net *net, int in, const struct mu_lstm *attr, const char *name)
{
	return mu_net_add_one(net, &mu_layer_lstm, in, attr, name);
}
