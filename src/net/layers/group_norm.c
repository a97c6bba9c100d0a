/* SPDX-License-Identifier: Apache-2.0 */
/* Group and instance normalisation: see struct mu_group_norm. */
#include "layer.h"

static int shape(struct net_draft *d)
{
	const struct mu_group_norm *a = d->layer->attr;
	const size_t channels = d->in->dims[1];

	if (!(a->eps > 0))
		return mu_layer_fail(d->net, "has eps %g, which must be above 0", (double)a->eps);
	if (a->groups < 0 || (a->groups > 0 && channels % (size_t)a->groups != 0))
		return mu_layer_fail(d->net, "has %zu channels, which cannot be cut into %d groups",
				     channels, a->groups);
	if (channels / (size_t)(a->groups ? a->groups : (int)channels) *
		    mu_shape_positions(d->in) == 1)
		return mu_layer_fail(d->net, "has groups of one value, whose variance is 0: more "
					     "space or fewer groups are needed");
	mu_net_add_param(d->net, "gamma", mu_layer_vector(channels), 0);
	mu_net_add_param(d->net, "beta", mu_layer_vector(channels), 0);
	return 0;
}

const struct mu_layer_kind mu_layer_group_norm = {
	.op = MU_OP_GROUP_NORM,
	.attr_nbytes = sizeof(struct mu_group_norm),
	.traits = MU_LAYER_OUTPUT_UNUSED | MU_LAYER_LENDS_OUTPUT,
	.restored = 1u << MU_RECOMPUTE_ALL,
	.shape = shape,
};

int mu_net_group_norm(struct mu_net *net, int in, const struct mu_group_norm *attr,
		      const char *name)
{
	return mu_net_add_one(net, &mu_layer_group_norm, in, attr, name);
}
