/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Softmax cross-entropy. p = exp(x) / sum exp(x); loss = -ln(p[label] + 1e-12), summed over the
 * rows that count; dx = p - onehot(label), and 0 in the other rows. (MXNet's SoftmaxOutput, not
 * divided by the batch.)
 */
#include "ref.h"

#include <math.h>

#include <muster/base.h>

static enum mu_status plan(struct mu_op *op)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_ref_need_ndims(op, 2, "(n, classes)"));
	MU_TRY(mu_ref_need_shape(op, "output", &op->outputs[0]->shape, &op->inputs[0]->shape));
out:
	return st;
}

/* The largest x is subtracted first, so that no exponential overflows. */
static void softmax(const float *x, float *p, size_t classes)
{
	double largest = (double)x[0], sum = 0;

	for (size_t k = 1; k < classes; k++)
		largest = fmax(largest, (double)x[k]);
	for (size_t k = 0; k < classes; k++)
		sum += exp((double)x[k] - largest);
	for (size_t k = 0; k < classes; k++)
		p[k] = (float)(exp((double)x[k] - largest) / sum);
}

static enum mu_status check_batch(const struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_batch *b = op->batch;
	size_t n = op->inputs[0]->shape.dims[0], classes = op->inputs[0]->shape.dims[1];

	if (b->count > n)
		MU_FAIL(MU_ERR_ARGUMENT, "%s (softmax): %zu samples count in a batch of %zu",
			op->name, b->count, n);
	for (size_t s = 0; s < b->count; s++)
		if (!(b->labels[s] >= 0 && b->labels[s] < (float)classes))
			MU_FAIL(MU_ERR_ARGUMENT,
				"%s (softmax): the label of sample %zu is %g; it must be 0 to %zu",
				op->name, s, (double)b->labels[s], classes - 1);
out:
	return st;
}

static enum mu_status forward(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	struct mu_batch *b = op->batch;
	size_t n = op->inputs[0]->shape.dims[0], classes = op->inputs[0]->shape.dims[1];
	float *p = op->outputs[0]->data;

	for (size_t s = 0; s < n; s++)
		softmax(op->inputs[0]->data + s * classes, p + s * classes, classes);
	b->loss = 0;
	MU_TRY(check_batch(op));
	for (size_t s = 0; s < b->count; s++)
		b->loss -= log((double)p[s * classes + (size_t)b->labels[s]] + 1e-12);
out:
	return st;
}

static void backward(struct mu_op *op)
{
	const struct mu_batch *b = op->batch;
	size_t n = op->inputs[0]->shape.dims[0], classes = op->inputs[0]->shape.dims[1];
	const float *p = op->outputs[0]->data;
	float *dx = op->inputs[0]->grad;

	if (!op->inputs[0]->needs_grad)
		return;
	for (size_t s = 0; s < n; s++)
		for (size_t k = 0; k < classes; k++) {
			size_t e = s * classes + k;

			if (s >= b->count)
				dx[e] = 0;
			else
				dx[e] = k == (size_t)b->labels[s] ? p[e] - 1 : p[e];
		}
}

const struct mu_ref_kind mu_ref_softmax = {
	.n_inputs = 1,
	.n_outputs = 1,
	.plan = plan,
	.forward = forward,
	.backward = backward,
};
