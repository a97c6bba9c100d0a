/* SPDX-License-Identifier: Apache-2.0 */
/* Transposed convolution: see struct mu_deconvolution. */
#include "layer.h"
#include "net/onnx/onnx.h"

/* Set the output's axes of space. */
static int expand(struct net_draft *d, struct mu_deconvolution *a)
{
	const int n = d->in->ndims - 2;
	char k[LAYER_SIZES], s[LAYER_SIZES], p[LAYER_SIZES], e[LAYER_SIZES];
	bool is_window = true, fits = true;

	for (int i = 0; i < n; i++) {
		long size;

		a->stride[i] = a->stride[i] ? a->stride[i] : 1;
		a->dilate[i] = a->dilate[i] ? a->dilate[i] : 1;
		size = ((long)d->in->dims[2 + i] - 1) * a->stride[i] - 2L * a->pad[i] +
		       (long)a->dilate[i] * (a->kernel[i] - 1) + a->extra[i] + 1;
		is_window &= a->kernel[i] >= 1 && a->stride[i] >= 1 && a->dilate[i] >= 1 &&
			     a->pad[i] >= 0 && a->extra[i] >= 0 && a->extra[i] < a->stride[i];
		fits &= size >= 1;
		d->out.dims[2 + i] = (size_t)size;
	}
	if (is_window && fits)
		return 0;
	return mu_layer_fail(
		d->net, "has kernel %s, stride %s, padding %s, extra %s; %s",
		mu_layer_sizes(a->kernel, n, k), mu_layer_sizes(a->stride, n, s),
		mu_layer_sizes(a->pad, n, p), mu_layer_sizes(a->extra, n, e),
		is_window ? "that leaves no output: less padding is needed"
			  : "kernel, stride and dilation must be at least 1, padding 0, and extra "
			    "less than the stride");
}

static int shape(struct net_draft *d)
{
	struct mu_deconvolution *a = d->layer->attr;
	struct mu_shape weight = *d->in;

	a->groups = a->groups ? a->groups : 1;
	if (expand(d, a) != 0)
		return -1;
	if (a->groups < 1 || a->filters < 1 || a->filters % a->groups != 0 ||
	    d->in->dims[1] % (size_t)a->groups != 0)
		return mu_layer_fail(
			d->net,
			"has %zu channels and %d filters, which cannot be cut into %d groups",
			d->in->dims[1], a->filters, a->groups);
	d->out.dims[1] = (size_t)a->filters;
	weight.dims[0] = d->in->dims[1];
	weight.dims[1] = (size_t)(a->filters / a->groups);
	for (int i = 0; i + 2 < weight.ndims; i++)
		weight.dims[2 + i] = (size_t)a->kernel[i];
	mu_net_add_param(d->net, "weight", weight, 0);
	if (!a->no_bias)
		mu_net_add_param(d->net, "bias", mu_layer_vector(d->out.dims[1]), 0);
	return 0;
}

/* Each weight is used once per position of the input. */
static double macs(const struct net_layer *l, const struct mu_shape *out)
{
	const struct mu_deconvolution *a = l->attr;
	double positions = 1;

	for (int i = 0; i + 2 < out->ndims; i++)
		positions *= (double)(((long)out->dims[2 + i] - 1 - a->extra[i] + 2L * a->pad[i] -
				       (long)a->dilate[i] * (a->kernel[i] - 1)) /
					      a->stride[i] +
				      1);
	return (double)mu_shape_n(&l->params[0].shape) * positions;
}

static void onnx(struct onnx_layer *o)
{
	const struct mu_deconvolution *a = o->layer->attr;
	const int n = o->in->ndims - 2;
	const char *weight, *bias;

	mu_onnx_weights(o, &weight, &bias);
	mu_onnx_ints(o, "kernel_shape", a->kernel, n);
	mu_onnx_ints(o, "strides", a->stride, n);
	mu_onnx_pads(o, a->pad, a->pad, n);
	mu_onnx_ints(o, "output_padding", a->extra, n);
	mu_onnx_ints(o, "dilations", a->dilate, n);
	mu_onnx_int(o, "group", a->groups);
	mu_onnx_node(o, "ConvTranspose", mu_onnx_in(o, 0), weight, bias);
}

const struct mu_layer_kind mu_layer_deconvolution = {
	.op = MU_OP_DECONVOLUTION,
	.attr_nbytes = sizeof(struct mu_deconvolution),
	.traits = MU_LAYER_OUTPUT_UNUSED | MU_LAYER_LENDS_OUTPUT | MU_LAYER_IN_SPACE,
	.restored = 1u << MU_RECOMPUTE_ALL,
	.shape = shape,
	.macs = macs,
	.onnx = onnx,
};

int mu_net_deconvolution(struct mu_net *net, int in, const struct mu_deconvolution *attr,
			 const char *name)
{
	return mu_net_add_one(net, &mu_layer_deconvolution, in, attr, name);
}
