/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a table by number: y[s][u][p] = weight[x[s][p]][u]. */
#include "ref.h"

#include <string.h>

#include <muster/base.h>

static enum mu_status plan(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_embedding *a = op->attr;
	struct mu_shape want = op->inputs[0]->shape;
	struct mu_shape weight = {2, {(size_t)a->inputs, (size_t)a->units}};

	if (a->inputs < 1 || a->units < 1)
		MU_FAIL(MU_ERR_ARGUMENT, "%s (embedding): %d numbers in %d units; both must be at "
					 "least 1",
			op->name, a->inputs, a->units);
	MU_TRY(mu_ref_need_ndims(op, 4, "(n, 1, h, w)"));
	want.dims[1] = 1;
	MU_TRY(mu_ref_need_shape(op, "input", &op->inputs[0]->shape, &want));
	want.dims[1] = (size_t)a->units;
	MU_TRY(mu_ref_need_shape(op, "output", &op->outputs[0]->shape, &want));
	MU_TRY(mu_ref_need_shape(op, "weight", &op->params[0].shape, &weight));
	op->scratch_nbytes = mu_shape_n(&weight) * sizeof(double);
out:
	return st;
}

/* Number at position p of sample s. Samples that do not count may hold any value. */
static enum mu_status find(const struct mu_op *op, size_t s, size_t p, size_t *row)
{
	enum mu_status st = MU_OK;
	int inputs = ((const struct mu_embedding *)op->attr)->inputs;
	float x = op->inputs[0]->data[s * mu_shape_positions(&op->inputs[0]->shape) + p];

	*row = 0;
	if (s >= op->batch->count)
		goto out;
	if (!(x >= 0 && x < (float)inputs) || x != (float)(size_t)x)
		MU_FAIL(MU_ERR_ARGUMENT,
			"%s (embedding): sample %zu, position %zu is %g; it must be a whole number "
			"from 0 to %d",
			op->name, s, p, (double)x, inputs - 1);
	*row = (size_t)x;
out:
	return st;
}

static enum mu_status forward(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	size_t units = op->params[0].shape.dims[1],
	       area = mu_shape_positions(&op->inputs[0]->shape);
	size_t row = 0;

	for (size_t s = 0; s < op->inputs[0]->shape.dims[0]; s++)
		for (size_t p = 0; p < area; p++) {
			MU_TRY(find(op, s, p, &row));
			for (size_t u = 0; u < units; u++)
				op->outputs[0]->data[(s * units + u) * area + p] =
					op->params[0].data[row * units + u];
		}
out:
	return st;
}

/* The gradient of a row is the sum over the positions that used it. */
static enum mu_status backward(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	size_t n = mu_shape_n(&op->params[0].shape), units = op->params[0].shape.dims[1];
	size_t area = mu_shape_positions(&op->inputs[0]->shape);
	size_t row = 0;
	double *sums = op->scratch;

	for (size_t k = 0; k < n; k++)
		sums[k] = 0;
	for (size_t s = 0; s < op->inputs[0]->shape.dims[0]; s++)
		for (size_t p = 0; p < area; p++) {
			MU_TRY(find(op, s, p, &row));
			for (size_t u = 0; u < units; u++)
				sums[row * units + u] +=
					(double)op->outputs[0]->grad[(s * units + u) * area + p];
		}
	for (size_t k = 0; k < n; k++)
		op->params[0].grad[k] =
			(float)(sums[k] + (op->adds ? (double)op->params[0].grad[k] : 0));
	if (op->inputs[0]->needs_grad)
		memset(op->inputs[0]->grad, 0, op->inputs[0]->nbytes);
out:
	return st;
}

const struct mu_ref_kind mu_ref_embedding = {
	.n_inputs = 1,
	.n_outputs = 1,
	.min_params = 1,
	.max_params = 1,
	.plan = plan,
	.forward = forward,
	.try_backward = backward,
};
