/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention on rows, with channels last and in float32; formulas at struct mu_attention. A thread
 * works on the heads of one sample that share keys, BLOCK queries at a time: two products by
 * oneDNN's sgemm around a softmax of rows, of which nothing is kept. Backward computes the weights
 * again, and adds to the gradients of keys and values block by block, from the last one on: that
 * one reaches all of them.
 */
#include "cpu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <muster/base.h>

enum { BLOCK = 64 };

struct attention {
	size_t n, steps, heads, kv, d, width; /* width: of a row of the input */
	float scale;
	bool causal;
	int x, y, dx, dy, gradient; /* memories; gradient: the input's in its own layout, or -1 */
	int scratch;                /* of all threads */
	size_t scratch_floats;      /* of one */
	float *angles;              /* NULL, or (steps, d / 2) of cosine and sine */
};

static const struct attention *of(const struct mu_op *op)
{
	return ((const struct cpu_op *)op->impl)->own;
}

/* A head of a sample: rows of its queries, keys and values and the distances of rows. */
struct head {
	const float *q, *k, *v, *dy;
	float *y, *dq, *dk, *dv;
	size_t q_step, k_step;
	size_t number, sample;
	float *weights, *scores, *masks; /* (BLOCK, steps) each; masks NULL: no dropout */
	bool adds;                       /* to dk and dv */
};

/* Rotate n rows, by the angles or back. */
static void rotate(const struct attention *a, const float *from, size_t from_step, float *to,
		   size_t to_step, float sign)
{
	const size_t half = a->d / 2;

	for (size_t t = 0; t < a->steps; t++)
		for (size_t i = 0; i < half; i++) {
			const float c = a->angles[2 * (t * half + i)];
			const float s = sign * a->angles[2 * (t * half + i) + 1];
			const float u = from[t * from_step + i], v = from[t * from_step + half + i];

			to[t * to_step + i] = u * c - v * s;
			to[t * to_step + half + i] = v * c + u * s;
		}
}

/* Queries [from, from + n), which see `keys` keys, the largest number in the block. */
struct block {
	size_t from, n, keys;
};

static struct block block_of(const struct attention *a, size_t number)
{
	const size_t from = number * BLOCK, rest = a->steps - from, n = rest < BLOCK ? rest : BLOCK;

	return (struct block){from, n, a->causal ? from + n : a->steps};
}

/* The weights of a block, rows of b->keys. */
static enum mu_status weigh(const struct mu_op *op, const struct head *h, const struct block *b)
{
	enum mu_status st = MU_OK;
	const struct attention *a = of(op);

	CPU_DNNL(dnnl_sgemm('N', 'T', (dnnl_dim_t)b->n, (dnnl_dim_t)b->keys, (dnnl_dim_t)a->d,
			    a->scale, h->q + b->from * h->q_step, (dnnl_dim_t)h->q_step, h->k,
			    (dnnl_dim_t)h->k_step, 0, h->scores, (dnnl_dim_t)b->keys));
	for (size_t i = 0; i < b->n; i++) {
		const size_t seen = a->causal ? b->from + i + 1 : b->keys;
		float *w = h->weights + i * b->keys;

		mu_cpu_softmax(h->scores + i * b->keys, w, seen);
		memset(w + seen, 0, (b->keys - seen) * sizeof *w);
		if (h->masks)
			mu_cpu_draw_mask(op, h->sample,
					 (h->number * a->steps + b->from + i) * a->steps, b->keys,
					 ((const struct mu_attention *)op->attr)->dropout,
					 h->masks + i * b->keys);
	}
out:
	return st;
}

static enum mu_status forward_head(const struct mu_op *op, const struct head *h)
{
	enum mu_status st = MU_OK;
	const struct attention *a = of(op);
	const dnnl_dim_t d = (dnnl_dim_t)a->d, width = (dnnl_dim_t)(a->heads * a->d);

	for (size_t i = 0; i * BLOCK < a->steps; i++) {
		const struct block b = block_of(a, i);

		MU_TRY(weigh(op, h, &b));
		if (h->masks)
			mu_cpu_multiply(h->weights, h->masks, b.n * b.keys);
		CPU_DNNL(dnnl_sgemm('N', 'N', (dnnl_dim_t)b.n, d, (dnnl_dim_t)b.keys, 1, h->weights,
				    (dnnl_dim_t)b.keys, h->v, (dnnl_dim_t)a->width, 0,
				    h->y + b.from * (size_t)width, width));
	}
out:
	return st;
}

