/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a sequence one by one, or some at a time, in inference: see struct mu_past. */
#include "plan.h"

#include <muster/base.h>

static enum mu_status check(const struct mu_plan *plan, const struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_layer_kind *kind = mu_layer_kind(op->kind);
	const bool of_steps = op->outputs[0]->shape.ndims == 4;
	const bool usual = mu_layer_is_stepwise(kind, op->attr) ||
			   (kind->can_remember && kind->can_remember(op));

	if (!usual || !of_steps || plan->phase != MU_PHASE_INFER || !plan->device->ops->remembers)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"%s (%s) on device %s cannot work on one step after another", op->name,
			mu_op_kind_name(op->kind), plan->device->ops->name);
out:
	return st;
}

/* rows: of the operations that have some, in order; NULL: new ones. */
static enum mu_status remember(struct mu_plan *plan, size_t most, float *const *rows)
{
	enum mu_status st = MU_OK;

	for (size_t i = 0; i < plan->n_ops; i++)
		MU_TRY(check(plan, &plan->ops[i]));
	MU_TRY(MU_ALLOC(plan->past.all, plan->n_ops, "past steps"));
	plan->past.shared = rows != NULL;
	for (size_t i = 0, n = 0; i < plan->n_ops; i++) {
		struct mu_op *op = &plan->ops[i];
		const struct mu_layer_kind *kind = mu_layer_kind(op->kind);
		const size_t size = kind->past ? kind->past(op, most) : 0;
		struct mu_past *past = &plan->past.all[i];

		past->most = most;
		if (size > 0 && rows)
			past->rows = rows[n++];
		else if (size > 0)
			MU_TRY(MU_ALLOC(past->rows, size, "past steps"));
		if (kind->past)
			op->past = past;
	}
out:
	return st;
}

enum mu_status mu_plan_remember(struct mu_plan *plan, size_t most)
{
	return remember(plan, most, NULL);
}

enum mu_status mu_plan_share_past(struct mu_plan *plan, const struct mu_plan *of)
{
	enum mu_status st = MU_OK;
	float **rows = NULL;
	size_t n = 0;

	MU_TRY(MU_ALLOC(rows, of->n_ops, "past steps"));
	for (size_t i = 0; i < of->n_ops; i++)
		if (of->past.all[i].rows)
			rows[n++] = of->past.all[i].rows;
	MU_TRY(remember(plan, of->past.all[0].most, rows));
out:
	mu_free(rows);
	return st;
}

void mu_plan_set_past(struct mu_plan *plan, size_t steps)
{
	for (size_t i = 0; i < plan->n_ops; i++)
		plan->past.all[i].steps = steps;
}

void mu_plan_forget(struct mu_plan *plan)
{
	for (size_t i = 0; plan->past.all && !plan->past.shared && i < plan->n_ops; i++)
		mu_free(plan->past.all[i].rows);
	mu_free(plan->past.all);
}
