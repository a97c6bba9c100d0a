/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Group normalisation, in the layout of the input. Sums of each channel of each sample are made in
 * double, in lanes and in one order; statistics of groups follow from them, then all values are
 * those of their channel times a factor, and a shift. Mean and factor of groups are kept.
 */
#include "cpu.h"

#include <math.h>
#include <stdlib.h>

#include <muster/base.h>

enum { LANES = 16 };

struct norm {
	struct cpu_blocks blocks;
	size_t samples, channels, groups, area;
	int statistics;        /* mean and factor of each group */
	int sums, sums_again;  /* doubles: two of each channel of each sample */
	int terms, terms_again; /* of each channel of each sample: struct term, as arrays */
};

/* Forward: y = (x - mean) a + c. Backward: dx = dy a - b - (x - mean) c. */
struct terms {
	float *mean, *a, *b, *c;
};

static const struct norm *norm_of(const struct mu_op *op)
{
	return ((const struct cpu_op *)op->impl)->own;
}

static struct terms terms_of(const struct mu_op *op, int memory)
{
	const size_t n = norm_of(op)->samples * norm_of(op)->channels;
	float *v = mu_cpu_pointer(op, memory);

	return (struct terms){v, v + n, v + 2 * n, v + 3 * n};
}

/* ---- sums of v and of v x ---- */

/* One channel. */
MU_LOOP static void sum_group_run(const float *v, const float *x, size_t n, double *first,
				  double *second)
{
	double a[LANES] = {0}, b[LANES] = {0};
	size_t i = 0;

	for (; i + LANES <= n; i += LANES)
		for (size_t k = 0; k < LANES; k++) {
			a[k] += (double)v[i + k];
			b[k] += (double)v[i + k] * (double)x[i + k];
		}
	for (; i < n; i++) {
		a[i % LANES] += (double)v[i];
		b[i % LANES] += (double)v[i] * (double)x[i];
	}
	*first = *second = 0;
	for (size_t k = 0; k < LANES; k++) {
		*first += a[k];
		*second += b[k];
	}
}

/* `inner` channels beside each other. */
MU_LOOP static void sum_group_block(const float *restrict v, const float *restrict x, size_t area,
				    size_t inner, double *restrict first, double *restrict second)
{
	for (size_t k = 0; k < inner; k++)
		first[k] = second[k] = 0;
	for (size_t p = 0; p < area; p++)
		for (size_t k = 0; k < inner; k++) {
			first[k] += (double)v[p * inner + k];
			second[k] += (double)v[p * inner + k] * (double)x[p * inner + k];
		}
}

static void sum(const struct norm *m, struct cpu_part part, const float *v, const float *x,
		double *sums)
{
	const struct cpu_range r = mu_cpu_range(m->blocks.outer, part);
	const size_t inner = m->blocks.inner, n = m->samples * m->channels;

	for (size_t o = r.from; o < r.to; o++) {
		const size_t at = o * m->area * inner;
		double *first = sums + o * inner;

		if (inner == 1)
			sum_group_run(v + at, x + at, m->area, first, first + n);
		else
			sum_group_block(v + at, x + at, m->area, inner, first, first + n);
	}
}

static void sum_x(struct mu_op *op, struct cpu_part part)
{
	const struct norm *m = norm_of(op);
	const float *x = mu_cpu_pointer(op, m->blocks.x);

	sum(m, part, x, x, mu_cpu_pointer(op, m->sums));
}

static void sum_dy(struct mu_op *op, struct cpu_part part)
{
	const struct norm *m = norm_of(op);

	sum(m, part, mu_cpu_pointer(op, m->blocks.dy), mu_cpu_pointer(op, m->blocks.x_again),
	    mu_cpu_pointer(op, m->sums_again));
}

/* ---- groups ---- */

