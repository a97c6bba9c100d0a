/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layer normalisation in loops of our own over rows, with channels last and in float32. Sums are
 * made in lanes and in a fixed order, so that results depend neither on the width of vectors nor on
 * the number of threads.
 */
#include "cpu.h"

#include <math.h>
#include <string.h>

#include <muster/base.h>

enum { LANES = 16, COLUMNS = 64, BLOCK_ROWS = 64 };

struct norm {
	const float *gamma, *beta; /* beta NULL: none */
	size_t n;
	float eps;
	bool rms;
};

struct statistics {
	float mean, factor;
};

/* Sum of x - shift, or of its squares. */
MU_INLINE float sum_of(const float *x, size_t n, float shift, bool squares)
{
	float lanes[LANES] = {0}, sum = 0;
	size_t i = 0;

	for (; i + LANES <= n; i += LANES)
		for (size_t k = 0; k < LANES; k++) {
			const float v = x[i + k] - shift;

			lanes[k] += squares ? v * v : v;
		}
	for (; i < n; i++)
		sum += squares ? (x[i] - shift) * (x[i] - shift) : x[i] - shift;
	for (size_t k = 0; k < LANES; k++)
		sum += lanes[k];
	return sum;
}

MU_LOOP static void normalise(const float *restrict x, float *restrict y, const struct norm *m,
			      struct statistics *s)
{
	const float mean = m->rms ? 0 : sum_of(x, m->n, 0, false) / (float)m->n;
	const float factor = 1 / sqrtf(sum_of(x, m->n, mean, true) / (float)m->n + m->eps);

	*s = (struct statistics){mean, factor};
	if (m->beta)
		for (size_t i = 0; i < m->n; i++)
			y[i] = (x[i] - mean) * factor * m->gamma[i] + m->beta[i];
	else
		for (size_t i = 0; i < m->n; i++)
			y[i] = (x[i] - mean) * factor * m->gamma[i];
}

static struct norm norm_of(const struct mu_op *op)
{
	const struct mu_layer_norm *a = op->attr;

	return (struct norm){.gamma = op->params[0].data,
			     .beta = op->n_params > 1 ? op->params[1].data : NULL,
			     .n = op->inputs[0]->shape.dims[1],
			     .eps = a->eps,
			     .rms = a->rms};
}

static void forward(struct mu_op *op, struct cpu_part part)
{
	const struct cpu_vectors *r = mu_cpu_vectors_of(op);
	const struct norm m = norm_of(op);
	const size_t n = mu_cpu_vectors_n(&op->inputs[0]->shape),
		     end = (part.index + 1) * n / part.n;
	const float *x = mu_cpu_pointer(op, r->x);
	float *y = mu_cpu_pointer(op, r->y);
	struct statistics *s = mu_cpu_pointer(op, r->statistics);

	for (size_t i = part.index * n / part.n; i < end; i++)
		normalise(x + i * m.n, y + i * m.n, &m, s + i);
}

/* dx = factor (g - mean of g - xhat mean of (g xhat)), g = dy gamma; rms: without the mean of g. */
MU_LOOP static void normalise_back(const float *restrict x, const float *restrict dy,
				   float *restrict dx, const struct norm *m, struct statistics s)
{
	float g_lanes[LANES] = {0}, mixed_lanes[LANES] = {0}, g = 0, mixed = 0;
	size_t i = 0;

	for (; i + LANES <= m->n; i += LANES)
		for (size_t k = 0; k < LANES; k++) {
			const float v = dy[i + k] * m->gamma[i + k];

			g_lanes[k] += v;
			mixed_lanes[k] += v * (x[i + k] - s.mean) * s.factor;
		}
	for (; i < m->n; i++) {
		g += dy[i] * m->gamma[i];
		mixed += dy[i] * m->gamma[i] * (x[i] - s.mean) * s.factor;
	}
	for (size_t k = 0; k < LANES; k++) {
		g += g_lanes[k];
		mixed += mixed_lanes[k];
	}
	g = m->rms ? 0 : g / (float)m->n;
	mixed /= (float)m->n;
	for (i = 0; i < m->n; i++)
		dx[i] = s.factor * (dy[i] * m->gamma[i] - g - (x[i] - s.mean) * s.factor * mixed);
}

