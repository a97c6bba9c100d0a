/* SPDX-License-Identifier: Apache-2.0 */
/* Layer normalisation: see struct mu_layer_norm. */
#include "layer.h"

static int shape(struct net_draft *d)
{
	const struct mu_layer_norm *a = d->layer->attr;

	if (!(a->eps > 0))
		return mu_layer_fail(d->net, "has eps %g; it must be above 0", (double)a->eps);
	mu_net_add_param(d->net, "gamma", mu_layer_vector(d->in->dims[1]), 0);
	if (!a->rms)
		mu_net_add_param(d->net, "beta", mu_layer_vector(d->in->dims[1]), 0);
	return 0;
}

const struct mu_layer_kind mu_layer_layer_norm = {
	.op = MU_OP_LAYER_NORM,
	.attr_nbytes = sizeof(struct mu_layer_norm),
	.traits = MU_LAYER_OUTPUT_UNUSED | MU_LAYER_STEPWISE,
	.restored = 1u << MU_RECOMPUTE_ATTENTION | 1u << MU_RECOMPUTE_ALL,
	.shape = shape,
};

int mu_net_layer_norm(struct mu_net *net, int in, const struct mu_layer_norm *attr,
		      const char *name)
{
	return mu_net_add_one(net, &mu_layer_layer_norm, in, attr, name);
}
