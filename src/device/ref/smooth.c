/* SPDX-License-Identifier: Apache-2.0 */
/* Smooth activations: their gradient needs the input. */
#include "ref.h"

#include <math.h>

#include <muster/base.h>

static const double root_2_pi = 0.79788456080286535588; /* sqrt(2 / pi) */

static double smooth(const struct mu_activation *a, double x)
{
	const double p = (double)a->parameter;

	switch (a->kind) {
	case MU_ACTIVATION_GELU: return x / 2 * (1 + erf(x / sqrt(2)));
	case MU_ACTIVATION_GELU_TANH:
		return x / 2 * (1 + tanh(root_2_pi * (x + 0.044715 * x * x * x)));
	case MU_ACTIVATION_LEAKY_RELU: return x > 0 ? x : p * x;
	case MU_ACTIVATION_ELU: return x > 0 ? x : p * expm1(x);
	case MU_ACTIVATION_SOFTPLUS: return fmax(x, 0) + log1p(exp(-fabs(p * x))) / p;
	case MU_ACTIVATION_SCALED_TANH: return p * tanh(x);
	default: return x / (1 + exp(-x));
	}
}

static double smooth_slope(const struct mu_activation *a, double x)
{
	const double t = tanh(root_2_pi * (x + 0.044715 * x * x * x));
	const double s = 1 / (1 + exp(-x)), p = (double)a->parameter;

	switch (a->kind) {
	case MU_ACTIVATION_GELU:
		return (1 + erf(x / sqrt(2))) / 2 + x * root_2_pi / 2 * exp(-x * x / 2);
	case MU_ACTIVATION_GELU_TANH:
		return (1 + t) / 2 + x / 2 * (1 - t * t) * root_2_pi * (1 + 3 * 0.044715 * x * x);
	case MU_ACTIVATION_LEAKY_RELU: return x > 0 ? 1 : p;
	case MU_ACTIVATION_ELU: return x > 0 ? 1 : p * exp(x);
	case MU_ACTIVATION_SOFTPLUS: return 1 / (1 + exp(-p * x));
	case MU_ACTIVATION_SCALED_TANH: return p * (1 - tanh(x) * tanh(x));
	default: return s * (1 + x * (1 - s));
	}
}

static enum mu_status plan(struct mu_op *op)
{
	enum mu_status st = MU_OK;

	if (!mu_activation_is_smooth(((const struct mu_activation *)op->attr)->kind))
		MU_FAIL(MU_ERR_ARGUMENT, "%s (smooth): ReLU, tanh and sigmoid are not", op->name);
	MU_TRY(mu_ref_need_same_shape(op));
out:
	return st;
}

static enum mu_status forward(struct mu_op *op)
{
	const struct mu_activation *a = op->attr;

	for (size_t k = 0; k < mu_shape_n(&op->inputs[0]->shape); k++)
		op->outputs[0]->data[k] = (float)smooth(a, (double)op->inputs[0]->data[k]);
	return MU_OK;
}

static void backward(struct mu_op *op)
{
	const struct mu_activation *a = op->attr;

	if (!op->inputs[0]->needs_grad)
		return;
	for (size_t k = 0; k < mu_shape_n(&op->inputs[0]->shape); k++)
		op->inputs[0]->grad[k] =
			(float)((double)op->outputs[0]->grad[k] *
				smooth_slope(a, (double)op->inputs[0]->data[k]));
}

const struct mu_ref_kind mu_ref_smooth = {
	.n_inputs = 1,
	.n_outputs = 1,
	.plan = plan,
	.forward = forward,
	.backward = backward,
};
