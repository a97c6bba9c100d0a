/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dice by region; formulas: struct mu_region_loss. With I = sum p t, P = sum p, T = sum t of a
 * class, D = P + T + smooth and C classes, the gradient of p is g = -(2 t D - (2 I + smooth)) / (C
 * D^2) where a position counts, and dx = p (g - sum over the classes of g p).
 */
#include "ref.h"

#include <math.h>

#include <muster/base.h>

struct sums {
	double both, found, targets;
};

/* Of one sample: its first element and position, classes, positions. */
struct sample {
	const struct mu_batch *batch;
	size_t at, first, classes, area;
	bool counts;
};

static struct sample sample_of(const struct mu_op *op, size_t s)
{
	const struct mu_shape *shape = &op->inputs[0]->shape;
	const size_t area = mu_shape_positions(shape), classes = shape->dims[1];

	return (struct sample){op->batch, s * classes * area, s * area, classes, area,
			       s < op->batch->count};
}

static bool counts(const struct sample *s, size_t i)
{
	const struct mu_batch *b = s->batch;

	return s->counts && !(b->use_ignore && b->labels[s->first + i] == b->ignore_label);
}

static size_t label_of(const struct sample *s, size_t i)
{
	return (size_t)s->batch->labels[s->first + i];
}

static struct sums sums_of(const struct sample *s, const float *p, size_t k)
{
	struct sums out = {0};

	for (size_t i = 0; i < s->area; i++) {
		const double t = counts(s, i) && label_of(s, i) == k;

		if (!counts(s, i))
			continue;
		out.both += t * (double)p[k * s->area + i];
		out.found += (double)p[k * s->area + i];
		out.targets += t;
	}
	return out;
}

static double smooth_of(const struct mu_op *op)
{
	return (double)((const struct mu_region_loss *)op->attr)->smooth;
}

static enum mu_status plan(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_shape *in = &op->inputs[0]->shape;

	MU_TRY(mu_ref_need_shape(op, "output", &op->outputs[0]->shape, in));
	op->workspace_nbytes =
		in->dims[0] * mu_shape_positions(in) * sizeof(struct mu_prediction);
out:
	return st;
}

/* Softmax of one position, and what is known of its label. */
static struct mu_prediction predict(const struct sample *s, const float *x, float *p, size_t i)
{
	const size_t label = counts(s, i) ? label_of(s, i) : 0;
	double largest = (double)x[i], sum = 0;
	struct mu_prediction out = {.loss = 0};

	for (size_t k = 1; k < s->classes; k++)
		largest = fmax(largest, (double)x[k * s->area + i]);
	for (size_t k = 0; k < s->classes; k++)
		sum += exp((double)x[k * s->area + i] - largest);
	out.cross_entropy = (float)(largest + log(sum) - (double)x[label * s->area + i]);
	for (size_t k = 0; k < s->classes; k++)
		p[k * s->area + i] = (float)(exp((double)x[k * s->area + i] - largest) / sum);
	for (size_t k = 0; k < s->classes; k++) {
		const float own = p[label * s->area + i], other = p[k * s->area + i];

		out.place += other > own || (k < label && !(other < own));
	}
	return counts(s, i) ? out : (struct mu_prediction){.loss = 0};
}

static enum mu_status forward(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	struct mu_batch *b = op->batch;
	struct mu_prediction *predictions = op->workspace;
	const double smooth = smooth_of(op);

	b->loss = 0;
	b->predictions = predictions;
	MU_TRY(mu_ref_check_labels(op));
	for (size_t n = 0; n < op->inputs[0]->shape.dims[0]; n++) {
		const struct sample s = sample_of(op, n);
		float *p = op->outputs[0]->data + s.at;
		double loss = 0;

		for (size_t i = 0; i < s.area; i++)
			predictions[s.first + i] = predict(&s, op->inputs[0]->data + s.at, p, i);
		for (size_t k = 0; k < s.classes; k++) {
			const struct sums c = sums_of(&s, p, k);

			loss += 1 - (2 * c.both + smooth) / (c.found + c.targets + smooth);
		}
		predictions[s.first].loss = s.counts ? loss / (double)s.classes : 0;
		b->loss += predictions[s.first].loss;
	}
out:
	return st;
}

/* Two passes over the classes: the gradient of p goes into dx first. */
static void sample_back(const struct sample *s, const float *p, float *dx, double smooth,
			double scale)
{
	for (size_t k = 0; k < s->classes; k++) {
		const struct sums c = sums_of(s, p, k);
		const double below = c.found + c.targets + smooth, above = 2 * c.both + smooth;

		for (size_t i = 0; i < s->area; i++) {
			const double t = counts(s, i) && label_of(s, i) == k;

			dx[k * s->area + i] =
				counts(s, i) ? (float)(-(2 * t * below - above) /
						       ((double)s->classes * below * below))
					     : 0;
		}
	}
	for (size_t i = 0; i < s->area; i++) {
		double mean = 0;

		for (size_t k = 0; k < s->classes; k++)
			mean += (double)dx[k * s->area + i] * (double)p[k * s->area + i];
		for (size_t k = 0; k < s->classes; k++)
			dx[k * s->area + i] = (float)(scale * (double)p[k * s->area + i] *
						      ((double)dx[k * s->area + i] - mean));
	}
}

static void backward(struct mu_op *op)
{
	const double scale = (double)mu_batch_loss_scale(op->batch);

	for (size_t n = 0; op->inputs[0]->needs_grad && n < op->inputs[0]->shape.dims[0]; n++) {
		const struct sample s = sample_of(op, n);

		sample_back(&s, op->outputs[0]->data + s.at, op->inputs[0]->grad + s.at,
			    smooth_of(op), scale);
	}
}

const struct mu_ref_kind mu_ref_region_loss = {
	.n_inputs = 1,
	.n_outputs = 1,
	.plan = plan,
	.forward = forward,
	.backward = backward,
};
