/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution: see struct mu_convolution. */
#include "layer.h"
#include "net/onnx/onnx.h"

static int shape(struct net_draft *d)
{
	struct mu_convolution *a = d->layer->attr;
	const struct layer_window w = {a->kernel, a->stride, a->pad, a->dilate, false};
	struct mu_shape weight = {d->in->ndims, {(size_t)a->filters}};

	a->groups = a->groups ? a->groups : 1;
	for (int i = 0; i + 2 < d->in->ndims; i++)
		a->dilate[i] = a->dilate[i] ? a->dilate[i] : 1;
	if (mu_layer_window(d, &w) != 0)
		return -1;
	for (int i = 0; i + 2 < d->in->ndims; i++)
		weight.dims[2 + i] = (size_t)a->kernel[i];
	if (a->filters < 1 || a->filters % a->groups != 0 ||
	    d->in->dims[1] % (size_t)a->groups != 0)
		return mu_layer_fail(
			d->net,
			"has %zu channels and %d filters, which cannot be cut into %d groups",
			d->in->dims[1], a->filters, a->groups);
	d->out.dims[1] = (size_t)a->filters;
	weight.dims[1] = d->in->dims[1] / (size_t)a->groups;
	mu_net_add_param(d->net, "weight", weight, 0);
	if (!a->no_bias)
		mu_net_add_param(d->net, "bias", mu_layer_vector(d->out.dims[1]), 0);
	return 0;
}

/* Each weight is used once per output pixel. */
static double macs(const struct net_layer *l, const struct mu_shape *out)
{
	return (double)mu_shape_n(&l->params[0].shape) * (double)mu_shape_positions(out);
}

static bool is_stepwise(const void *attr)
{
	const struct mu_convolution *a = attr;

	return a->kernel[0] == 1 && a->stride[0] <= 1 && a->pad[0] == 0 && a->kernel[1] == 1 &&
	       a->pad[1] == 0 && a->kernel[2] <= 1 && a->pad[2] == 0;
}

static void onnx(struct onnx_layer *o)
{
	const struct mu_convolution *a = o->layer->attr;
	const int n = o->in->ndims - 2;
	const char *weight, *bias;

	mu_onnx_weights(o, &weight, &bias);
	mu_onnx_ints(o, "kernel_shape", a->kernel, n);
	mu_onnx_ints(o, "strides", a->stride, n);
	mu_onnx_pads(o, a->pad, a->pad, n);
	mu_onnx_ints(o, "dilations", a->dilate, n);
	mu_onnx_int(o, "group", a->groups);
	mu_onnx_node(o, "Conv", mu_onnx_in(o, 0), weight, bias);
}

const struct mu_layer_kind mu_layer_convolution = {
	.op = MU_OP_CONVOLUTION,
	.attr_nbytes = sizeof(struct mu_convolution),
	.traits = MU_LAYER_OUTPUT_UNUSED | MU_LAYER_ABSORBS_ACTIVATION | MU_LAYER_HAS_ALGORITHMS |
		  MU_LAYER_MAY_SHARE | MU_LAYER_IN_SPACE | MU_LAYER_TAKES_SCALE,
	.restored = 1u << MU_RECOMPUTE_ALL,
	.shape = shape,
	.macs = macs,
	.is_stepwise = is_stepwise,
	.onnx = onnx,
};

int mu_net_convolution(struct mu_net *net, int in, const struct mu_convolution *attr,
		       const char *name)
{
	return mu_net_add_one(net, &mu_layer_convolution, in, attr, name);
}
