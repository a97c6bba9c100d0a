/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Softmax cross-entropy along c, at every position of (n, c, space...) or once per sample of (n,
 * c). p = exp(x) / sum exp(x); loss = -sum over k of q[k] ln p[k], with ln p[k] = x[k] - ln(sum
 * exp(x)); dx = p - q, with the target q = (1 - E) onehot(label) + E / c. Both are sums over the
 * counted predictions; dx of other predictions is 0. (struct mu_batch; MXNet's SoftmaxOutput
 * without normalisation.) With class_weights w: q[k] w[k] in place of q[k], and dx = p sum of q w
 * - q w.
 */
#include "ref.h"

#include <math.h>

#include <muster/base.h>

static size_t count_predictions(const struct mu_op *op)
{
	return op->inputs[0]->shape.dims[0] * mu_shape_positions(&op->inputs[0]->shape);
}

static enum mu_status plan(struct mu_op *op)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_ref_need_shape(op, "output", &op->outputs[0]->shape, &op->inputs[0]->shape));
	op->workspace_nbytes = count_predictions(op) * sizeof(struct mu_prediction);
out:
	return st;
}

/* One prediction: elements at + k * stride, k < classes, of the tensor. */
struct prediction {
	size_t at, stride, classes, sample;
	float label;
};

/* i numbers the positions of all samples. */
static struct prediction prediction(const struct mu_op *op, size_t i)
{
	const struct mu_shape *shape = &op->inputs[0]->shape;
	size_t area = mu_shape_positions(shape), classes = shape->dims[1], sample = i / area;

	return (struct prediction){
		.at = sample * classes * area + i % area,
		.stride = area,
		.classes = classes,
		.sample = sample,
		.label = sample < op->batch->count ? op->batch->labels[i] : 0,
	};
}

static bool counts(const struct mu_batch *b, const struct prediction *r)
{
	return r->sample < b->count && !(b->use_ignore && r->label == b->ignore_label);
}

static double target(const struct mu_batch *b, const struct prediction *r, size_t k)
{
	double smoothing = (double)b->label_smoothing;

	return ((k == (size_t)r->label ? 1 - smoothing : 0) + smoothing / (double)r->classes) *
	       (b->class_weights ? (double)b->class_weights[k] : 1);
}

/* The sum of all targets. */
static double total(const struct mu_batch *b, const struct prediction *r)
{
	double sum = 0;

	if (!b->class_weights)
		return 1;
	for (size_t k = 0; k < r->classes; k++)
		sum += target(b, r, k);
	return sum;
}

/* Subtract the largest x first, so that no exponential overflows. Returns ln(sum exp(x)). */
static double softmax(const float *x, float *p, const struct prediction *r)
{
	double largest = (double)x[r->at], sum = 0;

	for (size_t k = 1; k < r->classes; k++)
		if ((double)x[r->at + k * r->stride] > largest)
			largest = (double)x[r->at + k * r->stride];
	for (size_t k = 0; k < r->classes; k++)
		sum += exp((double)x[r->at + k * r->stride] - largest);
	for (size_t k = 0; k < r->classes; k++)
		p[r->at + k * r->stride] =
			(float)(exp((double)x[r->at + k * r->stride] - largest) / sum);
	return largest + log(sum);
}

enum mu_status mu_ref_check_labels(const struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_batch *b = op->batch;
	size_t n = op->inputs[0]->shape.dims[0];

	if (b->count > n)
		MU_FAIL(MU_ERR_ARGUMENT, "%s: %zu samples count in a batch of %zu",
			op->name, b->count, n);
	if (!(b->label_smoothing >= 0 && b->label_smoothing < 1))
		MU_FAIL(MU_ERR_ARGUMENT, "%s (softmax): label smoothing %g is not in [0, 1)",
			op->name, (double)b->label_smoothing);
	for (size_t i = 0; i < count_predictions(op); i++) {
		struct prediction r = prediction(op, i);

		if (counts(b, &r) && !(r.label >= 0 && r.label < (float)r.classes))
			MU_FAIL(MU_ERR_ARGUMENT,
				"%s: the label of sample %zu, position %zu is %g; it "
				"must be 0 to %zu",
				op->name, mu_ref_sample(b, r.sample), i % r.stride,
				(double)r.label, r.classes - 1);
	}
out:
	return st;
}

/* NaN is equal to everything. */
static uint32_t place_of_label(const float *p, const struct prediction *r)
{
	const size_t label = (size_t)r->label;
	const float own = p[r->at + label * r->stride];
	uint32_t place = 0;

	for (size_t k = 0; k < r->classes; k++) {
		const float other = p[r->at + k * r->stride];

		place += other > own || (k < label && !(other < own));
	}
	return place;
}

/* log_sum: ln(sum exp(x)). */
static struct mu_prediction found(const struct mu_op *op, const struct prediction *r,
				  double log_sum)
{
	const float *x = op->inputs[0]->data;
	const double own = (double)x[r->at + (size_t)r->label * r->stride];
	struct mu_prediction out = {.cross_entropy = (float)(log_sum - own),
				    .place = place_of_label(op->outputs[0]->data, r)};

	for (size_t k = 0; k < r->classes; k++)
		if (target(op->batch, r, k) > 0)
			out.loss += target(op->batch, r, k) *
				    (log_sum - (double)x[r->at + k * r->stride]);
	return out;
}

static enum mu_status forward(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	struct mu_batch *b = op->batch;
	struct mu_prediction *predictions = op->workspace;

	b->loss = 0;
	b->predictions = predictions;
	MU_TRY(mu_ref_check_labels(op));
	for (size_t i = 0; i < count_predictions(op); i++) {
		struct prediction r = prediction(op, i);
		double log_sum = softmax(op->inputs[0]->data, op->outputs[0]->data, &r);

		predictions[i] =
			counts(b, &r) ? found(op, &r, log_sum) : (struct mu_prediction){.loss = 0};
		b->loss += predictions[i].loss;
	}
out:
	return st;
}

static void backward(struct mu_op *op)
{
	const struct mu_batch *b = op->batch;
	const float *p = op->outputs[0]->data;
	const double scale = (double)mu_batch_loss_scale(b);
	float *dx = op->inputs[0]->grad;

	if (!op->inputs[0]->needs_grad)
		return;
	for (size_t i = 0; i < count_predictions(op); i++) {
		struct prediction r = prediction(op, i);
		const double all = counts(b, &r) ? total(b, &r) : 0;

		for (size_t k = 0; k < r.classes; k++) {
			size_t e = r.at + k * r.stride;

			dx[e] = counts(b, &r)
					? (float)(scale * ((double)p[e] * all - target(b, &r, k)))
					: 0;
		}
	}
}

const struct mu_ref_kind mu_ref_softmax = {
	.n_inputs = 1,
	.n_outputs = 1,
	.in_place = true,
	.plan = plan,
	.forward = forward,
	.backward = backward,
};
