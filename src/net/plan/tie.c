/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Weights that two operations share (mu_net_tie): the output's product reads the table of the
 * embedding. The key is the embedding's, since forward needs it there first, and backward completes
 * its gradient there: the product, later in the net and so earlier in backward, writes its part,
 * and the embedding adds to that.
 */
#include "plan.h"

#include <string.h>

#include <muster/base.h>

static const struct net_param *first_param(const struct mu_plan *plan, size_t i)
{
	return &plan->net->layers[plan->ops[i].index].params[0];
}

static size_t find_table(const struct mu_plan *plan, const char *name)
{
	for (size_t i = 0; i < plan->n_ops; i++)
		if (mu_op_has(&plan->ops[i], MU_LAYER_HAS_TABLE) &&
		    strcmp(plan->ops[i].params[0].name, name) == 0)
			return i;
	return MU_PLAN_NONE;
}

/* Is the reader of this embedding's table in another part? */
static bool is_read_elsewhere(const struct mu_plan *plan, size_t i)
{
	const struct mu_net *net = plan->net;

	for (int l = 0; l < net->n_layers && plan->layout.ties[i].reader == MU_PLAN_NONE; l++)
		if (net->layers[l].n_params > 0 && net->layers[l].params[0].tied &&
		    strcmp(net->layers[l].params[0].name, plan->ops[i].params[0].name) == 0)
			return true;
	return false;
}

enum mu_status mu_plan_find_ties(struct mu_plan *plan)
{
	enum mu_status st = MU_OK;

	MU_TRY(MU_ALLOC(plan->layout.ties, plan->n_ops, "ties of layers"));
	for (size_t i = 0; i < plan->n_ops; i++)
		plan->layout.ties[i] = (struct plan_tie){MU_PLAN_NONE, MU_PLAN_NONE, false};
	for (size_t i = 0; i < plan->n_ops; i++) {
		size_t with;

		if (plan->ops[i].n_params == 0 || !first_param(plan, i)->tied)
			continue;
		with = find_table(plan, plan->ops[i].params[0].name);
		if (with == MU_PLAN_NONE)
			MU_FAIL(MU_ERR_USAGE,
				"layer %s has the weight of another one, %s: both must be on one "
				"device, or have untied weights",
				plan->ops[i].name, plan->ops[i].params[0].name);
		plan->layout.ties[i].with = with;
		plan->layout.ties[with].reader = i;
	}
	for (size_t i = 0; i < plan->n_ops; i++)
		if (mu_op_has(&plan->ops[i], MU_LAYER_HAS_TABLE) && is_read_elsewhere(plan, i))
			MU_FAIL(MU_ERR_USAGE,
				"another layer has the weight of %s: both must be on one device, "
				"or have untied weights",
				plan->ops[i].name);
out:
	return st;
}

enum mu_status mu_plan_tie_layout(struct mu_plan *plan, size_t i)
{
	enum mu_status st = MU_OK;
	const size_t with = plan->layout.ties[i].with;
	struct mu_param *to = &plan->ops[i].params[0];

	if (with == MU_PLAN_NONE || to->n_padded != 0)
		goto out;
	to->n_padded = plan->ops[with].params[0].n_padded;
	MU_TRY(plan->device->ops->copy_layout(plan->device, plan->ops[with].params[0].layout,
					      &to->layout));
out:
	return st;
}

void mu_plan_tie_adds(struct mu_plan *plan, size_t i, bool sums)
{
	struct plan_tie *tie = &plan->layout.ties[i];
	const size_t other = tie->with != MU_PLAN_NONE ? tie->with : tie->reader;

	tie->sums = sums && plan->ops[i].can_add &&
		    (other == MU_PLAN_NONE || plan->ops[other].can_add);
	plan->ops[i].adds = tie->sums || tie->reader != MU_PLAN_NONE;
}

bool mu_plan_adds(const struct mu_plan *plan, size_t l)
{
	return plan->layout.ties[l].sums;
}

int mu_plan_first_own(const struct mu_plan *plan, size_t i)
{
	return plan->layout.ties[i].with != MU_PLAN_NONE ? 1 : 0;
}