/* g = w (g - sum) scale */
MU_LOOP static void scores_back(const float *restrict w, float *restrict g, size_t n, float sum,
				float scale)
{
	for (size_t k = 0; k < n; k++)
		g[k] = w[k] * (g[k] - sum) * scale;
}

static enum mu_status backward_block(const struct mu_op *op, const struct head *h,
				     const struct block *b, bool adds)
{
	enum mu_status st = MU_OK;
	const struct attention *a = of(op);
	const dnnl_dim_t d = (dnnl_dim_t)a->d, width = (dnnl_dim_t)a->width;
	const dnnl_dim_t n = (dnnl_dim_t)b->n, keys = (dnnl_dim_t)b->keys;
	const dnnl_dim_t out = (dnnl_dim_t)(a->heads * a->d);
	const dnnl_dim_t q_step = (dnnl_dim_t)h->q_step, k_step = (dnnl_dim_t)h->k_step;
	const float *dy = h->dy + b->from * a->heads * a->d, beta = adds ? 1 : 0;

	MU_TRY(weigh(op, h, b));
	CPU_DNNL(dnnl_sgemm('N', 'T', n, keys, d, 1, dy, out, h->v, width, 0, h->scores, keys));
	if (h->masks)
		mu_cpu_multiply(h->scores, h->masks, b->n * b->keys);
	for (size_t i = 0; i < b->n; i++) {
		const float *w = h->weights + i * b->keys;
		float *g = h->scores + i * b->keys;

		scores_back(w, g, b->keys, mu_cpu_dot(w, g, b->keys), a->scale);
	}
	if (h->masks)
		mu_cpu_multiply(h->weights, h->masks, b->n * b->keys);
	CPU_DNNL(dnnl_sgemm('T', 'N', keys, d, n, 1, h->weights, keys, dy, out, beta, h->dv,
			    width));
	CPU_DNNL(dnnl_sgemm('N', 'N', n, d, keys, 1, h->scores, keys, h->k, k_step, 0,
			    h->dq + b->from * a->width, width));
	CPU_DNNL(dnnl_sgemm('T', 'N', keys, d, n, 1, h->scores, keys, h->q + b->from * h->q_step,
			    q_step, beta, h->dk, width));
out:
	return st;
}

static enum mu_status backward_head(const struct mu_op *op, const struct head *h)
{
	enum mu_status st = MU_OK;
	const struct attention *a = of(op);
	const size_t n = (a->steps + BLOCK - 1) / BLOCK;

	for (size_t i = n; i-- > 0;) {
		const struct block b = block_of(a, i);

		MU_TRY(backward_block(op, h, &b, h->adds || i + 1 < n));
	}
	if (a->angles)
		rotate(a, h->dq, a->width, h->dq, a->width, -1);
out:
	return st;
}

/* Head h of a sample; rotated queries and keys are copies in the thread's scratch. */
static struct head head_of(const struct mu_op *op, size_t sample, size_t number, float *scratch)
{
	const struct attention *a = of(op);
	const size_t kv = number * a->kv / a->heads, group = a->heads / a->kv;
	const size_t q = number * a->d, k = (a->heads + kv) * a->d;
	const size_t v = (a->heads + a->kv + kv) * a->d, room = BLOCK * a->steps;
	const float *x = (const float *)mu_cpu_pointer(op, a->x) + sample * a->steps * a->width;
	const size_t at = sample * a->steps * a->heads * a->d + q;
	const bool drops = ((const struct mu_attention *)op->attr)->dropout > 0;
	struct head h = {.q = x + q, .k = x + k, .v = x + v, .q_step = a->width,
			 .k_step = a->width, .number = number, .sample = sample,
			 .weights = scratch, .scores = scratch + room,
			 .adds = number % group != 0};

