/* SPDX-License-Identifier: Apache-2.0 */
/* Product of two inputs, in the layout and type of the first. */
#include "cpu.h"

#include <muster/base.h>

/* The data of input i, laid out as md. */
static enum mu_status factor(struct cpu_plan *p, const struct cpu_md *md, int i, int *out)
{
	struct cpu_md have;

	mu_cpu_tensor_md(&have, p->op->inputs[i]);
	return mu_cpu_as(p, mu_cpu_memory(p, &have, CPU_IN_DATA, (size_t)i), md, false, out);
}

/* The gradient of input i. */
static enum mu_status plan_gradient(struct cpu_plan *p, const struct cpu_md *md, int i)
{
	enum mu_status st = MU_OK;
	struct cpu_md want;
	struct cpu_pair pair = {.a = mu_cpu_memory(p, md, CPU_OUT_GRAD, 0)};
	int grad;

	mu_cpu_tensor_md(&want, p->op->inputs[i]);
	grad = mu_cpu_memory(p, &want, CPU_IN_GRAD, (size_t)i);
	pair.to = mu_dnnl_equal(&want, md) ? grad : mu_cpu_temporary(p, md);
	MU_TRY(factor(p, md, 1 - i, &pair.b));
	MU_TRY(mu_cpu_binary(p, dnnl_binary_mul, pair));
	if (pair.to != grad)
		MU_TRY(mu_cpu_reorder(p, pair.to, grad));
out:
	return st;
}

enum mu_status mu_cpu_plan_product(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	struct cpu_pair pair = {0};
	struct cpu_md md;

	mu_cpu_tensor_md(&md, op->inputs[0]);
	MU_TRY(mu_cpu_set_tensor(op->outputs[0], &md));
	MU_TRY(factor(p, &md, 0, &pair.a));
	MU_TRY(factor(p, &md, 1, &pair.b));
	pair.to = mu_cpu_memory(p, &md, CPU_OUT_DATA, 0);
	MU_TRY(mu_cpu_binary(p, dnnl_binary_mul, pair));
	p->program = &p->impl->backward;
	for (int i = 0; i < 2; i++)
		if (op->inputs[i]->needs_grad)
			MU_TRY(plan_gradient(p, &md, i));
out:
	return st;
}
