/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Losses by element; formulas: ref/element_loss.c. On plain tensors in float32, since targets are
 * plain. Threads take parts of a sample, whose losses are added in double, in lanes, in one order.
 */
#include "cpu.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <muster/base.h>

#include "device/cpu/shared/exponential.h"
#include "device/ref/ref.h"

enum { PART = 4096, LANES = 16 };

struct loss {
	size_t n, each, parts; /* samples, their elements and parts */
	int x, y, dx;
	int sums; /* of each part of each sample */
};

struct sum {
	double loss;
	size_t wrong; /* targets */
};

static const struct loss *loss_of(const struct mu_op *op)
{
	return ((const struct cpu_op *)op->impl)->own;
}

/* ---- losses of n elements ---- */

MU_INLINE double element_loss(enum mu_element_form form, float x, float t, double delta)
{
	const double d = fabs((double)x - (double)t);

	switch (form) {
	case MU_ELEMENT_SQUARED: return d * d;
	case MU_ELEMENT_ABSOLUTE: return d;
	case MU_ELEMENT_HUBER: return d <= delta ? d * d / 2 : delta * (d - delta / 2);
	case MU_ELEMENT_LOGISTIC:
		return (double)(x > 0 ? x : 0) - (double)x * (double)t +
		       (double)log_of_1_and_exponential(x);
	case MU_ELEMENT_N: break;
	}
	return (double)NAN;
}

MU_INLINE double sum_of(enum mu_element_form form, const float *x, const float *t, size_t n,
			double delta)
{
	double lanes[LANES] = {0}, sum = 0;
	size_t i = 0;

	for (; i + LANES <= n; i += LANES)
		for (size_t k = 0; k < LANES; k++)
			lanes[k] += element_loss(form, x[i + k], t[i + k], delta);
	for (; i < n; i++)
		sum += element_loss(form, x[i], t[i], delta);
	for (size_t k = 0; k < LANES; k++)
		sum += lanes[k];
	return sum;
}

MU_LOOP static double squared_losses(const float *restrict x, const float *restrict t, size_t n)
{
	return sum_of(MU_ELEMENT_SQUARED, x, t, n, 0);
}

MU_LOOP static double absolute_losses(const float *restrict x, const float *restrict t, size_t n)
{
	return sum_of(MU_ELEMENT_ABSOLUTE, x, t, n, 0);
}

MU_LOOP static double huber_losses(const float *restrict x, const float *restrict t, size_t n,
				   double delta)
{
	return sum_of(MU_ELEMENT_HUBER, x, t, n, delta);
}

MU_LOOP static double logistic_losses(const float *restrict x, const float *restrict t, size_t n)
{
	return sum_of(MU_ELEMENT_LOGISTIC, x, t, n, 0);
}

static double losses_of(const struct mu_element_loss *l, const float *x, const float *t, size_t n)
{
	switch (l->form) {
	case MU_ELEMENT_SQUARED: return squared_losses(x, t, n);
	case MU_ELEMENT_ABSOLUTE: return absolute_losses(x, t, n);
	case MU_ELEMENT_HUBER: return huber_losses(x, t, n, (double)l->delta);
	case MU_ELEMENT_LOGISTIC: return logistic_losses(x, t, n);
	case MU_ELEMENT_N: break;
	}
	return (double)NAN;
}

/* How many targets are not finite, or, of probabilities, not from 0 to 1. */
MU_LOOP static unsigned wrong_targets(const float *restrict t, size_t n,
				      int probabilities)
{
	const float most = probabilities ? 1 : FLT_MAX, least = probabilities ? 0 : -FLT_MAX;
	unsigned wrong = 0;

	for (size_t i = 0; i < n; i++)
		wrong += t[i] >= least && t[i] <= most ? 0 : 1;
	return wrong;
}

/* ---- gradients of n elements from the outputs ---- */

struct slope {
	float scale, delta;
};

MU_LOOP static void linear_slopes(const float *restrict y, const float *restrict t,
				  float *restrict dx, size_t n, struct slope by)
{
	for (size_t i = 0; i < n; i++)
		dx[i] = by.scale * (y[i] - t[i]);
}

/* NaN stays NaN. */
MU_LOOP static void absolute_slopes(const float *restrict y, const float *restrict t,
				    float *restrict dx, size_t n, struct slope by)
{
	for (size_t i = 0; i < n; i++) {
		const float d = y[i] - t[i], below = d < 0 ? -by.scale : by.scale * d;

		dx[i] = d > 0 ? by.scale : below;
	}
}

MU_LOOP static void huber_slopes(const float *restrict y, const float *restrict t,
				 float *restrict dx, size_t n, struct slope by)
{
	for (size_t i = 0; i < n; i++) {
		const float d = y[i] - t[i], most = d > by.delta ? by.delta : d;

		dx[i] = by.scale * (most < -by.delta ? -by.delta : most);
	}
}

static void set_slopes(const struct mu_element_loss *l, const float *y, const float *t, float *dx,
		       struct cpu_range r, float scale)
{
	const struct slope by = {l->form == MU_ELEMENT_SQUARED ? 2 * scale : scale, l->delta};
	const size_t n = r.to - r.from;