	h.masks = drops && op->phase == MU_PHASE_TRAIN ? scratch + 2 * room : NULL;
	h.y = (float *)mu_cpu_pointer(op, a->y) + at;
	if (op->phase == MU_PHASE_TRAIN) {
		float *dx = (float *)mu_cpu_pointer(op, a->dx) + sample * a->steps * a->width;

		h.dy = (const float *)mu_cpu_pointer(op, a->dy) + at;
		h.dq = dx + q;
		h.dk = dx + k;
		h.dv = dx + v;
	}
	if (a->angles) {
		float *rotated = scratch + 3 * room;

		rotate(a, h.q, h.q_step, rotated, a->d, 1);
		rotate(a, h.k, h.k_step, rotated + a->steps * a->d, a->d, 1);
		h.q = rotated;
		h.k = rotated + a->steps * a->d;
		h.q_step = h.k_step = a->d;
	}
	return h;
}

/* sgemm cannot fail with these arguments. */
static void each_head(struct mu_op *op, struct cpu_part part,
		      enum mu_status (*work)(const struct mu_op *op, const struct head *h))
{
	const struct attention *a = of(op);
	float *scratch = (float *)mu_cpu_pointer(op, a->scratch) + part.index * a->scratch_floats;
	const size_t n = a->n * a->kv, group = a->heads / a->kv;
	const size_t end = (part.index + 1) * n / part.n;

	for (size_t i = part.index * n / part.n; i < end; i++) {
		struct head h;

		for (size_t g = 0; g < group; g++) {
			h = head_of(op, i / a->kv, i % a->kv * group + g, scratch);
			(void)work(op, &h);
		}
		if (work == backward_head && a->angles)
			rotate(a, h.dk, a->width, h.dk, a->width, -1);
	}
}

/* ---- steps after others: see struct mu_past ---- */

static void rotate_step(const struct mu_op *op, float *x, size_t n, size_t step)
{
	const struct attention *a = of(op);
	const double base = (double)((const struct mu_attention *)op->attr)->rotary;
	const size_t half = a->d / 2;

	for (size_t k = 0; base > 0 && k < n * half; k++) {
		float *at = x + k / half * a->d + k % half;
		const double angle =
			(double)step * pow(base, -2.0 * (double)(k % half) / (double)a->d);
		const float c = (float)cos(angle), s = (float)sin(angle), u = at[0], v = at[half];

		at[0] = u * c - v * s;
		at[half] = v * c + u * s;
	}
}

MU_LOOP static void add_times(float *restrict to, const float *restrict row, float factor,
			      size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] += factor * row[i];
}

/* A query of n keys. The head's scores, then its weights, lie after the rows. */
static void past_head(const struct mu_op *op, const float *q, const float *rows, size_t n, float *y)
{
	const struct attention *a = of(op);
	const struct mu_past *past = op->past;
	const size_t width = 2 * a->kv * a->d;
	float *scores = past->rows + a->n * past->most * width, *w = scores + past->most;

	for (size_t h = 0; h < a->heads; h++) {
		const float *k = rows + h * a->kv / a->heads * a->d, *v = k + a->kv * a->d;

		for (size_t j = 0; j < n; j++)
			scores[j] = a->scale * mu_cpu_dot(q + h * a->d, k + j * width, a->d);
		mu_cpu_softmax(scores, w, n);
		memset(y + h * a->d, 0, a->d * sizeof *y);
		for (size_t j = 0; j < n; j++)
			add_times(y + h * a->d, v + j * width, w[j], a->d);
	}
}

static void forward_past(struct mu_op *op)
{
	const struct attention *a = of(op);
	const struct mu_past *past = op->past;
	const size_t width = 2 * a->kv * a->d, from = a->heads * a->d;
	float *q = mu_cpu_pointer(op, a->scratch);

	for (size_t i = 0; i < a->n * a->steps; i++) {
		const float *x = (const float *)mu_cpu_pointer(op, a->x) + i * a->width;
		const size_t step = past->steps + i % a->steps;
		float *rows = past->rows + i / a->steps * past->most * width;
		float *own = rows + step * width;

		memcpy(q, x, from * sizeof *q);
		memcpy(own, x + from, width * sizeof *own);
		rotate_step(op, q, a->heads, step);
		rotate_step(op, own, a->kv, step);
		past_head(op, q, rows, step + 1, (float *)mu_cpu_pointer(op, a->y) + i * from);
	}
}

static void forward(struct mu_op *op, struct cpu_part part)
{
	if (op->past) {
		if (part.index == 0)
			forward_past(op);
		return;
	}
	each_head(op, part, forward_head);
}

