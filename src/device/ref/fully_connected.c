/* SPDX-License-Identifier: Apache-2.0 */
/* Fully connected layer: y = x W' + b. An input (n, c, h, w) is read as (n, c * h * w). */
#include "ref.h"

#include <muster/base.h>

static enum mu_status plan(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_fully_connected *a = op->attr;
	const struct mu_shape *in = &op->inputs[0]->shape;
	size_t features = mu_shape_sample(in);
	struct mu_shape out, weight, bias;

	if (a->units < 1)
		MU_FAIL(MU_ERR_ARGUMENT, "%s (fullyconnected): %d units; at least 1 is needed",
			op->name, a->units);
	if (op->n_params != (a->no_bias ? 1 : 2))
		MU_FAIL(MU_ERR_ARGUMENT, "%s (fullyconnected): %d parameters; %s", op->name,
			op->n_params,
			a->no_bias ? "without bias there is one"
				   : "there are two, weight and bias");
	out = (struct mu_shape){2, {in->dims[0], (size_t)a->units}};
	weight = (struct mu_shape){2, {(size_t)a->units, features}};
	bias = (struct mu_shape){1, {(size_t)a->units}};
	MU_TRY(mu_ref_need_shape(op, "output", &op->outputs[0]->shape, &out));
	MU_TRY(mu_ref_need_shape(op, "weight", &op->params[0].shape, &weight));
	if (!a->no_bias)
		MU_TRY(mu_ref_need_shape(op, "bias", &op->params[1].shape, &bias));
	op->scratch_nbytes = features * sizeof(double);
out:
	return st;
}

static enum mu_status forward(struct mu_op *op)
{
	const struct mu_fully_connected *a = op->attr;
	size_t n = op->inputs[0]->shape.dims[0], features = mu_shape_sample(&op->inputs[0]->shape);
	size_t units = (size_t)a->units;
	float *y = op->outputs[0]->data;

	for (size_t s = 0; s < n; s++)
		for (size_t u = 0; u < units; u++) {
			const float *x = op->inputs[0]->data + s * features;
			const float *w = op->params[0].data + u * features;
			double sum = a->no_bias ? 0 : (double)op->params[1].data[u];

			for (size_t k = 0; k < features; k++)
				sum += (double)x[k] * (double)w[k];
			y[s * units + u] = (float)sum;
		}
	if (op->fusion.activation)
		mu_ref_activate(op->fusion.activation, y, n * units);
	return MU_OK;
}

/* out[k] = the sum over i < rows of factor[i * step] * matrix[i][k]: row vector times matrix. */
struct product {
	const float *factor, *matrix;
	size_t step, rows, columns;
};

static void multiply(const struct product *p, double *sums, float *out)
{
	for (size_t k = 0; k < p->columns; k++)
		sums[k] = 0;
	for (size_t i = 0; i < p->rows; i++)
		for (size_t k = 0; k < p->columns; k++)
			sums[k] += (double)p->factor[i * p->step] *
				   (double)p->matrix[i * p->columns + k];
	for (size_t k = 0; k < p->columns; k++)
		out[k] = (float)sums[k];
}

static void backward_bias(struct mu_op *op, size_t n, size_t units)
{
	const float *dy = op->outputs[0]->grad;

	for (size_t u = 0; u < units; u++) {
		double sum = 0;

		for (size_t s = 0; s < n; s++)
			sum += (double)dy[s * units + u];
		op->params[1].grad[u] = (float)sum;
	}
}

/* dW = dy' x, db = the sum of dy's rows, dx = dy W */
static void backward(struct mu_op *op)
{
	const struct mu_fully_connected *a = op->attr;
	struct mu_tensor *in = op->inputs[0], *out = op->outputs[0];
	size_t n = in->shape.dims[0], features = mu_shape_sample(&in->shape),
	       units = (size_t)a->units;

	if (op->fusion.undo)
		mu_ref_activate_backward(op->fusion.undo, out->data, out->grad, out->grad,
					 n * units);
	for (size_t u = 0; u < units; u++)
		multiply(&(struct product){out->grad + u, in->data, units, n, features},
			 op->scratch, op->params[0].grad + u * features);
	if (!a->no_bias)
		backward_bias(op, n, units);
	for (size_t s = 0; in->needs_grad && s < n; s++)
		multiply(&(struct product){out->grad + s * units, op->params[0].data, 1, units,
					   features},
			 op->scratch, in->grad + s * features);
}

const struct mu_ref_kind mu_ref_fully_connected = {
	.n_inputs = 1,
	.n_outputs = 1,
	.min_params = 1,
	.max_params = 2,
	.plan = plan,
	.forward = forward,
	.backward = backward,
};
