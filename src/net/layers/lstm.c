/* SPDX-License-Identifier: Apache-2.0 */
/* Long short-term memory: see struct mu_lstm. */
#include "layer.h"

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
	.ndims = 4,
	.traits = MU_LAYER_OVERWRITES_GRAD,
	.macs = macs,
	.state = state,
};