static void backward(struct mu_op *op, struct cpu_part part)
{
	const struct cpu_vectors *r = mu_cpu_vectors_of(op);
	const struct norm m = norm_of(op);
	const size_t n = mu_cpu_vectors_n(&op->inputs[0]->shape),
		     end = (part.index + 1) * n / part.n;
	const float *x = mu_cpu_pointer(op, r->x), *dy = mu_cpu_pointer(op, r->dy);
	const struct statistics *s = mu_cpu_pointer(op, r->statistics);
	float *dx = mu_cpu_pointer(op, r->dx);

	for (size_t i = part.index * n / part.n; i < end; i++)
		normalise_back(x + i * m.n, dy + i * m.n, dx + i * m.n, &m, s[i]);
}

/* Sums over the rows of some columns: of dy xhat, and of dy. */
struct columns {
	double gamma[COLUMNS], beta[COLUMNS];
};

MU_LOOP static void sum_columns(const float *restrict x, const float *restrict dy,
				const struct statistics *s, size_t rows, size_t width, size_t n,
				struct columns *sums)
{
	float gamma[COLUMNS], beta[COLUMNS];

	for (size_t first = 0; first < rows; first += BLOCK_ROWS) {
		const size_t end = first + BLOCK_ROWS < rows ? first + BLOCK_ROWS : rows;

		memset(gamma, 0, sizeof gamma);
		memset(beta, 0, sizeof beta);
		for (size_t i = first; i < end; i++)
			for (size_t k = 0; k < n; k++) {
				const float v = dy[i * width + k];

				gamma[k] += v * (x[i * width + k] - s[i].mean) * s[i].factor;
				beta[k] += v;
			}
		for (size_t k = 0; k < n; k++) {
			sums->gamma[k] += (double)gamma[k];
			sums->beta[k] += (double)beta[k];
		}
	}
}

static void weights_of_norm(struct mu_op *op, struct cpu_part part)
{
	const struct cpu_vectors *r = mu_cpu_vectors_of(op);
	const size_t width = op->inputs[0]->shape.dims[1],
		     n = mu_cpu_vectors_n(&op->inputs[0]->shape);
	const size_t blocks = (width + COLUMNS - 1) / COLUMNS;
	const size_t end = (part.index + 1) * blocks / part.n;
	const float *x = mu_cpu_pointer(op, r->x), *dy = mu_cpu_pointer(op, r->dy);

	for (size_t b = part.index * blocks / part.n; b < end; b++) {
		const size_t at = b * COLUMNS;
		const size_t m = width - at < COLUMNS ? width - at : COLUMNS;
		struct columns sums = {{0}, {0}};

		sum_columns(x + at, dy + at, mu_cpu_pointer(op, r->statistics), n, width, m, &sums);
		for (size_t k = 0; k < m; k++) {
			float *gamma = op->params[0].grad + at + k;

			*gamma = (op->adds ? *gamma : 0) + (float)sums.gamma[k];
		}
		for (size_t k = 0; k < m && op->n_params > 1; k++) {
			float *beta = op->params[1].grad + at + k;

			*beta = (op->adds ? *beta : 0) + (float)sums.beta[k];
		}
	}
}

enum mu_status mu_cpu_plan_layer_norm(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	const size_t nbytes = mu_shape_n(&op->inputs[0]->shape) * sizeof(float);
	struct cpu_md md;
	struct cpu_vectors *r;

	MU_TRY(mu_cpu_set_plain_params(op));
	MU_TRY(mu_cpu_vectors_begin(p, &r));
	mu_cpu_plain(&md, &(struct mu_shape){1, {2 * mu_cpu_vectors_n(&op->inputs[0]->shape)}});
	r->statistics = mu_cpu_keep(p, &md);
	mu_cpu_share(p, forward, nbytes);
	if (op->phase != MU_PHASE_TRAIN)
		goto out;
	mu_cpu_vectors_turn(p, r);
	if (r->dx >= 0)
		mu_cpu_share(p, backward, nbytes);
	MU_TRY(mu_cpu_vectors_end(p, r));
	p->program = &p->impl->weights;
	mu_cpu_share(p, weights_of_norm, nbytes);
	op->can_add = true;
out:
	return st;
}