	switch (l->form) {
	case MU_ELEMENT_ABSOLUTE:
		absolute_slopes(y + r.from, t + r.from, dx + r.from, n, by);
		break;
	case MU_ELEMENT_HUBER: huber_slopes(y + r.from, t + r.from, dx + r.from, n, by); break;
	case MU_ELEMENT_SQUARED:
	case MU_ELEMENT_LOGISTIC:
		linear_slopes(y + r.from, t + r.from, dx + r.from, n, by);
		break;
	case MU_ELEMENT_N: break;
	}
}

/* ---- work ---- */

static void forward(struct mu_op *op, struct cpu_part part)
{
	const struct loss *m = loss_of(op);
	const struct mu_element_loss *l = op->attr;
	const struct mu_batch *b = op->batch;
	const struct cpu_range r = mu_cpu_range(m->n * m->parts, part);
	const float *x = mu_cpu_pointer(op, m->x);
	struct sum *sums = mu_cpu_pointer(op, m->sums);
	float *y = mu_cpu_pointer(op, m->y);

	for (size_t i = r.from; i < r.to; i++) {
		const size_t sample = i / m->parts, first = i % m->parts * PART;
		const size_t n = first + PART < m->each ? PART : m->each - first;
		const size_t at = sample * m->each + first;

		if (x != y)
			memcpy(y + at, x + at, n * sizeof *y);
		sums[i] = (struct sum){0, 0};
		if (sample < b->count)
			sums[i] = (struct sum){
				losses_of(l, y + at, b->labels + at, n),
				wrong_targets(b->labels + at, n, l->form == MU_ELEMENT_LOGISTIC)};
		if (l->form == MU_ELEMENT_LOGISTIC)
			mu_cpu_sigmoid(y + at, n);
	}
}

static enum mu_status conclude(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct loss *m = loss_of(op);
	const struct sum *sums = mu_cpu_pointer(op, m->sums);
	struct mu_prediction *predictions = op->workspace;
	struct mu_batch *b = op->batch;
	size_t wrong = b->count > m->n;

	b->loss = 0;
	b->predictions = predictions;
	for (size_t s = 0; s < m->n; s++) {
		double loss = 0;

		for (size_t k = 0; k < m->parts; k++, sums++) {
			loss += sums->loss;
			wrong += sums->wrong;
		}
		predictions[s] = (struct mu_prediction){.loss = loss / (double)m->each};
		b->loss += predictions[s].loss;
	}
	if (wrong)
		MU_TRY(mu_ref_check_targets(op));
out:
	return st;
}

static void backward(struct mu_op *op, struct cpu_part part)
{
	const struct loss *m = loss_of(op);
	const struct mu_batch *b = op->batch;
	const float scale = (float)((double)mu_batch_loss_scale(b) / (double)m->each);
	const size_t counted = b->count * m->each;
	float *dx = mu_cpu_pointer(op, m->dx);
	struct cpu_range r = mu_cpu_range(m->n * m->each, part);

	if (r.to > counted) {
		const size_t from = r.from > counted ? r.from : counted;

		memset(dx + from, 0, (r.to - from) * sizeof *dx);
		r.to = from;
	}
	if (r.to > r.from)
		set_slopes(op->attr, mu_cpu_pointer(op, m->y), b->labels, dx, r, scale);
}

/* ---- plan ---- */

static enum mu_status plan_backward(struct cpu_plan *p, struct loss *m, const struct cpu_md *have,
				    const struct cpu_md *plain)
{
	enum mu_status st = MU_OK;
	const int gradient = mu_cpu_memory(p, have, CPU_IN_GRAD, 0);

	p->program = &p->impl->backward;
	m->dx = mu_dnnl_equal(have, plain) ? gradient : mu_cpu_temporary(p, plain);
	mu_cpu_share(p, backward, m->n * m->each * sizeof(float));
	if (m->dx != gradient)
		MU_TRY(mu_cpu_reorder(p, m->dx, gradient));
out:
	return st;
}

enum mu_status mu_cpu_plan_element_loss(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	const struct mu_shape *shape = &op->inputs[0]->shape;
	struct loss *own = calloc(1, sizeof *own);
	struct cpu_md have, plain;

	p->impl->own = own;
	if (!own)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the plan of %s", op->name);
	own->n = shape->dims[0];
	own->each = mu_shape_n(shape) / own->n;
	own->parts = (own->each + PART - 1) / PART;
	op->workspace_nbytes = own->n * sizeof(struct mu_prediction);
	mu_cpu_tensor_md(&have, op->inputs[0]);
	mu_cpu_plain(&plain, shape);
	MU_TRY(mu_cpu_set_tensor(op->outputs[0], &plain));
	own->x = mu_cpu_memory(p, &have, CPU_IN_DATA, 0);
	own->y = mu_cpu_memory(p, &plain, CPU_OUT_DATA, 0);
	if (!mu_dnnl_equal(&have, &plain)) {
		MU_TRY(mu_cpu_reorder(p, own->x, own->y));
		own->x = own->y;
	}
	own->sums = mu_cpu_floats(p, own->n * own->parts * sizeof(struct sum) / sizeof(float));
	mu_cpu_share(p, forward, own->n * own->each * sizeof(float));
	mu_cpu_try_call(p, conclude);
	if (op->inputs[0]->needs_grad)
		MU_TRY(plan_backward(p, own, &have, &plain));
out:
	return st;
}