/* The channels of group i of all samples are those from i own on. */
static void set_statistics(struct mu_op *op)
{
	const struct norm *m = norm_of(op);
	const size_t own = m->channels / m->groups, planes = m->samples * m->channels;
	const double n = (double)own * (double)m->area;
	const double eps = (double)((const struct mu_group_norm *)op->attr)->eps;
	const double *sums = mu_cpu_pointer(op, m->sums);
	const struct terms t = terms_of(op, m->terms);
	float *of = mu_cpu_pointer(op, m->statistics);

	for (size_t i = 0; i < m->samples * m->groups; i++) {
		double mean = 0, square = 0;

		for (size_t k = i * own; k < (i + 1) * own; k++) {
			mean += sums[k] / n;
			square += sums[planes + k] / n;
		}
		of[2 * i] = (float)mean;
		of[2 * i + 1] = (float)(1 / sqrt(fmax(square - mean * mean, 0) + eps));
		for (size_t k = i * own; k < (i + 1) * own; k++) {
			t.mean[k] = of[2 * i];
			t.a[k] = of[2 * i + 1] * op->params[0].data[k % m->channels];
			t.c[k] = op->params[1].data[k % m->channels];
		}
	}
}

static void set_gradients(struct mu_op *op)
{
	const struct norm *m = norm_of(op);
	const size_t own = m->channels / m->groups, planes = m->samples * m->channels;
	const double *sums = mu_cpu_pointer(op, m->sums_again);
	const float *of = mu_cpu_pointer(op, m->statistics);

	for (size_t c = 0; c < m->channels; c++) {
		double gamma = 0, beta = 0;

		for (size_t k = c; k < planes; k += m->channels) {
			const size_t i = k / own;

			gamma += (double)of[2 * i + 1] *
				 (sums[planes + k] - (double)of[2 * i] * sums[k]);
			beta += sums[k];
		}
		op->params[0].grad[c] = (op->adds ? op->params[0].grad[c] : 0) + (float)gamma;
		op->params[1].grad[c] = (op->adds ? op->params[1].grad[c] : 0) + (float)beta;
	}
}

static void set_terms(struct mu_op *op)
{
	const struct norm *m = norm_of(op);
	const size_t own = m->channels / m->groups, planes = m->samples * m->channels;
	const double n = (double)own * (double)m->area;
	const double *sums = mu_cpu_pointer(op, m->sums_again);
	const float *of = mu_cpu_pointer(op, m->statistics), *gamma = op->params[0].data;
	const struct terms t = terms_of(op, m->terms_again);

	for (size_t i = 0; i < m->samples * m->groups; i++) {
		const double mean = (double)of[2 * i], factor = (double)of[2 * i + 1];
		double g = 0, mixed = 0;

		for (size_t k = i * own; k < (i + 1) * own; k++) {
			const double by = (double)gamma[k % m->channels] / n;

			g += by * sums[k];
			mixed += by * factor * (sums[planes + k] - mean * sums[k]);
		}
		for (size_t k = i * own; k < (i + 1) * own; k++) {
			t.mean[k] = of[2 * i];
			t.a[k] = (float)(factor * (double)gamma[k % m->channels]);
			t.b[k] = (float)(factor * g);
			t.c[k] = (float)(factor * factor * mixed);
		}
	}
}

/* ---- values ---- */

MU_LOOP static void normalise_group(const float *restrict x, float *restrict y, size_t area,
				    size_t inner, const struct terms *t)
{
	if (inner == 1) {
		const float mean = *t->mean, a = *t->a, c = *t->c;

		for (size_t p = 0; p < area; p++)
			y[p] = (x[p] - mean) * a + c;
		return;
	}
	for (size_t p = 0; p < area; p++)
		for (size_t k = 0; k < inner; k++)
			y[p * inner + k] = (x[p * inner + k] - t->mean[k]) * t->a[k] + t->c[k];
}

