/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution: see struct mu_convolution. */
#include "layer.h"

/* Each weight is used once per output pixel. */
static double macs(const struct net_layer *l, const struct mu_shape *out)
{
	return (double)mu_shape_n(&l->params[0].shape) * (double)(out->dims[2] * out->dims[3]);
}

static bool is_stepwise(const void *attr)
{
	const struct mu_convolution *a = attr;

	return a->kernel[0] == 1 && a->stride[0] <= 1 && a->pad[0] == 0 && a->kernel[1] == 1 &&
	       a->pad[1] == 0;
}

static bool can_remember(const struct mu_op *op)
{
	(void)op;
	return true;
}

const struct mu_layer_kind mu_layer_convolution = {
	.op = MU_OP_CONVOLUTION,
	.attr_nbytes = sizeof(struct mu_convolution),
	.ndims = 4,
	.traits = MU_LAYER_OUTPUT_UNUSED | MU_LAYER_ABSORBS_ACTIVATION | MU_LAYER_HAS_ALGORITHMS |
		  MU_LAYER_MAY_SHARE,
	.restored = 1u << MU_RECOMPUTE_ALL,
	.macs = macs,
	.is_stepwise = is_stepwise,
	.can_remember = can_remember,
};
