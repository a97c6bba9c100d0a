/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Outputs that are recomputed instead of kept: those of batch-norms (with their ReLU) and of the
 * sums of residual units. They cost one or two passes over memory and are more than half of what
 * such a network keeps from forward to backward. (Trading computation for memory: Chen et al.,
 * Training Deep Nets with Sublinear Memory Cost, 2016.)
 *
 * A batch-norm is restored from its input, which its own backward needs anyway. A sum, and a
 * batch-norm with an addend, are restored from their addends, if all of these are kept or restored.
 * An output is restored directly before the first backward that reads it, or before another restore
 * that needs it: so the sums of a stage are restored together, the first one first.
 *
 * In float32 only: with 16 bits all outputs together need less memory than the restored ones do in
 * float32, and recomputation is a larger part of the step.
 *
 * That is the level AUTO; others name other operations (enum mu_recompute).
 */
#include "plan.h"

#include <muster/base.h>

/* The operation that writes tensor t, across splits, which only pass on their input. */
static size_t source(const struct mu_plan *plan, const struct mu_tensor *t)
{
	size_t i = mu_plan_maker(plan, t);

	while (i != MU_PLAN_NONE && mu_op_has(&plan->ops[i], MU_LAYER_IS_PASSAGE))
		i = mu_plan_maker(plan, plan->ops[i].inputs[0]);
	return i;
}

/* The operation that reads t, as its input number *input. */
static size_t reader(const struct mu_plan *plan, const struct mu_tensor *t, int *input)
{
	for (size_t i = 0; i < plan->n_ops; i++)
		for (int k = 0; k < plan->ops[i].n_inputs; k++)
			if (plan->ops[i].inputs[k] == t) {
				*input = k;
				return i;
			}
	return MU_PLAN_NONE;
}

/* The first operation in backward order whose backward reads the value of t, which splits pass on.
 * MU_PLAN_NONE: none. */
static size_t first_in_backward(const struct mu_plan *plan, const struct mu_tensor *t)
{
	int input = 0;
	size_t i = reader(plan, t, &input), best = MU_PLAN_NONE;
	const struct mu_op *op = &plan->ops[i];

	if (i == MU_PLAN_NONE)
		return i;
	if (!mu_op_has(op, MU_LAYER_IS_PASSAGE))
		return mu_plan_reads_input(op, input) ? i : MU_PLAN_NONE;
	for (int o = 0; o < op->n_outputs; o++) {
		size_t k = first_in_backward(plan, op->outputs[o]);

		if (k != MU_PLAN_NONE && (best == MU_PLAN_NONE || k > best))
			best = k;
	}
	return best;
}

/* Is t available to a restore: kept for a backward, or restored itself? */
static bool is_there(const struct mu_plan *plan, const struct mu_tensor *t)
{
	size_t from = source(plan, t);

	if (from == MU_PLAN_NONE)
		return true;
	return plan->ops[from].fusion.restored || mu_plan_reads_output(&plan->ops[from]) ||
	       first_in_backward(plan, plan->ops[from].outputs[0]) != MU_PLAN_NONE;
}

/* Does its reader write where it wrote? */
static bool is_overwritten(const struct mu_plan *plan, const struct mu_op *op)
{
	int input;
	const size_t i = reader(plan, op->outputs[0], &input);

	return i != MU_PLAN_NONE && plan->ops[i].fusion.in_place &&
	       !mu_op_has(&plan->ops[i], MU_LAYER_IS_PASSAGE) && input == 0;
}

static bool may_be_restored(const struct mu_plan *plan, const struct mu_op *op)
{
	const enum mu_recompute level = plan->net->config.recompute;
	const unsigned levels = mu_layer_kind(op->kind)->restored;
	const bool usual = levels >> MU_RECOMPUTE_AUTO & 1;
	const int first = mu_op_has(op, MU_LAYER_ABSORBS_ADDEND); /* it keeps input 0 */

	if (!(levels >> level & 1) || (!usual && is_overwritten(plan, op)) ||
	    (level == MU_RECOMPUTE_AUTO && plan->device->dtype != MU_FLOAT32))
		return false;
	for (int i = first; i < op->n_inputs; i++)
		if (!is_there(plan, op->inputs[i]))
			return false;
	return true;
}

/* A larger number is earlier in backward. MU_PLAN_NONE: never. */
static void need_earlier(size_t *at, size_t l)
{
	if (*at == MU_PLAN_NONE || (l != MU_PLAN_NONE && l > *at))
		*at = l;
}

/* at[i]: operation i is restored before backward of operation at[i]. */
static void choose(struct mu_plan *plan, size_t *at)
{
	for (size_t i = 0; i < plan->n_ops; i++) {
		at[i] = MU_PLAN_NONE;
		plan->ops[i].fusion.restored = may_be_restored(plan, &plan->ops[i]);
	}
	for (size_t i = plan->n_ops; i-- > 0;) {
		struct mu_op *op = &plan->ops[i];

		if (!op->fusion.restored)
			continue;
		need_earlier(&at[i], first_in_backward(plan, op->outputs[0]));
		if (mu_plan_reads_output(op))
			need_earlier(&at[i], i);
		op->fusion.restored = at[i] != MU_PLAN_NONE;
		for (int k = 0; op->fusion.restored && k < op->n_inputs; k++) {
			size_t from = source(plan, op->inputs[k]);

			if (from != MU_PLAN_NONE && plan->ops[from].fusion.restored)
				need_earlier(&at[from], at[i]);
		}
	}
}

enum mu_status mu_plan_choose_restores(struct mu_plan *plan)
{
	enum mu_status st = MU_OK;
	size_t *at = NULL, n = 0;

	MU_TRY(MU_ALLOC(at, plan->n_ops, "restores"));
	MU_TRY(MU_ALLOC(plan->restore.all, plan->n_ops, "restores"));
	MU_TRY(MU_ALLOC(plan->restore.first, plan->n_ops + 1, "restores of layers"));
	if (plan->phase == MU_PHASE_TRAIN)
		choose(plan, at);
	for (size_t l = 0; l < plan->n_ops; l++) {
		plan->restore.first[l] = n;
		for (size_t i = 0; i < plan->n_ops; i++)
			if (plan->ops[i].fusion.restored && at[i] == l)
				plan->restore.all[n++] = i;
	}
	plan->restore.first[plan->n_ops] = n;
out:
	mu_free(at);
	return st;
}
