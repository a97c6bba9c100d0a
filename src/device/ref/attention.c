/* SPDX-License-Identifier: Apache-2.0 */
/* Attention, sample by sample; the formulas are at struct mu_attention. */
#include "ref.h"

#include <math.h>
#include <string.h>

#include <muster/base.h>

/* Of dropout's random numbers: see dropout.c. */
enum { DRAW_BITS = 40 };

static struct mu_attention_sizes sizes_of(const struct mu_op *op)
{
	return mu_attention_sizes(op->attr, &op->inputs[0]->shape);
}

enum mu_status mu_ref_check_attention(const struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_attention *a = op->attr;
	const struct mu_shape *in = &op->inputs[0]->shape;
	struct mu_shape out = *in;
	struct mu_attention_sizes s;

	MU_TRY(mu_ref_need_ndims(op, 4, "(n, c, steps, 1)"));
	if (a->heads < 1 || a->kv_heads < 0 || (a->kv_heads && a->heads % a->kv_heads != 0))
		MU_FAIL(MU_ERR_ARGUMENT,
			"%s (attention): %d heads, %d of keys; the latter must divide the former",
			op->name, a->heads, a->kv_heads);
	s = sizes_of(op);
	if (in->dims[3] != 1 || s.d * (s.heads + 2 * s.kv) != s.channels || s.d == 0)
		MU_FAIL(MU_ERR_ARGUMENT,
			"%s (attention): an input of %zu x %zu x %zu; its channels must be a "
			"multiple of %zu, and w 1",
			op->name, s.channels, s.steps, in->dims[3], s.heads + 2 * s.kv);
	if (!(a->rotary >= 0) || (a->rotary > 0 && s.d % 2 != 0))
		MU_FAIL(MU_ERR_ARGUMENT,
			"%s (attention): rotary %g with heads of %zu elements; an even number is "
			"needed",
			op->name, (double)a->rotary, s.d);
	if (!(a->dropout >= 0 && a->dropout < 1))
		MU_FAIL(MU_ERR_ARGUMENT, "%s (attention): dropout %g; it must be in [0, 1)",
			op->name, (double)a->dropout);
	if (a->dropout > 0 && s.heads * s.steps * s.steps >> DRAW_BITS != 0)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"%s (attention): dropout of %zu heads of %zu x %zu weights; the random "
			"numbers reach for %zu",
			op->name, s.heads, s.steps, s.steps, (size_t)1 << DRAW_BITS);
	out.dims[1] = s.heads * s.d;
	MU_TRY(mu_ref_need_shape(op, "output", &op->outputs[0]->shape, &out));
out:
	return st;
}

/* Scratch: the sample's input, rotated; its gradient; weights of a query, and their gradients. */
static enum mu_status plan(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	struct mu_attention_sizes s;

	MU_TRY(mu_ref_check_attention(op));
	s = sizes_of(op);
	op->scratch_nbytes = 2 * (s.channels + 1) * s.steps * sizeof(double);
out:
	return st;
}

/* Rotate queries and keys of x (rows, steps), or back; the first step is number `first`. */
static void rotate(const struct mu_op *op, double *x, double sign, size_t first)
{
	const struct mu_attention *a = op->attr;
	const struct mu_attention_sizes s = sizes_of(op);
	const size_t half = s.d / 2;

	for (size_t h = 0; a->rotary > 0 && h < s.heads + s.kv; h++)
		for (size_t i = 0; i < half; i++)
			for (size_t t = 0; t < s.steps; t++) {
				const double angle =
					(double)(first + t) *
					pow((double)a->rotary, -2.0 * (double)i / (double)s.d);
				double *one = x + (h * s.d + i) * s.steps + t;
				double *other = one + half * s.steps, u = *one, v = *other;

				*one = u * cos(angle) - sign * v * sin(angle);
				*other = v * cos(angle) + sign * u * sin(angle);
			}
}

/* 0 or 1 / (1 - p) of a weight in training; 1 without dropout. */
static double keeps(const struct mu_op *op, size_t sample, size_t element)
{
	const float p = ((const struct mu_attention *)op->attr)->dropout;

	if (p == 0 || op->phase != MU_PHASE_TRAIN)
		return 1;
	return mu_ref_drops(op, sample, element, p) ? 0 : (double)(1 / (1 - p));
}

/* A query: where it, its head's keys and values begin in x, and how many keys it sees. */
struct query {
	size_t q, k, v, t, n_keys, element;
};

static struct query query(const struct mu_op *op, const struct mu_attention_sizes *s, size_t h,
			  size_t t)
{
	const size_t of = h * s->kv / s->heads;

	return (struct query){.q = h * s->d * s->steps,
			      .k = (s->heads + of) * s->d * s->steps,
			      .v = (s->heads + s->kv + of) * s->d * s->steps,
			      .t = t,
			      .n_keys = ((const struct mu_attention *)op->attr)->causal ? t + 1
											: s->steps,
			      .element = (h * s->steps + t) * s->steps};
}

static void weigh(const double *x, const struct mu_attention_sizes *s, const struct query *q,
		  double *w)
{
	double largest = -INFINITY, sum = 0;

	for (size_t j = 0; j < q->n_keys; j++) {
		w[j] = 0;
		for (size_t i = 0; i < s->d; i++)
			w[j] += x[q->q + i * s->steps + q->t] * x[q->k + i * s->steps + j];
		w[j] /= sqrt((double)s->d);
		largest = fmax(largest, w[j]);
	}
	for (size_t j = 0; j < q->n_keys; j++) {
		w[j] = exp(w[j] - largest);
		sum += w[j];
	}
	for (size_t j = 0; j < q->n_keys; j++)
		w[j] /= sum;
}

