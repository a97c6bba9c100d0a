/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layer normalisation, positions and steps in loops of our own over rows, with channels last and in
 * float32; smooth activations on oneDNN. Sums are made in lanes and in a fixed order, so that
 * results depend neither on the width of vectors nor on the number of threads.
 */
#include "cpu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <muster/base.h>

enum { LANES = 16, COLUMNS = 64, BLOCK_ROWS = 64 };

/* Memories of rows; dx -1: not wanted. */
struct rows {
	int x, y, dx, dy;
	int statistics; /* of a norm: mean and factor of each row */
	int gradient;   /* the input's, in the layout it has */
};

static const struct rows *rows_of(const struct mu_op *op)
{
	return ((const struct cpu_op *)op->impl)->own;
}

static void last_md(struct cpu_md *md, const struct mu_shape *shape)
{
	mu_cpu_tag(md, shape, shape->ndims == 4 ? dnnl_acdb : dnnl_format_tag_undef);
}

/* The memories of forward; the output gets channels last. */
static enum mu_status begin_rows(struct cpu_plan *p, struct rows **out)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	struct cpu_md have, last;
	struct rows *r = calloc(1, sizeof *r);

	*out = p->impl->own = r;
	if (!r)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the plan of %s", op->name);
	r->dx = -1;
	mu_cpu_tensor_md(&have, op->inputs[0]);
	last_md(&last, &op->inputs[0]->shape);
	MU_TRY(mu_cpu_as(p, mu_cpu_memory(p, &have, CPU_IN_DATA, 0), &last,
			 op->phase == MU_PHASE_TRAIN, &r->x));
	last_md(&last, &op->outputs[0]->shape);
	MU_TRY(mu_cpu_set_tensor(op->outputs[0], &last));
	r->y = mu_cpu_memory(p, &last, CPU_OUT_DATA, 0);
out:
	return st;
}

/* Those of backward, whose step comes next. */
static void turn_rows(struct cpu_plan *p, struct rows *r)
{
	struct cpu_md have, last;

	p->program = &p->impl->backward;
	last_md(&last, &p->op->outputs[0]->shape);
	r->dy = mu_cpu_memory(p, &last, CPU_OUT_GRAD, 0);
	if (!p->op->inputs[0]->needs_grad)
		return;
	mu_cpu_tensor_md(&have, p->op->inputs[0]);
	last_md(&last, &p->op->inputs[0]->shape);
	r->gradient = r->dx = mu_cpu_memory(p, &have, CPU_IN_GRAD, 0);
	if (!mu_dnnl_equal(&have, &last))
		r->dx = mu_cpu_temporary(p, &last);
}

/* Behind that step. */
static enum mu_status end_rows(struct cpu_plan *p, const struct rows *r)
{
	return r->dx >= 0 && r->dx != r->gradient ? mu_cpu_reorder(p, r->dx, r->gradient) : MU_OK;
}

static size_t n_rows(const struct mu_shape *shape)
{
	return mu_shape_n(shape) / shape->dims[1];
}

/* ---- layer normalisation ---- */

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

static void forward_norm(struct mu_op *op, struct cpu_part part)
{
	const struct rows *r = rows_of(op);
	const struct norm m = norm_of(op);
	const size_t n = n_rows(&op->inputs[0]->shape), end = (part.index + 1) * n / part.n;
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
		dx[i] = s.factor *
			(dy[i] * m->gamma[i] - g - (x[i] - s.mean) * s.factor * mixed);
}

