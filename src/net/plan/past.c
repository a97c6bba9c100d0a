/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a sequence one by one, in inference: see struct mu_past. */
#include "plan.h"

#include <muster/base.h>

static enum mu_status check(const struct mu_plan *plan, const struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_attention *a = op->attr;
	const bool of_step = op->outputs[0]->shape.ndims == 4 && op->outputs[0]->shape.dims[2] == 1;
	const bool usual = mu_op_traits(op->kind)->stepwise || op->kind == MU_OP_CONVOLUTION ||
			   (op->kind == MU_OP_POSITIONS && op->n_params == 1) ||
			   (op->kind == MU_OP_ATTENTION && a->causal);

	if (!usual || !of_step || plan->phase != MU_PHASE_INFER || !plan->device->ops->remembers)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"%s (%s) on device %s cannot work on one step after another", op->name,
			mu_op_kind_name(op->kind), plan->device->ops->name);
out:
	return st;
}

static size_t rows_of(const struct mu_op *op, size_t most)
{
	const struct mu_attention_sizes s = mu_attention_sizes(op->attr, &op->inputs[0]->shape);

	return most * (s.n * 2 * s.kv * s.d + 2);
}

enum mu_status mu_plan_remember(struct mu_plan *plan, size_t most)
{
	enum mu_status st = MU_OK;

	for (size_t i = 0; i < plan->n_ops; i++)
		MU_TRY(check(plan, &plan->ops[i]));
	MU_TRY(MU_ALLOC(plan->pasts, plan->n_ops, "past steps"));
	for (size_t i = 0; i < plan->n_ops; i++) {
		struct mu_op *op = &plan->ops[i];

		plan->pasts[i] = (struct mu_past){.most = most};
		if (op->kind == MU_OP_ATTENTION)
			MU_TRY(MU_ALLOC(plan->pasts[i].rows, rows_of(op, most), "past steps"));
		if (op->kind == MU_OP_ATTENTION || op->kind == MU_OP_POSITIONS)
			op->past = &plan->pasts[i];
	}
out:
	return st;
}

void mu_plan_set_past(struct mu_plan *plan, size_t steps)
{
	for (size_t i = 0; i < plan->n_ops; i++)
		plan->pasts[i].steps = steps;
}

void mu_plan_forget(struct mu_plan *plan)
{
	for (size_t i = 0; plan->pasts && i < plan->n_ops; i++)
		mu_free(plan->pasts[i].rows);
	mu_free(plan->pasts);
}