MU_LOOP static void normalise_group_back(const float *restrict x, const float *restrict dy,
					 float *restrict dx, const struct norm *m,
					 const struct terms *t)
{
	const size_t inner = m->blocks.inner;

	if (inner == 1) {
		const float mean = *t->mean, a = *t->a, b = *t->b, c = *t->c;

		for (size_t p = 0; p < m->area; p++)
			dx[p] = dy[p] * a - b - (x[p] - mean) * c;
		return;
	}
	for (size_t p = 0; p < m->area; p++)
		for (size_t k = 0; k < inner; k++) {
			const size_t i = p * inner + k;

			dx[i] = dy[i] * t->a[k] - t->b[k] - (x[i] - t->mean[k]) * t->c[k];
		}
}

static struct terms terms_from(struct terms t, size_t at)
{
	return (struct terms){t.mean + at, t.a + at, t.b + at, t.c + at};
}

static void forward(struct mu_op *op, struct cpu_part part)
{
	const struct norm *m = norm_of(op);
	const struct cpu_range r = mu_cpu_range(m->blocks.outer, part);
	const size_t inner = m->blocks.inner, n = m->area * inner;
	const float *x = mu_cpu_pointer(op, m->blocks.x);
	float *y = mu_cpu_pointer(op, m->blocks.y);

	for (size_t o = r.from; o < r.to; o++) {
		const struct terms t = terms_from(terms_of(op, m->terms), o * inner);

		normalise_group(x + o * n, y + o * n, m->area, inner, &t);
	}
}

static void backward(struct mu_op *op, struct cpu_part part)
{
	const struct norm *m = norm_of(op);
	const struct cpu_range r = mu_cpu_range(m->blocks.outer, part);
	const size_t inner = m->blocks.inner, n = m->area * inner;
	const float *x = mu_cpu_pointer(op, m->blocks.x_again);
	const float *dy = mu_cpu_pointer(op, m->blocks.dy);
	float *dx = mu_cpu_pointer(op, m->blocks.dx);

	for (size_t o = r.from; o < r.to; o++) {
		const struct terms t = terms_from(terms_of(op, m->terms_again), o * inner);

		normalise_group_back(x + o * n, dy + o * n, dx + o * n, m, &t);
	}
}

/* ---- plan ---- */

/* Sums, as pairs of floats, and terms. */
static void reserve(struct cpu_plan *p, const struct norm *m, int *sums, int *terms)
{
	const size_t planes = m->samples * m->channels;

	*sums = mu_cpu_floats(p, 2 * planes * sizeof(double) / sizeof(float));
	*terms = mu_cpu_floats(p, 4 * planes);
}

enum mu_status mu_cpu_plan_group_norm(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	const struct mu_group_norm *a = op->attr;
	const struct mu_shape *shape = &op->inputs[0]->shape;
	const size_t nbytes = mu_shape_n(shape) * sizeof(float);
	struct norm *m = calloc(1, sizeof *m);
	struct cpu_md md;

	p->impl->own = m;
	if (!m)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the plan of %s", op->name);
	m->samples = shape->dims[0];
	m->channels = shape->dims[1];
	m->groups = a->groups ? (size_t)a->groups : m->channels;
	m->area = mu_shape_positions(shape);
	MU_TRY(mu_cpu_set_plain_params(op));
	MU_TRY(mu_cpu_blocks_begin(p, &m->blocks));
	mu_cpu_plain(&md, &(struct mu_shape){1, {2 * m->samples * m->groups}});
	m->statistics = mu_cpu_keep(p, &md);
	reserve(p, m, &m->sums, &m->terms);
	mu_cpu_share(p, sum_x, nbytes);
	mu_cpu_call(p, set_statistics);
	mu_cpu_share(p, forward, nbytes);
	if (op->phase != MU_PHASE_TRAIN)
		goto out;
	MU_TRY(mu_cpu_blocks_turn(p, &m->blocks, true));
	reserve(p, m, &m->sums_again, &m->terms_again);
	mu_cpu_share(p, sum_dy, nbytes);
	mu_cpu_call(p, set_gradients);
	op->can_add = true;
	if (!op->inputs[0]->needs_grad)
		goto out;
	mu_cpu_call(p, set_terms);
	mu_cpu_share(p, backward, nbytes);
	MU_TRY(mu_cpu_blocks_end(p, &m->blocks));
out:
	return st;
}
