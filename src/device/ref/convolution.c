/* SPDX-License-Identifier: Apache-2.0 */
/* Convolution, with the loops of convolve.h. */
#include "ref.h"

#include <muster/base.h>

#include "device/ref/convolution/convolve.h"

static struct convolve describe(const struct mu_op *op)
{
	const struct mu_convolution *a = op->attr;
	const struct mu_shape *in = &op->inputs[0]->shape;
	struct convolve c = {.w = mu_window_of_convolution(a, in),
			     .weight = op->params[0].data,
			     .sums = op->scratch};

	mu_ref_convolve_sizes(&c, in->dims[0], in->dims[1], (size_t)a->filters, a->groups);
	return c;
}

/* ---- plan ---- */

static enum mu_status check_attributes(const struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_convolution *a = op->attr;
	size_t channels = op->inputs[0]->shape.dims[1];
	const int groups = a->groups ? a->groups : 1;

	for (int d = 0; d + 2 < op->inputs[0]->shape.ndims; d++)
		if (a->kernel[d] < 1 || a->stride[d] < 0 || a->pad[d] < 0 || a->dilate[d] < 0)
			MU_FAIL(MU_ERR_ARGUMENT,
				"%s (convolution): kernel %d, stride %d, pad %d, dilate %d; the "
				"kernel must be at least 1, the others not negative",
				op->name, a->kernel[d], a->stride[d], a->pad[d], a->dilate[d]);
	if (a->filters < 1 || groups < 1 || a->filters % groups != 0 ||
	    channels % (size_t)groups != 0)
		MU_FAIL(MU_ERR_ARGUMENT,
			"%s (convolution): %zu channels and %d filters cannot be cut into %d "
			"groups",
			op->name, channels, a->filters, groups);
	if (op->n_params != (a->no_bias ? 1 : 2))
		MU_FAIL(MU_ERR_ARGUMENT, "%s (convolution): %d parameters; %s", op->name,
			op->n_params,
			a->no_bias ? "without bias there is one"
				   : "there are two, weight and bias");
out:
	return st;
}

/* The shapes of output and weight. */
static enum mu_status infer(const struct mu_op *op, const struct convolve *c, struct mu_shape *out,
			    struct mu_shape *weight)
{
	enum mu_status st = MU_OK;
	const struct mu_window *w = &c->w;
	const struct mu_shape *in = &op->inputs[0]->shape;
	char text[96], kernel[MU_WINDOW_TEXT], pad[MU_WINDOW_TEXT];

	*out = *weight = *in;
	out->dims[1] = weight->dims[0] = (size_t)c->filters;
	weight->dims[1] = (size_t)c->group_channels;
	for (int d = w->first, i = 2; d < MU_MAX_SPACE; d++, i++) {
		if (w->out[d] < 1)
			MU_FAIL(MU_ERR_ARGUMENT,
				"%s (convolution): kernel %s does not fit the input %s with pad %s",
				op->name, mu_window_text(w, w->kernel, kernel),
				mu_shape_text(in, text, sizeof text),
				mu_window_text(w, w->pad, pad));
		out->dims[i] = (size_t)w->out[d];
		weight->dims[i] = (size_t)w->kernel[d];
	}
out:
	return st;
}

static enum mu_status plan(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_convolution *a = op->attr;
	struct mu_shape out, weight, bias = {1, {(size_t)a->filters}};
	struct convolve c;

	MU_TRY(mu_ref_need_space(op));
	MU_TRY(check_attributes(op));
	c = describe(op);
	MU_TRY(infer(op, &c, &out, &weight));
	MU_TRY(mu_ref_need_shape(op, "output", &op->outputs[0]->shape, &out));
	MU_TRY(mu_ref_need_shape(op, "weight", &op->params[0].shape, &weight));
	if (!a->no_bias)
		MU_TRY(mu_ref_need_shape(op, "bias", &op->params[1].shape, &bias));
	op->scratch_nbytes = mu_ref_convolve_scratch(&c);
out:
	return st;
}

/* ---- work ---- */

static enum mu_status forward(struct mu_op *op)
{
	const struct mu_convolution *a = op->attr;
	struct mu_tensor *out = op->outputs[0];
	struct convolve c = describe(op);

	c.bias = a->no_bias ? NULL : op->params[1].data;
	mu_ref_convolve(&c, op->inputs[0]->data, out->data);
	if (op->fusion.activation)
		mu_ref_activate(op->fusion.activation, out->data, mu_shape_n(&out->shape));
	return MU_OK;
}

static void backward(struct mu_op *op)
{
	const struct mu_convolution *a = op->attr;
	const struct mu_tensor *in = op->inputs[0];
	struct mu_tensor *out = op->outputs[0];
	const struct convolve c = describe(op);

	if (op->fusion.undo)
		mu_ref_activate_backward(op->fusion.undo, out->data, out->grad, out->grad,
					 mu_shape_n(&out->shape));
	mu_ref_convolve_weight(&c, in->data, out->grad, op->params[0].grad);
	if (!a->no_bias)
		mu_ref_channel_sums(&out->shape, out->grad, op->params[1].grad);
	if (in->needs_grad)
		mu_ref_convolve_data(&c, out->grad, in->grad);
}

const struct mu_ref_kind mu_ref_convolution = {
	.n_inputs = 1,
	.n_outputs = 1,
	.min_params = 1,
	.max_params = 2,
	.plan = plan,
	.forward = forward,
	.backward = backward,
};
