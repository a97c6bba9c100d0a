/* SPDX-License-Identifier: Apache-2.0 */
/* Batch normalisation: see struct mu_batch_norm. */
#include "layer.h"
#include "net/onnx/onnx.h"

static int shape(struct net_draft *d)
{
	const struct mu_batch_norm *a = d->layer->attr;
	const struct mu_shape c = mu_layer_vector(d->in->dims[1]);

	if (!(a->eps > 0 && a->momentum > 0 && a->momentum < 1))
		return mu_layer_fail(d->net,
				     "has eps %g, which must be above 0, and momentum %g, which "
				     "must be between 0 and 1",
				     (double)a->eps, (double)a->momentum);
	mu_net_add_param(d->net, "gamma", c, 0);
	mu_net_add_param(d->net, "beta", c, 0);
	mu_net_add_param(d->net, "moving_mean", c, a->momentum);
	mu_net_add_param(d->net, "moving_var", c, a->momentum);
	return 0;
}

static void onnx(struct onnx_layer *o)
{
	const struct mu_batch_norm *a = o->layer->attr;
	const size_t n = o->in->dims[1];
	float *ones = a->fix_gamma ? mu_onnx_room(o, n) : NULL;
	const char *gamma;

	for (size_t c = 0; c < n && ones; c++)
		ones[c] = 1;
	gamma = ones ? mu_onnx_floats(o, "gamma", ones, 1, &n) : mu_onnx_param(o, 0);
	mu_onnx_float(o, "epsilon", a->eps);
	mu_onnx_node(o, "BatchNormalization", mu_onnx_in(o, 0), gamma, mu_onnx_param(o, 1),
		     mu_onnx_param(o, 2), mu_onnx_param(o, 3));
}

const struct mu_layer_kind mu_layer_batch_norm = {
	.op = MU_OP_BATCH_NORM,
	.attr_nbytes = sizeof(struct mu_batch_norm),
	.traits = MU_LAYER_OUTPUT_UNUSED | MU_LAYER_LENDS_OUTPUT | MU_LAYER_ABSORBS_RELU |
		  MU_LAYER_ABSORBS_ADDEND | MU_LAYER_WANTS_SUMS,
	.restored = 1u << MU_RECOMPUTE_AUTO | 1u << MU_RECOMPUTE_ATTENTION | 1u << MU_RECOMPUTE_ALL,
	.shape = shape,
	.onnx = onnx,
};

int mu_net_batch_norm(struct mu_net *net, int in, const struct mu_batch_norm *attr,
		      const char *name)
{
	return mu_net_add_one(net, &mu_layer_batch_norm, in, attr, name);
}
