/* SPDX-License-Identifier: Apache-2.0 */
/* Losses by element; formulas: struct mu_element_loss. The gradient follows from the output: dx =
 * slope(y, t) / n for the n elements of a sample. */
#include "ref.h"

#include <math.h>

#include <muster/base.h>

static const struct mu_element_loss *attr_of(const struct mu_op *op)
{
	return op->attr;
}

static size_t elements_of(const struct mu_op *op)
{
	const struct mu_shape *s = &op->outputs[0]->shape;

	return mu_shape_n(s) / s->dims[0];
}

static double output_of(const struct mu_element_loss *l, double x)
{
	return l->form == MU_ELEMENT_LOGISTIC ? 1 / (1 + exp(-x)) : x;
}

static double loss_at(const struct mu_element_loss *l, double x, double t)
{
	const double d = fabs(x - t), delta = (double)l->delta;

	switch (l->form) {
	case MU_ELEMENT_SQUARED: return d * d;
	case MU_ELEMENT_ABSOLUTE: return d;
	case MU_ELEMENT_HUBER: return d <= delta ? d * d / 2 : delta * (d - delta / 2);
	case MU_ELEMENT_LOGISTIC: return fmax(x, 0) - x * t + log1p(exp(-fabs(x)));
	case MU_ELEMENT_N: break;
	}
	return (double)NAN;
}

/* y: the output. */
static double slope_at(const struct mu_element_loss *l, double y, double t)
{
	const double d = y - t, delta = (double)l->delta;

	switch (l->form) {
	case MU_ELEMENT_SQUARED: return 2 * d;
	case MU_ELEMENT_ABSOLUTE: return d > 0 ? 1 : d < 0 ? -1 : d; /* NaN stays NaN */
	case MU_ELEMENT_HUBER: return d > delta ? delta : d < -delta ? -delta : d;
	case MU_ELEMENT_LOGISTIC: return d;
	case MU_ELEMENT_N: break;
	}
	return (double)NAN;
}

static enum mu_status plan(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_element_loss *l = attr_of(op);

	if (l->form == MU_ELEMENT_HUBER && !(l->delta > 0))
		MU_FAIL(MU_ERR_ARGUMENT, "%s: delta of Huber's loss is %g; it must be positive",
			op->name, (double)l->delta);
	MU_TRY(mu_ref_need_shape(op, "output", &op->outputs[0]->shape, &op->inputs[0]->shape));
	op->workspace_nbytes = op->inputs[0]->shape.dims[0] * sizeof(struct mu_prediction);
out:
	return st;
}

enum mu_status mu_ref_check_targets(const struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_batch *b = op->batch;
	const size_t n = op->inputs[0]->shape.dims[0], each = elements_of(op);
	const bool probabilities = attr_of(op)->form == MU_ELEMENT_LOGISTIC;

	if (b->count > n)
		MU_FAIL(MU_ERR_ARGUMENT, "%s: %zu samples count in a batch of %zu", op->name,
			b->count, n);
	for (size_t i = 0; i < b->count * each; i++) {
		const float t = b->labels[i];

		if (!isfinite(t) || (probabilities && !(t >= 0 && t <= 1)))
			MU_FAIL(MU_ERR_ARGUMENT,
				"%s: target %zu of sample %zu is %g; %s", op->name, i % each,
				mu_ref_sample(b, i / each), (double)t,
				probabilities ? "targets are probabilities, from 0 to 1"
					      : "it must be finite");
	}
out:
	return st;
}

static enum mu_status forward(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_element_loss *l = attr_of(op);
	const float *x = op->inputs[0]->data;
	const size_t n = op->inputs[0]->shape.dims[0], each = elements_of(op);
	struct mu_batch *b = op->batch;
	struct mu_prediction *predictions = op->workspace;

	b->loss = 0;
	b->predictions = predictions;
	MU_TRY(mu_ref_check_targets(op));
	for (size_t s = 0; s < n; s++) {
		double loss = 0;

		for (size_t i = s * each; i < (s + 1) * each; i++) {
			if (s < b->count)
				loss += loss_at(l, (double)x[i], (double)b->labels[i]);
			op->outputs[0]->data[i] = (float)output_of(l, (double)x[i]);
		}
		predictions[s] = (struct mu_prediction){.loss = loss / (double)each};
		b->loss += predictions[s].loss;
	}
out:
	return st;
}

static void backward(struct mu_op *op)
{
	const struct mu_batch *b = op->batch;
	const float *y = op->outputs[0]->data;
	const size_t n = mu_shape_n(&op->outputs[0]->shape), each = elements_of(op);
	const double scale = (double)mu_batch_loss_scale(b) / (double)each;
	float *dx = op->inputs[0]->grad;

	for (size_t i = 0; op->inputs[0]->needs_grad && i < n; i++)
		dx[i] = i < b->count * each
				? (float)(scale * slope_at(attr_of(op), (double)y[i],
							   (double)b->labels[i]))
				: 0;
}

const struct mu_ref_kind mu_ref_element_loss = {
	.n_inputs = 1,
	.n_outputs = 1,
	.plan = plan,
	.forward = forward,
	.backward = backward,
};
