/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling: see struct mu_pooling. */
#include "layer.h"

#include <string.h>

#include "net/onnx/onnx.h"

/* Does the first window along axis i of space, or the last one, contain only padding? Such a window
 * has neither a mean nor a maximum. */
static bool is_empty(const struct mu_pooling *a, const struct mu_shape *in,
		     const struct mu_shape *out, int i)
{
	long last = ((long)out->dims[2 + i] - 1) * a->stride[i] - a->pad[i];

	return a->pad[i] >= a->kernel[i] || last >= (long)in->dims[2 + i];
}

static int shape(struct net_draft *d)
{
	struct mu_pooling *a = d->layer->attr;
	const struct layer_window w = {a->kernel, a->stride, a->pad, NULL, a->ceil};
	const int n = d->in->ndims - 2;
	char text[LAYER_SIZES];

	for (int i = 0; i < n && a->global; i++) {
		a->kernel[i] = (int)d->in->dims[2 + i];
		a->stride[i] = 1;
		a->pad[i] = 0;
	}
	if (mu_layer_window(d, &w) != 0)
		return -1;
	for (int i = 0; i < n; i++)
		if (is_empty(a, d->in, &d->out, i))
			return mu_layer_fail(d->net,
					     "has windows of %s with nothing but padding in them: "
					     "a kernel larger than the padding is needed, and with "
					     "ceil than what the stride leaves out",
					     mu_layer_sizes(a->kernel, n, text));
	return 0;
}

static bool is_maximum(const void *attr)
{
	return !((const struct mu_pooling *)attr)->average;
}

/* Axes of space where a window reaches beyond the padding are few; a mean over it is of what is
 * within: factors of all positions correct the mean over the whole window. */
static const char *clip_factors(struct onnx_layer *o)
{
	const struct mu_pooling *a = o->layer->attr;
	const struct mu_shape *in = o->in, *out = o->out;
	const size_t n = mu_shape_positions(out);
	float *factors = mu_onnx_room(o, n);
	size_t dims[MU_MAX_DIMS] = {1};

	for (size_t p = 0; p < n && factors; p++) {
		double factor = 1;
		size_t rest = p;

		for (int i = out->ndims - 3; i >= 0; i--) {
			const long at = (long)(rest % out->dims[2 + i]) * a->stride[i];
			const long left = (long)in->dims[2 + i] + 2L * a->pad[i] - at;

			rest /= out->dims[2 + i];
			factor *= left < a->kernel[i] ? (double)a->kernel[i] / (double)left : 1;
		}
		factors[p] = (float)factor;
	}
	memcpy(dims + 1, out->dims + 2, (size_t)(out->ndims - 2) * sizeof *dims);
	return mu_onnx_floats(o, "factors", factors, out->ndims - 1, dims);
}

/* Sizes that are rounded up are padding after the input here: programs differ in them. */
static void onnx(struct onnx_layer *o)
{
	const struct mu_pooling *a = o->layer->attr;
	const int n = o->in->ndims - 2;
	int after[MU_MAX_SPACE];
	bool clips = false;

	if (a->global) {
		mu_onnx_node(o, a->average ? "GlobalAveragePool" : "GlobalMaxPool",
			     mu_onnx_in(o, 0));
		return;
	}
	for (int i = 0; i < n; i++) {
		const long needed = ((long)o->out->dims[2 + i] - 1) * a->stride[i] + a->kernel[i] -
				    (long)o->in->dims[2 + i] - a->pad[i];

		after[i] = needed > a->pad[i] ? (int)needed : a->pad[i];
		clips |= needed > a->pad[i];
	}
	mu_onnx_ints(o, "kernel_shape", a->kernel, n);
	mu_onnx_ints(o, "strides", a->stride, n);
	mu_onnx_pads(o, a->pad, after, n);
	if (!a->average) {
		mu_onnx_node(o, "MaxPool", mu_onnx_in(o, 0));
		return;
	}
	mu_onnx_int(o, "count_include_pad", 1);
	mu_onnx_node(o, "AveragePool", mu_onnx_in(o, 0));
	if (clips)
		mu_onnx_node(o, "Mul", o->value, clip_factors(o));
}

const struct mu_layer_kind mu_layer_pooling = {
	.op = MU_OP_POOLING,
	.attr_nbytes = sizeof(struct mu_pooling),
	.traits = MU_LAYER_INPUT_UNUSED | MU_LAYER_OUTPUT_UNUSED | MU_LAYER_LENDS_OUTPUT |
		  MU_LAYER_IN_SPACE,
	.shape = shape,
	.commutes = is_maximum,
	.onnx = onnx,
};

int mu_net_pooling(struct mu_net *net, int in, const struct mu_pooling *attr, const char *name)
{
	return mu_net_add_one(net, &mu_layer_pooling, in, attr, name);
}

/* Channels become an axis of space for it: (n, c, space...) as (n, 1, c, positions). */
static int mean_of_channels(struct mu_net *net, int in, const char *name)
{
	struct mu_shape out = net->tensors[in].shape;
	const struct mu_shape seen = MU_SAMPLE(1, out.dims[1], mu_shape_positions(&out));
	const struct mu_pooling mean = {.average = true, .kernel = {(int)out.dims[1], 1}};

	out.dims[1] = 1;
	in = mu_net_reshape(net, in, &seen, NULL);
	in = mu_net_pooling(net, in, &mean, NULL);
	return mu_net_reshape(net, in, &out, name);
}

int mu_net_mean(struct mu_net *net, int in, unsigned axes, const char *name)
{
	const bool channels = axes & MU_AXIS_CHANNELS;
	const unsigned of_space = axes & ~(unsigned)MU_AXIS_CHANNELS;
	struct mu_pooling mean = {.average = true};
	int n;

	if (!mu_net_can_read(net, in))
		return -1;
	n = net->tensors[in].shape.ndims - 2;
	if (axes == 0 || of_space >> (n > 0 ? n : 0) != 0)
		return mu_net_fail(net,
				   "a mean over axes %#x of a tensor with %d axes of space (bit i: "
				   "axis i of space; %#x, MU_AXIS_CHANNELS: the channels)",
				   axes, n, (unsigned)MU_AXIS_CHANNELS);
	for (int i = 0; i < n; i++)
		mean.kernel[i] = axes >> i & 1 ? (int)net->tensors[in].shape.dims[2 + i] : 1;
	if (of_space)
		in = mu_net_add_one(net, &mu_layer_pooling, in, &mean, channels ? NULL : name);
	return channels && in >= 0 ? mean_of_channels(net, in, name) : in;
}
