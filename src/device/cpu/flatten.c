/* SPDX-License-Identifier: Apache-2.0 */
/* Flatten: the output's bytes are those of the plain input. */
#include "cpu.h"

#include <muster/base.h>

/* Reorder between an input and an output of the operation, data or gradient. */
static enum mu_status copy(struct cpu_plan *p, const struct cpu_md *from_md, enum cpu_place from,
			   const struct cpu_md *to_md, enum cpu_place to)
{
	int a = mu_cpu_memory(p, from_md, from, 0), b = mu_cpu_memory(p, to_md, to, 0);

	return mu_cpu_reorder(p, a, b);
}

enum mu_status mu_cpu_plan_flatten(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	struct cpu_md have, plain, flat;

	mu_cpu_tensor_md(&have, op->inputs[0]);
	mu_cpu_plain(&plain, &op->inputs[0]->shape);
	mu_cpu_plain(&flat, &op->outputs[0]->shape);
	MU_TRY(mu_cpu_set_tensor(op->outputs[0], &flat));
	MU_TRY(copy(p, &have, CPU_IN_DATA, &plain, CPU_OUT_DATA));
	p->program = &p->impl->backward;
	if (op->inputs[0]->needs_grad)
		MU_TRY(copy(p, &plain, CPU_OUT_GRAD, &have, CPU_IN_GRAD));
out:
	return st;
}
