/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sum: one pass over memory. Forward adds and activates at once, and gives its output's gradient on
 * without a copy where it may.
 */
#include "cpu.h"

#include <muster/base.h>

/* to = the sum, in order, of n tensors; md is to's layout. */
static enum mu_status add_up(struct cpu_plan *p, const struct cpu_md *md, int n, const int *from,
			     int to)
{
	enum mu_status st = MU_OK;
	struct cpu_md mds[CPU_MAX_PARTS];
	struct cpu_arg args[CPU_MAX_PARTS + 1];
	dnnl_primitive_desc_t pd = NULL;

	for (int i = 0; i < n; i++) {
		mds[i] = *mu_cpu_md(p, from[i]);
		args[i] = (struct cpu_arg){DNNL_ARG_MULTIPLE_SRC + i, from[i]};
	}
	args[n] = (struct cpu_arg){DNNL_ARG_DST, to};
	MU_TRY(mu_dnnl_sum(p->cpu->engine, n, mds, md, &pd));
	MU_TRY(mu_cpu_step(p, pd, n + 1, args));
out:
	return st;
}

static enum mu_status plan_sum_forward(struct cpu_plan *p, const struct cpu_md *md)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	struct cpu_md have;
	int from[CPU_MAX_PARTS], to;

	for (int i = 0; i < op->n_inputs; i++) {
		mu_cpu_tensor_md(&have, op->inputs[i]);
		from[i] = mu_cpu_memory(p, &have, CPU_IN_DATA, (size_t)i);
	}
	to = mu_cpu_memory(p, md, CPU_OUT_DATA, 0);
	if (op->n_inputs == 2 && mu_dnnl_equal(&have, md)) {
		MU_TRY(mu_cpu_binary(
			p, dnnl_binary_add,
			(struct cpu_pair){from[0], from[1], to, op->fusion.activation}));
		goto out;
	}
	MU_TRY(add_up(p, md, op->n_inputs, from, to));
	if (op->fusion.activation)
		MU_TRY(mu_cpu_plan_activation_forward(p, op->fusion.activation));
out:
	return st;
}

enum mu_status mu_cpu_plan_sum(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	struct cpu_md md, have;

	MU_TRY(mu_cpu_check_parts(op, op->n_inputs));
	mu_cpu_tensor_md(&md, op->inputs[0]);
	MU_TRY(mu_cpu_set_tensor(op->outputs[0], &md));
	MU_TRY(plan_sum_forward(p, &md));
	p->program = &p->impl->backward;
	if (op->fusion.undo)
		MU_TRY(mu_cpu_plan_activation_backward(p, op->fusion.undo));
	for (int i = 0; i < op->n_inputs; i++) {
		if (!op->inputs[i]->needs_grad)
			continue;
		mu_cpu_tensor_md(&have, op->inputs[i]);
		if (!mu_dnnl_equal(&have, &md))
			op->fusion.shared_grads &= ~(1u << i);
		if (op->fusion.shared_grads >> i & 1)
			continue;
		MU_TRY(mu_cpu_reorder(p, mu_cpu_memory(p, &md, CPU_OUT_GRAD, 0),
				      mu_cpu_memory(p, &have, CPU_IN_GRAD, (size_t)i)));
	}
out:
	return st;
}
