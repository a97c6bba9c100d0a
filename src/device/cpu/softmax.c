/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Softmax cross-entropy in loops of our own on plain tensors; formulas: ref/softmax.c. A
 * convolution before it may give another layout. Where channels lie last, as in a language model, a
 * prediction is a row, and the loops are vector loops, which threads share; else the input is
 * reordered into the output and worked on there, and the gradient leaves through a temporary, as
 * with rows of another type.
 */
#include "cpu.h"

#include <math.h>
#include <string.h>

#include <muster/base.h>

/* Sizes of (n, c) or (n, c, space...). area: positions, the distance of two classes of a
 * prediction. */
struct size {
	size_t n, classes, area;
};

static struct size size_of(const struct mu_op *op)
{
	const struct mu_shape *s = &op->inputs[0]->shape;

	return (struct size){s->dims[0], s->dims[1], mu_shape_positions(s)};
}

/* Is prediction i, a position of sample i / area, counted? */
static bool counts(const struct mu_batch *b, const struct size *s, size_t i)
{
	return i < b->count * s->area && !(b->use_ignore && b->labels[i] == b->ignore_label);
}

/* Of the target q, with the classes' weights in it: the sum over k of q[k] x[k], the sum of q, and
 * x of the label. */
struct scores {
	double target, total, label;
};

static double target_of(const struct mu_batch *b, size_t classes, size_t label, size_t k)
{
	const double smoothing = (double)b->label_smoothing;

	return ((k == label ? 1 - smoothing : 0) + smoothing / (double)classes) *
	       (double)b->class_weights[k];
}

static struct scores weighted_scores(const float *x, const struct size *s, size_t label,
				     const struct mu_batch *b)
{
	struct scores out = {.label = (double)x[label * s->area]};

	for (size_t k = 0; k < s->classes; k++) {
		const double q = target_of(b, s->classes, label, k);

		out.total += q;
		if (q > 0)
			out.target += q * (double)x[k * s->area];
	}
	return out;
}

/* dx = p sum of q - q; dx may be p. */
static void weighted_back(const float *p, float *dx, const struct size *s, size_t label,
			  const struct mu_batch *b)
{
	double total = 0;

	for (size_t k = 0; k < s->classes; k++)
		total += target_of(b, s->classes, label, k);
	for (size_t k = 0; k < s->classes; k++)
		dx[k * s->area] = (float)((double)p[k * s->area] * total -
					  target_of(b, s->classes, label, k));
}

/* Before softmax, which may overwrite x. */
static struct scores scores_of(const float *x, const struct size *s, size_t label,
			       const struct mu_batch *b)
{
	const float smoothing = b->label_smoothing;
	const double own = (double)x[label * s->area];
	double all = 0;

	if (b->class_weights)
		return weighted_scores(x, s, label, b);
	if (smoothing == 0)
		return (struct scores){own, 1, own};
	for (size_t k = 0; k < s->classes; k++)
		all += (double)x[k * s->area];
	return (struct scores){
		(1 - (double)smoothing) * own + (double)smoothing / (double)s->classes * all, 1,
		own};
}

static struct mu_prediction found(const struct scores *x, const struct cpu_exponentials *e,
				  uint32_t place)
{
	const double log_sum = (double)e->shift + log((double)e->sum);

	return (struct mu_prediction){.loss = x->total * log_sum - x->target,
				      .cross_entropy = (float)(log_sum - x->label),
				      .place = place};
}

/* In order, whoever computed them. */
static void add_losses(struct mu_op *op)
{
	const struct size s = size_of(op);
	const struct mu_prediction *predictions = op->workspace;

	op->batch->predictions = predictions;
	op->batch->loss = 0;
	for (size_t i = 0; i < s.n * s.area; i++)
		op->batch->loss += predictions[i].loss;
}

/* ---- plain: classes of a prediction lie area elements apart ---- */

/* p = softmax(x); p may be x. */
static struct cpu_exponentials softmax(const float *x, float *p, const struct size *s)
{
	float largest = x[0], sum = 0;

	for (size_t k = 1; k < s->classes; k++)
		largest = x[k * s->area] > largest ? x[k * s->area] : largest;
	for (size_t k = 0; k < s->classes; k++) {
		p[k * s->area] = expf(x[k * s->area] - largest);
		sum += p[k * s->area];
	}
	for (size_t k = 0; k < s->classes; k++)
		p[k * s->area] /= sum;
	return (struct cpu_exponentials){largest, sum};
}

enum { TOGETHER = 64 };

/* Places of the labels of n <= TOGETHER positions, in one pass over the classes. NaN is equal to
 * everything. */
MU_LOOP
static void find_places(const float *restrict p, size_t area, size_t classes,
			const uint32_t *restrict labels, size_t n, uint32_t *restrict places)
{
	float own[TOGETHER];

	for (size_t i = 0; i < n; i++) {
		own[i] = p[labels[i] * area + i];
		places[i] = 0;
	}
	for (uint32_t c = 0; c < classes; c++)
		for (size_t i = 0; i < n; i++) {
			const float other = p[c * area + i];

			places[i] += (uint32_t)((other > own[i]) |
						((c < labels[i]) & !(other < own[i])));
		}
}

