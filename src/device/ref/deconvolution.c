/* SPDX-License-Identifier: Apache-2.0 */
/* Transposed convolution: the gradient of a convolution that reads y and writes x. */
#include "ref.h"

#include <muster/base.h>

#include "device/ref/convolution/convolve.h"

static struct convolve describe(const struct mu_op *op)
{
	const struct mu_deconvolution *a = op->attr;
	const struct mu_shape *in = &op->inputs[0]->shape;
	struct convolve c = {.w = mu_window_of_deconvolution(a, in),
			     .weight = op->params[0].data,
			     .sums = op->scratch};

	mu_ref_convolve_sizes(&c, in->dims[0], (size_t)a->filters, in->dims[1], a->groups);
	return c;
}

static enum mu_status plan(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_deconvolution *a = op->attr;
	const int groups = a->groups ? a->groups : 1;
	struct mu_shape out = op->inputs[0]->shape, weight = out, bias = {1, {(size_t)a->filters}};
	struct convolve c;

	MU_TRY(mu_ref_need_space(op));
	if (a->filters < 1 || groups < 1 || a->filters % groups != 0 ||
	    out.dims[1] % (size_t)groups != 0 || op->n_params != (a->no_bias ? 1 : 2))
		MU_FAIL(MU_ERR_ARGUMENT,
			"%s (deconvolution): %zu channels, %d filters, %d groups and %d parameters "
			"do not fit together",
			op->name, out.dims[1], a->filters, groups, op->n_params);
	c = describe(op);
	out.dims[1] = (size_t)a->filters;
	weight.dims[0] = op->inputs[0]->shape.dims[1];
	weight.dims[1] = (size_t)(a->filters / groups);
	for (int d = c.w.first, i = 2; d < MU_MAX_SPACE; d++, i++) {
		out.dims[i] = (size_t)c.w.in[d];
		weight.dims[i] = (size_t)c.w.kernel[d];
	}
	MU_TRY(mu_ref_need_shape(op, "output", &op->outputs[0]->shape, &out));
	MU_TRY(mu_ref_need_shape(op, "weight", &op->params[0].shape, &weight));
	if (!a->no_bias)
		MU_TRY(mu_ref_need_shape(op, "bias", &op->params[1].shape, &bias));
	op->scratch_nbytes = mu_ref_convolve_scratch(&c);
out:
	return st;
}

static enum mu_status forward(struct mu_op *op)
{
	const struct mu_deconvolution *a = op->attr;
	struct convolve c = describe(op);

	c.bias = a->no_bias ? NULL : op->params[1].data;
	mu_ref_convolve_data(&c, op->inputs[0]->data, op->outputs[0]->data);
	return MU_OK;
}

static void backward(struct mu_op *op)
{
	const struct mu_deconvolution *a = op->attr;
	const struct mu_tensor *in = op->inputs[0], *out = op->outputs[0];
	const struct convolve c = describe(op);

	mu_ref_convolve_weight(&c, out->grad, in->data, op->params[0].grad);
	if (!a->no_bias)
		mu_ref_channel_sums(&out->shape, out->grad, op->params[1].grad);
	if (in->needs_grad)
		mu_ref_convolve(&c, out->grad, in->grad);
}

const struct mu_ref_kind mu_ref_deconvolution = {
	.n_inputs = 1,
	.n_outputs = 1,
	.min_params = 1,
	.max_params = 2,
	.plan = plan,
	.forward = forward,
	.backward = backward,
};
