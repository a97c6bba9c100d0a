/* SPDX-License-Identifier: Apache-2.0 */
/* Pad and crop: a row of the output is the value, a run of the input, the value. Backward is the
 * same the other way round, with zeros. */
#include "cpu.h"

#include <stdlib.h>
#include <string.h>

#include <muster/base.h>

struct pad {
	struct cpu_blocks blocks;
	long in[MU_MAX_SPACE], out[MU_MAX_SPACE], before[MU_MAX_SPACE];
	float value;
};

/* Sizes of one direction. */
struct way {
	const long *from, *to;
	long before[MU_MAX_SPACE];
	size_t inner;
	float value;
};

static const struct pad *pad_of(const struct mu_op *op)
{
	return ((const struct cpu_op *)op->impl)->own;
}

static void fill(float *y, long n, float value)
{
	for (long k = 0; k < n; k++)
		y[k] = value;
}

/* Row number `row` of all of y. */
static void move_row(const struct way *w, size_t row, const float *x, float *y)
{
	const long inner = (long)w->inner, width = w->to[2], rows = (long)row;
	const long at_y = rows % w->to[1] - w->before[1];
	const long at_z = rows / w->to[1] % w->to[0] - w->before[0];
	const long outer = rows / w->to[1] / w->to[0];
	const long first = w->before[2] > 0 ? w->before[2] : 0;
	const long most = w->before[2] + w->from[2], end = most < width ? most : width;

	y += rows * width * inner;
	if (at_y < 0 || at_y >= w->from[1] || at_z < 0 || at_z >= w->from[0]) {
		fill(y, width * inner, w->value);
		return;
	}
	x += (((outer * w->from[0] + at_z) * w->from[1] + at_y) * w->from[2] + first -
	      w->before[2]) * inner;
	fill(y, first * inner, w->value);
	memcpy(y + first * inner, x, (size_t)((end - first) * inner) * sizeof *y);
	fill(y + end * inner, (width - end) * inner, w->value);
}

static void move_rows(const struct pad *p, const struct way *w, struct cpu_part part,
		      const float *x, float *y)
{
	const struct cpu_range r =
		mu_cpu_range(p->blocks.outer * (size_t)(w->to[0] * w->to[1]), part);

	for (size_t row = r.from; row < r.to; row++)
		move_row(w, row, x, y);
}

static void forward(struct mu_op *op, struct cpu_part part)
{
	const struct pad *p = pad_of(op);
	struct way w = {.from = p->in, .to = p->out, .inner = p->blocks.inner, .value = p->value};

	memcpy(w.before, p->before, sizeof w.before);
	move_rows(p, &w, part, mu_cpu_pointer(op, p->blocks.x), mu_cpu_pointer(op, p->blocks.y));
}

static void backward(struct mu_op *op, struct cpu_part part)
{
	const struct pad *p = pad_of(op);
	struct way w = {.from = p->out, .to = p->in, .inner = p->blocks.inner};

	for (int i = 0; i < MU_MAX_SPACE; i++)
		w.before[i] = -p->before[i];
	move_rows(p, &w, part, mu_cpu_pointer(op, p->blocks.dy), mu_cpu_pointer(op, p->blocks.dx));
}

enum mu_status mu_cpu_plan_pad(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	const struct mu_pad *a = op->attr;
	const int first = MU_MAX_DIMS - op->inputs[0]->shape.ndims;
	struct pad *own = calloc(1, sizeof *own);

	p->impl->own = own;
	if (!own)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the plan of %s", op->name);
	MU_TRY(mu_cpu_blocks_begin(p, &own->blocks));
	mu_cpu_space(&op->inputs[0]->shape, own->in);
	mu_cpu_space(&op->outputs[0]->shape, own->out);
	for (int i = first; i < MU_MAX_SPACE; i++)
		own->before[i] = a->before[i - first];
	own->value = a->value;
	mu_cpu_share(p, forward, mu_shape_n(&op->outputs[0]->shape) * sizeof(float));
	if (!op->inputs[0]->needs_grad)
		goto out;
	MU_TRY(mu_cpu_blocks_turn(p, &own->blocks, false));
	mu_cpu_share(p, backward, mu_shape_n(&op->inputs[0]->shape) * sizeof(float));
	MU_TRY(mu_cpu_blocks_end(p, &own->blocks));
out:
	return st;
}