/* n positions of a sample, from number i of all samples. */
static void forward_some(struct mu_op *op, const float *in, size_t i, size_t n)
{
	const struct mu_batch *b = op->batch;
	const struct size s = size_of(op);
	const size_t at = i / s.area * s.classes * s.area + i % s.area;
	float *p = op->outputs[0]->data + at;
	struct mu_prediction *predictions = (struct mu_prediction *)op->workspace + i;
	uint32_t labels[TOGETHER], places[TOGETHER];
	struct cpu_exponentials sums[TOGETHER];
	struct scores scores[TOGETHER];

	for (size_t k = 0; k < n; k++) {
		labels[k] = counts(b, &s, i + k) ? (uint32_t)b->labels[i + k] : 0;
		scores[k] = scores_of(in + at + k, &s, labels[k], b);
		sums[k] = softmax(in + at + k, p + k, &s);
	}
	find_places(p, s.area, s.classes, labels, n, places);
	for (size_t k = 0; k < n; k++)
		predictions[k] = counts(b, &s, i + k) ? found(&scores[k], &sums[k], places[k])
						      : (struct mu_prediction){.loss = 0};
}

static void forward(struct mu_op *op, const float *in)
{
	const struct size s = size_of(op);

	for (size_t i = 0; i < s.n * s.area; i += s.area)
		for (size_t at = 0; at < s.area; at += TOGETHER)
			forward_some(op, in, i + at,
				     s.area - at < TOGETHER ? s.area - at : TOGETHER);
	add_losses(op);
}

static void forward_plain(struct mu_op *op)
{
	forward(op, op->inputs[0]->data);
}

static void forward_reordered(struct mu_op *op)
{
	forward(op, op->outputs[0]->data);
}

/* n numbers, `step` elements apart; those of most runs stay as they are. */
static void scale_by(float *dx, size_t n, size_t step, float factor)
{
	for (size_t k = 0; k < n && factor != 1; k++)
		dx[k * step] *= factor;
}

static void backward(const struct mu_op *op, float *out)
{
	const struct mu_batch *b = op->batch;
	struct size s = size_of(op);
	float share = b->label_smoothing / (float)s.classes;

	for (size_t i = 0; i < s.n * s.area; i++) {
		size_t at = i / s.area * s.classes * s.area + i % s.area;
		const float *p = op->outputs[0]->data + at;
		float *dx = out + at;

		if (!counts(b, &s, i)) {
			for (size_t k = 0; k < s.classes; k++)
				dx[k * s.area] = 0;
			continue;
		}
		if (b->class_weights) {
			weighted_back(p, dx, &s, (size_t)b->labels[i], b);
		} else {
			for (size_t k = 0; k < s.classes; k++)
				dx[k * s.area] = p[k * s.area] - share;
			dx[(size_t)b->labels[i] * s.area] -= 1 - b->label_smoothing;
		}
		scale_by(dx, s.classes, s.area, mu_batch_loss_scale(b));
	}
}

static void backward_plain(struct mu_op *op)
{
	backward(op, op->inputs[0]->grad);
}

/* The temporary is the first of its program: it begins the scratch. */
static void backward_reordered(struct mu_op *op)
{
	backward(op, op->scratch);
}

/* ---- channels last: rows, which threads share ---- */

struct rows {
	size_t begin, end;
};

static struct rows rows_of(const struct size *s, struct cpu_part part)
{
	const size_t n = s->n * s->area;

	return (struct rows){part.index * n / part.n, (part.index + 1) * n / part.n};
}

MU_LOOP
static uint32_t place_of(const float *restrict p, size_t classes, size_t label)
{
	const float own = p[label];
	uint32_t place = 0;

	for (size_t c = 0; c < label; c++)
		place += p[c] < own ? 0 : 1;
	for (size_t c = label + 1; c < classes; c++)
		place += p[c] > own;
	return place;
}

static void forward_row(struct mu_op *op, const float *x, size_t i)
{
	const struct mu_batch *b = op->batch;
	const struct size s = size_of(op), row = {1, s.classes, 1};
	const bool counted = counts(b, &s, i);
	const size_t label = counted ? (size_t)b->labels[i] : 0;
	float *p = op->outputs[0]->data + i * s.classes;
	const struct scores scores = scores_of(x, &row, label, b);
	const struct cpu_exponentials sums = mu_cpu_softmax(x, p, s.classes);

	((struct mu_prediction *)op->workspace)[i] =
		counted ? found(&scores, &sums, place_of(p, s.classes, label))
			: (struct mu_prediction){.loss = 0};
}

static void forward_rows(struct mu_op *op, struct cpu_part part)
{
	const struct size s = size_of(op);
	const struct rows rows = rows_of(&s, part);

	for (size_t i = rows.begin; i < rows.end; i++)
		forward_row(op, op->inputs[0]->data + i * s.classes, i);
}

