/* SPDX-License-Identifier: Apache-2.0 */
/* One step of a sequence. */
#include "cpu.h"

#include <string.h>

#include <muster/base.h>

static size_t number_of(const struct mu_op *op)
{
	return (size_t)((const struct mu_step *)op->attr)->step;
}

static void forward(struct mu_op *op)
{
	const struct mu_shape *in = &op->inputs[0]->shape;
	const float *x = mu_cpu_pointer(op, mu_cpu_vectors_of(op)->x);
	float *y = mu_cpu_pointer(op, mu_cpu_vectors_of(op)->y);

	for (size_t i = 0; i < in->dims[0]; i++)
		memcpy(y + i * in->dims[1], x + (i * in->dims[2] + number_of(op)) * in->dims[1],
		       in->dims[1] * sizeof *y);
}

static void backward(struct mu_op *op)
{
	const struct mu_shape *in = &op->inputs[0]->shape;
	const float *dy = mu_cpu_pointer(op, mu_cpu_vectors_of(op)->dy);
	float *dx = mu_cpu_pointer(op, mu_cpu_vectors_of(op)->dx);

	memset(dx, 0, mu_shape_n(in) * sizeof *dx);
	for (size_t i = 0; i < in->dims[0]; i++)
		memcpy(dx + (i * in->dims[2] + number_of(op)) * in->dims[1], dy + i * in->dims[1],
		       in->dims[1] * sizeof *dx);
}

enum mu_status mu_cpu_plan_step(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct cpu_vectors *r;

	MU_TRY(mu_cpu_vectors_begin(p, &r));
	mu_cpu_call(p, forward);
	if (p->op->phase != MU_PHASE_TRAIN || !p->op->inputs[0]->needs_grad)
		goto out;
	mu_cpu_vectors_turn(p, r);
	mu_cpu_call(p, backward);
	MU_TRY(mu_cpu_vectors_end(p, r));
out:
	return st;
}
