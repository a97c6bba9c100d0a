/* SPDX-License-Identifier: Apache-2.0 */
/* Pad and crop: rows of the input are copied, the rest of the output has the value. */
#include "ref.h"

#include <muster/base.h>

/* What both have in common, in three axes: `n` elements from `in` of the input and `out` of the
 * output on. */
struct overlap {
	size_t in[MU_MAX_SPACE], out[MU_MAX_SPACE], n[MU_MAX_SPACE];
	size_t of_in[MU_MAX_SPACE], of_out[MU_MAX_SPACE]; /* sizes */
};

static struct overlap overlap_of(const struct mu_op *op)
{
	const struct mu_pad *a = op->attr;
	const struct mu_shape *in = &op->inputs[0]->shape, *out = &op->outputs[0]->shape;
	const int first = MU_MAX_DIMS - in->ndims;
	struct overlap o;

	for (int d = 0; d < MU_MAX_SPACE; d++) {
		const long before = d < first ? 0 : a->before[d - first];
		const long after = d < first ? 0 : a->after[d - first];

		o.of_in[d] = d < first ? 1 : in->dims[2 + d - first];
		o.of_out[d] = d < first ? 1 : out->dims[2 + d - first];
		o.in[d] = before < 0 ? (size_t)-before : 0;
		o.out[d] = before > 0 ? (size_t)before : 0;
		o.n[d] = o.of_in[d] - o.in[d] - (after < 0 ? (size_t)-after : 0);
	}
	return o;
}

/* The first element of a row of the overlap, in one of both. */
static size_t row(const size_t *from, const size_t *of, size_t z, size_t y)
{
	return ((from[0] + z) * of[1] + from[1] + y) * of[2] + from[2];
}

static size_t planes_of(const struct mu_op *op)
{
	return op->inputs[0]->shape.dims[0] * op->inputs[0]->shape.dims[1];
}

static enum mu_status plan(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_pad *a = op->attr;
	struct mu_shape want = op->inputs[0]->shape;

	MU_TRY(mu_ref_need_space(op));
	for (int i = 0; i + 2 < want.ndims; i++)
		want.dims[2 + i] += (size_t)(long)a->before[i] + (size_t)(long)a->after[i];
	MU_TRY(mu_ref_need_shape(op, "output", &op->outputs[0]->shape, &want));
out:
	return st;
}

static enum mu_status forward(struct mu_op *op)
{
	const struct mu_pad *a = op->attr;
	const struct overlap o = overlap_of(op);
	const float *x = op->inputs[0]->data;
	float *y = op->outputs[0]->data;

	for (size_t k = 0; k < mu_shape_n(&op->outputs[0]->shape); k++)
		y[k] = a->value;
	for (size_t p = 0; p < planes_of(op); p++) {
		for (size_t k = 0; k < o.n[0] * o.n[1]; k++)
			memcpy(y + row(o.out, o.of_out, k / o.n[1], k % o.n[1]),
			       x + row(o.in, o.of_in, k / o.n[1], k % o.n[1]),
			       o.n[2] * sizeof *y);
		x += mu_shape_positions(&op->inputs[0]->shape);
		y += mu_shape_positions(&op->outputs[0]->shape);
	}
	return MU_OK;
}

static void backward(struct mu_op *op)
{
	const struct overlap o = overlap_of(op);
	const float *dy = op->outputs[0]->grad;
	float *dx = op->inputs[0]->grad;

	if (!op->inputs[0]->needs_grad)
		return;
	memset(dx, 0, mu_shape_n(&op->inputs[0]->shape) * sizeof *dx);
	for (size_t p = 0; p < planes_of(op); p++) {
		for (size_t k = 0; k < o.n[0] * o.n[1]; k++)
			memcpy(dx + row(o.in, o.of_in, k / o.n[1], k % o.n[1]),
			       dy + row(o.out, o.of_out, k / o.n[1], k % o.n[1]),
			       o.n[2] * sizeof *dx);
		dx += mu_shape_positions(&op->inputs[0]->shape);
		dy += mu_shape_positions(&op->outputs[0]->shape);
	}
}

const struct mu_ref_kind mu_ref_pad = {
	.n_inputs = 1,
	.n_outputs = 1,
	.plan = plan,
	.forward = forward,
	.backward = backward,
};