static void backward_norm(struct mu_op *op, struct cpu_part part)
{
	const struct rows *r = rows_of(op);
	const struct norm m = norm_of(op);
	const size_t n = n_rows(&op->inputs[0]->shape), end = (part.index + 1) * n / part.n;
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
	const struct rows *r = rows_of(op);
	const size_t width = op->inputs[0]->shape.dims[1], n = n_rows(&op->inputs[0]->shape);
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

static enum mu_status plain_params(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	struct cpu_md md;

	for (int i = 0; i < op->n_params; i++) {
		mu_cpu_plain(&md, &op->params[i].shape);
		MU_TRY(mu_cpu_set_param(&op->params[i], &md));
	}
out:
	return st;
}

enum mu_status mu_cpu_plan_layer_norm(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	const size_t nbytes = mu_shape_n(&op->inputs[0]->shape) * sizeof(float);
	struct cpu_md md;
	struct rows *r;

	MU_TRY(plain_params(op));
	MU_TRY(begin_rows(p, &r));
	mu_cpu_plain(&md, &(struct mu_shape){1, {2 * n_rows(&op->inputs[0]->shape)}});
	r->statistics = mu_cpu_keep(p, &md);
	mu_cpu_share(p, forward_norm, nbytes);
	if (op->phase != MU_PHASE_TRAIN)
		goto out;
	turn_rows(p, r);
	if (r->dx >= 0)
		mu_cpu_share(p, backward_norm, nbytes);
	MU_TRY(end_rows(p, r));
	p->program = &p->impl->weights;
	mu_cpu_share(p, weights_of_norm, nbytes);
	op->can_add = true;
out:
	return st;
}

/* ---- positions ---- */

struct steps {
	size_t n, c, steps, first, from, to; /* samples; steps of the output, those of this part */
};

static struct steps steps_of(const struct mu_op *op, struct cpu_part part)
{
	const struct mu_shape *out = &op->outputs[0]->shape;

	return (struct steps){.n = out->dims[0],
			      .c = out->dims[1],
			      .steps = out->dims[2],
			      .first = op->n_params > 1 ? 1 : 0,
			      .from = part.index * out->dims[2] / part.n,
			      .to = (part.index + 1) * out->dims[2] / part.n};
}

static void forward_positions(struct mu_op *op, struct cpu_part part)
{
	const struct steps s = steps_of(op, part);
	const float *x = mu_cpu_pointer(op, rows_of(op)->x);
	float *y = mu_cpu_pointer(op, rows_of(op)->y);
	const float *weight = op->params[0].data + (op->past ? op->past->steps * s.c : 0);

	for (size_t i = 0; i < s.n; i++)
		for (size_t t = s.from; t < s.to; t++)
			mu_cpu_sum(y + (i * s.steps + t) * s.c,
				   t < s.first
					   ? op->params[1].data
					   : x + (i * (s.steps - s.first) + t - s.first) * s.c,
				   weight + t * s.c, s.c);
}

static void backward_positions(struct mu_op *op, struct cpu_part part)
{
	const struct steps s = steps_of(op, part);
	const struct rows *r = rows_of(op);
	const float *dy = mu_cpu_pointer(op, r->dy);
	float *dx = r->dx >= 0 ? mu_cpu_pointer(op, r->dx) : NULL;
	float *token = s.first > 0 && s.from == 0 && s.to > 0 ? op->params[1].grad : NULL;

	if (part.index == 0 && !op->adds)
		memset(op->params[0].grad + s.steps * s.c, 0,
		       (op->params[0].shape.dims[0] - s.steps) * s.c * sizeof *dy);
	if (!op->adds)
		memset(op->params[0].grad + s.from * s.c, 0,
		       (s.to - s.from) * s.c * sizeof *dy);
	if (token && !op->adds)
		memset(token, 0, s.c * sizeof *token);
	for (size_t i = 0; i < s.n; i++)
		for (size_t t = s.from; t < s.to; t++) {
			const float *row = dy + (i * s.steps + t) * s.c;

			mu_cpu_add(op->params[0].grad + t * s.c, row, s.c);
			if (t < s.first)
				mu_cpu_add(token, row, s.c);
			else if (dx)
				memcpy(dx + (i * (s.steps - s.first) + t - s.first) * s.c, row,
				       s.c * sizeof *row);
		}
}

enum mu_status mu_cpu_plan_positions(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	const size_t nbytes = mu_shape_n(&op->outputs[0]->shape) * sizeof(float);
	struct rows *r;

	MU_TRY(plain_params(op));
	MU_TRY(begin_rows(p, &r));
	mu_cpu_share(p, forward_positions, nbytes);
	if (op->phase != MU_PHASE_TRAIN)
		goto out;
	turn_rows(p, r);
	mu_cpu_share(p, backward_positions, nbytes);
	MU_TRY(end_rows(p, r));
	op->can_add = true;
out:
	return st;
}

/* ---- a step ---- */

static size_t number_of(const struct mu_op *op)
{
	return (size_t)((const struct mu_step *)op->attr)->step;
}

static void forward_step(struct mu_op *op)
{
	const struct mu_shape *in = &op->inputs[0]->shape;
	const float *x = mu_cpu_pointer(op, rows_of(op)->x);
	float *y = mu_cpu_pointer(op, rows_of(op)->y);

	for (size_t i = 0; i < in->dims[0]; i++)
		memcpy(y + i * in->dims[1], x + (i * in->dims[2] + number_of(op)) * in->dims[1],
		       in->dims[1] * sizeof *y);
}

static void backward_step(struct mu_op *op)
{
	const struct mu_shape *in = &op->inputs[0]->shape;
	const float *dy = mu_cpu_pointer(op, rows_of(op)->dy);
	float *dx = mu_cpu_pointer(op, rows_of(op)->dx);

	memset(dx, 0, mu_shape_n(in) * sizeof *dx);
	for (size_t i = 0; i < in->dims[0]; i++)
		memcpy(dx + (i * in->dims[2] + number_of(op)) * in->dims[1], dy + i * in->dims[1],
		       in->dims[1] * sizeof *dx);
}

enum mu_status mu_cpu_plan_step(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct rows *r;

	MU_TRY(begin_rows(p, &r));
	mu_cpu_call(p, forward_step);
	if (p->op->phase != MU_PHASE_TRAIN || !p->op->inputs[0]->needs_grad)
		goto out;
	turn_rows(p, r);
	mu_cpu_call(p, backward_step);
	MU_TRY(end_rows(p, r));
out:
	return st;
}
