/* SPDX-License-Identifier: Apache-2.0 */
/* Local response normalisation: see struct mu_lrn. */
#include "layer.h"
#include "net/onnx/onnx.h"

static int shape(struct net_draft *d)
{
	const struct mu_lrn *a = d->layer->attr;

	if (a->size < 1 || a->size % 2 == 0 || !(a->k > 0) || !(a->alpha >= 0))
		return mu_layer_fail(d->net,
				     "has size %d, which must be odd, k %g, which must be above 0, "
				     "and alpha %g, which must not be below 0",
				     a->size, (double)a->k, (double)a->alpha);
	return 0;
}

static void onnx(struct onnx_layer *o)
{
	const struct mu_lrn *a = o->layer->attr;

	mu_onnx_int(o, "size", a->size);
	mu_onnx_float(o, "alpha", a->alpha);
	mu_onnx_float(o, "beta", a->beta);
	mu_onnx_float(o, "bias", a->k);
	mu_onnx_node(o, "LRN", mu_onnx_in(o, 0));
}

const struct mu_layer_kind mu_layer_lrn = {
	.op = MU_OP_LRN,
	.attr_nbytes = sizeof(struct mu_lrn),
	.ndims = 4,
	.traits = MU_LAYER_OUTPUT_UNUSED | MU_LAYER_STEPWISE,
	.shape = shape,
	.onnx = onnx,
};

int mu_net_lrn(struct mu_net *net, int in, const struct mu_lrn *attr, const char *name)
{
	return mu_net_add_one(net, &mu_layer_lrn, in, attr, name);
}