/* The values are where the predictions will be. */
static void forward_rows_in_place(struct mu_op *op, struct cpu_part part)
{
	const struct size s = size_of(op);
	const struct rows rows = rows_of(&s, part);

	for (size_t i = rows.begin; i < rows.end; i++)
		forward_row(op, op->outputs[0]->data + i * s.classes, i);
}

MU_LOOP static void subtract(const float *restrict p, float *restrict dx, size_t n, float share)
{
	for (size_t k = 0; k < n; k++)
		dx[k] = p[k] - share;
}

MU_LOOP static void subtract_in_place(float *dx, size_t n, float share)
{
	for (size_t k = 0; k < n && share != 0; k++)
		dx[k] -= share;
}

static void rows_back(const struct mu_op *op, float *to, struct cpu_part part)
{
	const struct mu_batch *b = op->batch;
	const struct size s = size_of(op), row = {1, s.classes, 1};
	const struct rows rows = rows_of(&s, part);

	for (size_t i = rows.begin; i < rows.end; i++) {
		float *dx = to + i * s.classes;

		if (!counts(b, &s, i)) {
			memset(dx, 0, s.classes * sizeof *dx);
			continue;
		}
		if (b->class_weights)
			weighted_back(op->fusion.in_place ? dx
							  : op->outputs[0]->data + i * s.classes,
				      dx, &row, (size_t)b->labels[i], b);
		else if (op->fusion.in_place)
			subtract_in_place(dx, s.classes, b->label_smoothing / (float)s.classes);
		else
			subtract(op->outputs[0]->data + i * s.classes, dx, s.classes,
				 b->label_smoothing / (float)s.classes);
		if (!b->class_weights)
			dx[(size_t)b->labels[i]] -= 1 - b->label_smoothing;
		scale_by(dx, s.classes, 1, mu_batch_loss_scale(b));
	}
}

static void backward_rows(struct mu_op *op, struct cpu_part part)
{
	rows_back(op, op->inputs[0]->grad, part);
}

static void backward_rows_converted(struct mu_op *op, struct cpu_part part)
{
	rows_back(op, op->scratch, part);
}

/* have: of the input, rows of any type. */
static enum mu_status plan_rows(struct cpu_plan *p, const struct cpu_md *have)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	const bool converts = have->data_type != dnnl_f32;
	const int from = mu_cpu_memory(p, have, CPU_IN_DATA, 0);
	struct cpu_md rows = *have;
	size_t nbytes;
	int gradient;

	rows.data_type = dnnl_f32;
	nbytes = mu_dnnl_nbytes(&rows);
	op->fusion.in_place = op->fusion.in_place && !converts;
	MU_TRY(mu_cpu_set_tensor(op->outputs[0], &rows));
	if (converts)
		MU_TRY(mu_cpu_reorder(p, from, mu_cpu_memory(p, &rows, CPU_OUT_DATA, 0)));
	mu_cpu_share(p, op->fusion.in_place || converts ? forward_rows_in_place : forward_rows,
		     nbytes);
	mu_cpu_call(p, add_losses);
	p->program = &p->impl->backward;
	if (!op->inputs[0]->needs_grad)
		goto out;
	if (!converts) {
		mu_cpu_share(p, backward_rows, nbytes);
		goto out;
	}
	gradient = mu_cpu_temporary(p, &rows);
	mu_cpu_share(p, backward_rows_converted, nbytes);
	MU_TRY(mu_cpu_reorder(p, gradient, mu_cpu_memory(p, have, CPU_IN_GRAD, 0)));
out:
	return st;
}

/* ---- plan ---- */

enum mu_status mu_cpu_plan_softmax(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	struct cpu_md have, plain;
	const struct size size = size_of(op);
	bool is_plain = !op->inputs[0]->layout;

	op->workspace_nbytes = size.n * size.area * sizeof(struct mu_prediction);
	mu_cpu_tensor_md(&have, op->inputs[0]);
	if (!is_plain) {
		mu_cpu_tag(&plain, &op->inputs[0]->shape, dnnl_acdb);
		plain.data_type = have.data_type;
		if (mu_dnnl_equal(&have, &plain))
			return plan_rows(p, &have);
	}
	op->fusion.in_place = false;
	mu_cpu_plain(&plain, &op->inputs[0]->shape);
	MU_TRY(mu_cpu_set_tensor(op->outputs[0], &plain));
	if (!is_plain)
		MU_TRY(mu_cpu_reorder(p, mu_cpu_memory(p, &have, CPU_IN_DATA, 0),
				      mu_cpu_memory(p, &plain, CPU_OUT_DATA, 0)));
	mu_cpu_call(p, is_plain ? forward_plain : forward_reordered);
	p->program = &p->impl->backward;
	if (!op->inputs[0]->needs_grad)
		goto out;
	if (is_plain) {
		mu_cpu_call(p, backward_plain);
	} else {
		int gradient = mu_cpu_temporary(p, &plain);

		mu_cpu_call(p, backward_reordered);
		MU_TRY(mu_cpu_reorder(p, gradient, mu_cpu_memory(p, &have, CPU_IN_GRAD, 0)));
	}
out:
	return st;
}
