/* SPDX-License-Identifier: Apache-2.0 */
/* Activation: its derivative is computed from its value, so that it can work in place. */
#include "ref.h"

#include <math.h>

#include <muster/base.h>

static double value(enum mu_activation_kind kind, double x)
{
	switch (kind) {
	case MU_ACTIVATION_RELU: return x <= 0 ? 0 : x; /* NaN stays NaN */
	case MU_ACTIVATION_TANH: return tanh(x);
	case MU_ACTIVATION_SIGMOID: return 1 / (1 + exp(-x));
	default: break;
	}
	return NAN;
}

static double slope(enum mu_activation_kind kind, double y)
{
	switch (kind) {
	case MU_ACTIVATION_RELU: return y > 0 ? 1 : 0;
	case MU_ACTIVATION_TANH: return 1 - y * y;
	case MU_ACTIVATION_SIGMOID: return y * (1 - y);
	default: break;
	}
	return NAN;
}

void mu_ref_activate(const struct mu_activation *activation, float *y, size_t n)
{
	for (size_t k = 0; k < n; k++)
		y[k] = (float)value(activation->kind, (double)y[k]);
}

void mu_ref_activate_backward(const struct mu_activation *activation, const float *y,
			      const float *dy, float *dx, size_t n)
{
	for (size_t k = 0; k < n; k++)
		dx[k] = (float)((double)dy[k] * slope(activation->kind, (double)y[k]));
}

static enum mu_status forward(struct mu_op *op)
{
	size_t n = mu_shape_n(&op->inputs[0]->shape);

	mu_ref_copy(op->outputs[0]->data, op->inputs[0]->data, n);
	mu_ref_activate(op->attr, op->outputs[0]->data, n);
	return MU_OK;
}

static void backward(struct mu_op *op)
{
	const struct mu_tensor *out = op->outputs[0];

	if (op->inputs[0]->needs_grad)
		mu_ref_activate_backward(op->attr, out->data, out->grad, op->inputs[0]->grad,
					 mu_shape_n(&out->shape));
}

const struct mu_ref_kind mu_ref_activation = {
	.n_inputs = 1,
	.n_outputs = 1,
	.in_place = true,
	.plan = mu_ref_need_same_shape,
	.forward = forward,
	.backward = backward,
};
