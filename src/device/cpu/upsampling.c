/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Upsampling, by tables of the neighbours of each output along each axis. A row of the output is
 * the sum of at most four rows of the input, each interpolated along the row; backward adds the
 * output's rows to those. A thread has whole planes, so that sums have one order.
 */
#include "cpu.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <muster/base.h>

/* Neighbours of an output, and the weight of the second. */
struct between {
	int low, high;
	float rest;
};

struct upsampling {
	struct cpu_blocks blocks;
	long in[MU_MAX_SPACE], out[MU_MAX_SPACE];
	struct between at[]; /* of all axes */
};

static struct between between(const struct mu_upsampling *a, long o, long in, long out)
{
	struct between b = {.low = (int)(o * in / out)};
	double from;

	b.high = b.low;
	if (!a->linear)
		return b;
	if (a->align_corners)
		from = out > 1 ? (double)(o * (in - 1)) / (double)(out - 1) : 0;
	else
		from = fmax(((double)o + 0.5) * (double)in / (double)out - 0.5, 0);
	b.low = (int)from < in - 1 ? (int)from : (int)in - 1;
	b.high = b.low + 1 < in ? b.low + 1 : b.low;
	b.rest = (float)(from - (double)b.low);
	return b;
}

/* A row of y += weight times the row of x between whose elements it lies. */
MU_LOOP static void upsample_row(const struct between *at, long width, long inner, float weight,
				 const float *restrict x, float *restrict y)
{
	for (long o = 0; o < width && inner == 1; o++)
		y[o] += weight * (at[o].rest == 0 ? x[at[o].low]
						  : x[at[o].low] + at[o].rest * (x[at[o].high] -
										 x[at[o].low]));
	for (long o = 0; o < width && inner > 1; o++) {
		const float high = weight * at[o].rest, low = weight - high;
		const float *a = x + at[o].low * inner, *b = x + at[o].high * inner;

		for (long j = 0; j < inner && high != 0; j++)
			y[o * inner + j] += low * a[j] + high * b[j];
		for (long j = 0; j < inner && high == 0; j++)
			y[o * inner + j] += low * a[j];
	}
}

MU_LOOP static void upsample_row_back(const struct between *at, long width, long inner,
				      float weight, const float *restrict dy, float *restrict dx)
{
	for (long o = 0; o < width && inner == 1; o++) {
		const float high = weight * at[o].rest * dy[o];

		dx[at[o].low] += weight * dy[o] - high;
		dx[at[o].high] += high;
	}
	for (long o = 0; o < width && inner > 1; o++) {
		const float high = weight * at[o].rest, low = weight - high;
		float *a = dx + at[o].low * inner, *b = dx + at[o].high * inner;

		for (long j = 0; j < inner; j++)
			a[j] += low * dy[o * inner + j];
		for (long j = 0; j < inner && high != 0; j++)
			b[j] += high * dy[o * inner + j];
	}
}

static const struct upsampling *upsampling_of(const struct mu_op *op)
{
	return ((const struct cpu_op *)op->impl)->own;
}

/* Row `row` of an outer's output and each row of its input that it depends on. */
static void each_row(const struct upsampling *u, long row, float *x, float *y, bool back)
{
	const struct between *z = u->at + row / u->out[1];
	const struct between *v = u->at + u->out[0] + row % u->out[1];
	const struct between *at = u->at + u->out[0] + u->out[1];
	const long inner = (long)u->blocks.inner, width = u->in[2] * inner;

	for (int k = 0; k < 4; k++) {
		const float weight = (k & 2 ? z->rest : 1 - z->rest) *
				     (k & 1 ? v->rest : 1 - v->rest);
		const long of = (k & 2 ? z->high : z->low) * u->in[1] + (k & 1 ? v->high : v->low);

		if (weight == 0)
			continue;
		if (back)
			upsample_row_back(at, u->out[2], inner, weight, y, x + of * width);
		else
			upsample_row(at, u->out[2], inner, weight, x + of * width, y);
	}
}

static void work(const struct upsampling *u, struct cpu_part part, float *x, float *y, bool back)
{
	const struct cpu_range r = mu_cpu_range(u->blocks.outer, part);
	const size_t in = (size_t)mu_window_area(u->in) * u->blocks.inner;
	const size_t width = (size_t)u->out[2] * u->blocks.inner;
	const long rows = u->out[0] * u->out[1];

	for (size_t o = r.from; o < r.to; o++) {
		if (back)
			memset(x + o * in, 0, in * sizeof *x);
		for (long row = 0; row < rows; row++) {
			float *to = y + (o * (size_t)rows + (size_t)row) * width;

			if (!back)
				memset(to, 0, width * sizeof *y);
			each_row(u, row, x + o * in, to, back);
		}
	}
}

static void forward(struct mu_op *op, struct cpu_part part)
{
	const struct upsampling *u = upsampling_of(op);

	work(u, part, mu_cpu_pointer(op, u->blocks.x), mu_cpu_pointer(op, u->blocks.y), false);
}

static void backward(struct mu_op *op, struct cpu_part part)
{
	const struct upsampling *u = upsampling_of(op);

	work(u, part, mu_cpu_pointer(op, u->blocks.dx), mu_cpu_pointer(op, u->blocks.dy), true);
}

enum mu_status mu_cpu_plan_upsampling(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	const size_t nbytes = mu_shape_n(&op->outputs[0]->shape) * sizeof(float);
	long sizes[MU_MAX_SPACE];
	struct upsampling *own;
	struct between *at;

	mu_cpu_space(&op->outputs[0]->shape, sizes);
	own = calloc(1, sizeof *own +
				(size_t)(sizes[0] + sizes[1] + sizes[2]) * sizeof *own->at);
	p->impl->own = own;
	if (!own)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the plan of %s", op->name);
	MU_TRY(mu_cpu_blocks_begin(p, &own->blocks));
	memcpy(own->out, sizes, sizeof sizes);
	mu_cpu_space(&op->inputs[0]->shape, own->in);
	at = own->at;
	for (int d = 0; d < MU_MAX_SPACE; d++)
		for (long o = 0; o < sizes[d]; o++)
			*at++ = between(op->attr, o, own->in[d], sizes[d]);
	mu_cpu_share(p, forward, nbytes);
	if (!op->inputs[0]->needs_grad)
		goto out;
	MU_TRY(mu_cpu_blocks_turn(p, &own->blocks, false));
	mu_cpu_share(p, backward, nbytes);
	MU_TRY(mu_cpu_blocks_end(p, &own->blocks));
out:
	return st;
}
