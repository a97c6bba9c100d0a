/* SPDX-License-Identifier: Apache-2.0 */
/* Group and instance normalisation: see struct mu_group_norm. */
#include "layer.h"
#include "net/onnx/onnx.h"

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

/* Instance normalisation of groups as channels; gamma and beta are those of the channels. */
static void onnx(struct onnx_layer *o)
{
	const struct mu_group_norm *a = o->layer->attr;
	const size_t n = a->groups ? (size_t)a->groups : o->in->dims[1];
	const long dims[] = {0, (long)n, (long)(mu_shape_sample(o->in) / n)};
	const size_t channels[MU_MAX_DIMS] = {o->in->dims[1], 1, 1, 1};
	const int ndims = o->in->ndims - 1;
	const float *gamma = mu_onnx_values(o, o->layer, 0), *beta = mu_onnx_values(o, o->layer, 1);
	float *ones = mu_onnx_room(o, n), *zeros = mu_onnx_room(o, n);
	const char *x;

	for (size_t g = 0; g < n && ones && zeros; g++) {
		ones[g] = 1;
		zeros[g] = 0;
	}
	x = mu_onnx_reshape(o, mu_onnx_in(o, 0), 3, dims);
	mu_onnx_float(o, "epsilon", a->eps);
	mu_onnx_node(o, "InstanceNormalization", x, mu_onnx_floats(o, "ones", ones, 1, &n),
		     mu_onnx_floats(o, "zeros", zeros, 1, &n));
	mu_onnx_reshape_to(o, o->value, o->in);
	mu_onnx_node(o, "Mul", o->value, mu_onnx_floats(o, "gamma", gamma, ndims, channels));
	mu_onnx_node(o, "Add", o->value, mu_onnx_floats(o, "beta", beta, ndims, channels));
}

const struct mu_layer_kind mu_layer_group_norm = {
	.op = MU_OP_GROUP_NORM,
	.attr_nbytes = sizeof(struct mu_group_norm),
	.traits = MU_LAYER_OUTPUT_UNUSED | MU_LAYER_LENDS_OUTPUT,
	.restored = 1u << MU_RECOMPUTE_ALL,
	.shape = shape,
	.onnx = onnx,
};

int mu_net_group_norm(struct mu_net *net, int in, const struct mu_group_norm *attr,
		      const char *name)
{
	return mu_net_add_one(net, &mu_layer_group_norm, in, attr, name);
}