static void backward(struct mu_op *op, struct cpu_part part)
{
	each_head(op, part, backward_head);
}

/* ---- plan ---- */

static void fill_angles(struct attention *a, double base)
{
	const size_t half = a->d / 2;

	for (size_t t = 0; t < a->steps; t++)
		for (size_t i = 0; i < half; i++) {
			const double angle =
				(double)t * pow(base, -2.0 * (double)i / (double)a->d);

			a->angles[2 * (t * half + i)] = (float)cos(angle);
			a->angles[2 * (t * half + i) + 1] = (float)sin(angle);
		}
}

/* The sizes, with the angles behind them. */
static enum mu_status describe(struct cpu_plan *p, struct attention **out)
{
	enum mu_status st = MU_OK;
	const struct mu_attention *attr = p->op->attr;
	const struct mu_attention_sizes s = mu_attention_sizes(attr, &p->op->inputs[0]->shape);
	const size_t n_angles = attr->rotary > 0 ? s.steps * s.d : 0;
	struct attention *a = calloc(1, sizeof *a + n_angles * sizeof(float));

	*out = p->impl->own = a;
	if (!a)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the plan of %s", p->op->name);
	*a = (struct attention){.n = s.n,
				.steps = s.steps,
				.heads = s.heads,
				.kv = s.kv,
				.d = s.d,
				.width = s.channels,
				.scale = 1 / sqrtf((float)s.d),
				.causal = attr->causal,
				.gradient = -1};
	a->scratch_floats = 3 * BLOCK * a->steps + (n_angles ? 2 * a->steps * a->d : 0);
	if (a->scratch_floats < a->width) /* of a query, for struct mu_past */
		a->scratch_floats = a->width;
	if (n_angles) {
		a->angles = (float *)(a + 1);
		fill_angles(a, (double)attr->rotary);
	}
out:
	return st;
}

static int take_scratch(struct cpu_plan *p, const struct attention *a)
{
	struct cpu_md md;

	mu_cpu_plain(&md, &(struct mu_shape){2, {p->cpu->n_threads, a->scratch_floats}});
	return mu_cpu_temporary(p, &md);
}

static enum mu_status plan_backward(struct cpu_plan *p, struct attention *a, size_t work)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	struct cpu_md have, last;

	p->program = &p->impl->backward;
	if (!op->inputs[0]->needs_grad)
		goto out;
	mu_cpu_tag(&last, &op->outputs[0]->shape, dnnl_acdb);
	a->dy = mu_cpu_memory(p, &last, CPU_OUT_GRAD, 0);
	mu_cpu_tensor_md(&have, op->inputs[0]);
	mu_cpu_tag(&last, &op->inputs[0]->shape, dnnl_acdb);
	a->gradient = a->dx = mu_cpu_memory(p, &have, CPU_IN_GRAD, 0);
	/* At the place that it has in forward: the beginning. */
	(void)take_scratch(p, a);
	if (!mu_dnnl_equal(&have, &last))
		a->dx = mu_cpu_temporary(p, &last);
	mu_cpu_share(p, backward, work);
	if (a->dx != a->gradient)
		MU_TRY(mu_cpu_reorder(p, a->dx, a->gradient));
out:
	return st;
}

enum mu_status mu_cpu_plan_attention(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	struct attention *a;
	struct cpu_md have, last;
	size_t work;

	MU_TRY(describe(p, &a));
	work = mu_shape_n(&op->inputs[0]->shape) * a->steps;
	a->scratch = take_scratch(p, a);
	mu_cpu_tensor_md(&have, op->inputs[0]);
	mu_cpu_tag(&last, &op->inputs[0]->shape, dnnl_acdb);
	MU_TRY(mu_cpu_as(p, mu_cpu_memory(p, &have, CPU_IN_DATA, 0), &last,
			 op->phase == MU_PHASE_TRAIN, &a->x));
	mu_cpu_tag(&last, &op->outputs[0]->shape, dnnl_acdb);
	MU_TRY(mu_cpu_set_tensor(op->outputs[0], &last));
	a->y = mu_cpu_memory(p, &last, CPU_OUT_DATA, 0);
	mu_cpu_share(p, forward, work);
	if (op->phase == MU_PHASE_TRAIN)
		MU_TRY(plan_backward(p, a, work));
out:
	return st;
}
