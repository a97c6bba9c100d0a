/* SPDX-License-Identifier: Apache-2.0 */
/* A vector for each step of a sequence, in loops of our own over rows. */
#include "cpu.h"

#include <string.h>

#include <muster/base.h>

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

static void forward(struct mu_op *op, struct cpu_part part)
{
	const struct steps s = steps_of(op, part);
	const float *x = mu_cpu_pointer(op, mu_cpu_vectors_of(op)->x);
	float *y = mu_cpu_pointer(op, mu_cpu_vectors_of(op)->y);
	const float *weight = op->params[0].data + (op->past ? op->past->steps * s.c : 0);

	for (size_t i = 0; i < s.n; i++)
		for (size_t t = s.from; t < s.to; t++)
			mu_cpu_sum(y + (i * s.steps + t) * s.c,
				   t < s.first ? op->params[1].data
					       : x + (i * (s.steps - s.first) + t - s.first) * s.c,
				   weight + t * s.c, s.c);
}

static void backward(struct mu_op *op, struct cpu_part part)
{
	const struct steps s = steps_of(op, part);
	const struct cpu_vectors *r = mu_cpu_vectors_of(op);
	const float *dy = mu_cpu_pointer(op, r->dy);
	float *dx = r->dx >= 0 ? mu_cpu_pointer(op, r->dx) : NULL;
	float *token = s.first > 0 && s.from == 0 && s.to > 0 ? op->params[1].grad : NULL;

	if (part.index == 0 && !op->adds)
		memset(op->params[0].grad + s.steps * s.c, 0,
		       (op->params[0].shape.dims[0] - s.steps) * s.c * sizeof *dy);
	if (!op->adds)
		memset(op->params[0].grad + s.from * s.c, 0, (s.to - s.from) * s.c * sizeof *dy);
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
	struct cpu_vectors *r;

	MU_TRY(mu_cpu_set_plain_params(op));
	MU_TRY(mu_cpu_vectors_begin(p, &r));
	mu_cpu_share(p, forward, nbytes);
	if (op->phase != MU_PHASE_TRAIN)
		goto out;
	mu_cpu_vectors_turn(p, r);
	mu_cpu_share(p, backward, nbytes);
	MU_TRY(mu_cpu_vectors_end(p, r));
	op->can_add = true;
out:
	return st;
}