static void load(const struct mu_op *op, size_t sample, double *x)
{
	const struct mu_attention_sizes s = sizes_of(op);

	for (size_t k = 0; k < s.channels * s.steps; k++)
		x[k] = (double)op->inputs[0]->data[sample * s.channels * s.steps + k];
}

/* Head h of step t of the operation's, with the keys and values of all steps up to it. */
static void past_head(const struct mu_op *op, const double *x, const float *rows, size_t h,
		      size_t t, float *y)
{
	const struct mu_attention_sizes s = sizes_of(op);
	const struct mu_past *past = op->past;
	const size_t width = 2 * s.kv * s.d, n = past->steps + t + 1;
	const float *k = rows + h * s.kv / s.heads * s.d, *v = k + s.kv * s.d;
	float *w = past->rows + s.n * past->most * width;
	double largest = -INFINITY, sum = 0;

	for (size_t j = 0; j < n; j++) {
		double dot = 0;

		for (size_t i = 0; i < s.d; i++)
			dot += x[(h * s.d + i) * s.steps + t] * (double)k[j * width + i];
		w[j] = (float)(dot / sqrt((double)s.d));
		largest = fmax(largest, (double)w[j]);
	}
	for (size_t j = 0; j < n; j++)
		sum += exp((double)w[j] - largest);
	for (size_t i = 0; i < s.d; i++) {
		double out = 0;

		for (size_t j = 0; j < n; j++)
			out += exp((double)w[j] - largest) / sum * (double)v[j * width + i];
		y[(h * s.d + i) * s.steps + t] = (float)out;
	}
}

/* Steps after others: see struct mu_past. x, y: the sample's input and output. */
static void forward_past(struct mu_op *op, size_t n, double *x, float *y)
{
	const struct mu_attention_sizes s = sizes_of(op);
	const struct mu_past *past = op->past;
	const size_t width = 2 * s.kv * s.d;
	float *rows = past->rows + n * past->most * width;

	rotate(op, x, 1, past->steps);
	for (size_t t = 0; t < s.steps; t++) {
		for (size_t i = 0; i < width; i++)
			rows[(past->steps + t) * width + i] =
				(float)x[(s.heads * s.d + i) * s.steps + t];
		for (size_t h = 0; h < s.heads; h++)
			past_head(op, x, rows, h, t, y);
	}
}

static enum mu_status forward(struct mu_op *op)
{
	const struct mu_attention_sizes s = sizes_of(op);
	double *x = op->scratch, *w = x + 2 * s.channels * s.steps;

	for (size_t n = 0; n < s.n; n++) {
		float *y = op->outputs[0]->data + n * s.heads * s.d * s.steps;

		load(op, n, x);
		if (op->past) {
			forward_past(op, n, x, y);
			continue;
		}
		rotate(op, x, 1, 0);
		for (size_t ht = 0; ht < s.heads * s.steps; ht++) {
			const struct query q = query(op, &s, ht / s.steps, ht % s.steps);

			weigh(x, &s, &q, w);
			for (size_t i = 0; i < s.d; i++) {
				double sum = 0;

				for (size_t j = 0; j < q.n_keys; j++)
					sum += w[j] * keeps(op, n, q.element + j) *
					       x[q.v + i * s.steps + j];
				y[q.q + i * s.steps + q.t] = (float)sum;
			}
		}
	}
	return MU_OK;
}

/* With g[j] = dy v[j] keep[j]: the gradient of a score is w[j] (g[j] - sum of w g). */
static void backward_query(const struct mu_op *op, size_t n, const struct query *q, double *x)
{
	const struct mu_attention_sizes s = sizes_of(op);
	double *dx = x + s.channels * s.steps, *w = dx + s.channels * s.steps, *g = w + s.steps,
	       mean = 0;
	const float *dy = op->outputs[0]->grad + n * s.heads * s.d * s.steps + q->q + q->t;

	weigh(x, &s, q, w);
	for (size_t j = 0; j < q->n_keys; j++) {
		const double keep = keeps(op, n, q->element + j);

		g[j] = 0;
		for (size_t i = 0; i < s.d; i++) {
			g[j] += (double)dy[i * s.steps] * keep * x[q->v + i * s.steps + j];
			dx[q->v + i * s.steps + j] += w[j] * keep * (double)dy[i * s.steps];
		}
		mean += w[j] * g[j];
	}
	for (size_t j = 0; j < q->n_keys; j++)
		for (size_t i = 0; i < s.d; i++) {
			const double score = w[j] * (g[j] - mean) / sqrt((double)s.d);

			dx[q->q + i * s.steps + q->t] += score * x[q->k + i * s.steps + j];
			dx[q->k + i * s.steps + j] += score * x[q->q + i * s.steps + q->t];
		}
}

static void backward(struct mu_op *op)
{
	const struct mu_attention_sizes s = sizes_of(op);
	double *x = op->scratch, *dx = x + s.channels * s.steps;

	for (size_t n = 0; n < s.n && op->inputs[0]->needs_grad; n++) {
		load(op, n, x);
		rotate(op, x, 1, 0);
		memset(dx, 0, s.channels * s.steps * sizeof *dx);
		for (size_t ht = 0; ht < s.heads * s.steps; ht++) {
			const struct query q = query(op, &s, ht / s.steps, ht % s.steps);

			backward_query(op, n, &q, x);
		}
		rotate(op, dx, -1, 0);
		for (size_t k = 0; k < s.channels * s.steps; k++)
			op->inputs[0]->grad[n * s.channels * s.steps + k] = (float)dx[k];
	}
}

const struct mu_ref_kind mu_ref_attention = {
	.n_inputs = 1,
	.n_outputs = 1,
	.plan = plan,
	.forward = forward,
	.backward = backward,
};
