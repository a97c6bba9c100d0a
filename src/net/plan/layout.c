/* SPDX-License-Identifier: Apache-2.0 */
/* The keys of a plan: slices of the flat arrays, learnable ones first. A part uses those of its
 * whole plan. */
#include "plan.h"

#include <muster/base.h>

struct mu_param *mu_plan_op_param(struct mu_op *op, int param)
{
	return param < op->n_params ? &op->params[param] : &op->aux[param - op->n_params];
}

struct mu_param *mu_plan_param(const struct mu_plan *plan, size_t k)
{
	const struct plan_key *key = &plan->layout.keys[k];

	return mu_plan_op_param(&plan->ops[key->op], key->param);
}

/* Parameter p of operation i is the next key. */
static void add_key(struct plan_layout *layout, size_t i, int p, const struct mu_slice *slice)
{
	layout->slices[layout->n_slices] = *slice;
	layout->keys[layout->n_slices] = (struct plan_key){i, p};
	layout->op_keys[i][p] = layout->n_slices++;
}

static void add_slice(struct mu_plan *plan, size_t i, int p, bool aux)
{
	struct plan_layout *layout = &plan->layout;
	struct mu_op *op = &plan->ops[i];
	const struct mu_param *param = mu_plan_op_param(op, p);
	const struct mu_slice slice = {
		.name = param->name,
		.at = layout->n,
		.n = mu_shape_n(&param->shape),
		.n_padded = param->n_padded,
		.rule = aux ? MU_SLICE_AVERAGE : MU_SLICE_LEARN,
		.momentum = aux ? ((const struct mu_batch_norm *)op->attr)->momentum : 0,
	};

	add_key(layout, i, p, &slice);
	layout->n += mu_pad(param->n_padded);
}

static void add_slices(struct mu_plan *plan)
{
	for (size_t i = 0; i < plan->n_ops; i++)
		for (int p = mu_plan_first_own(plan, i); p < plan->ops[i].n_params; p++)
			add_slice(plan, i, p, false);
	for (size_t i = 0; i < plan->n_ops; i++)
		for (int p = 0; p < plan->ops[i].n_aux; p++)
			add_slice(plan, i, plan->ops[i].n_params + p, true);
}

static void copy_slices(struct mu_plan *plan, const struct plan_layout *whole)
{
	for (size_t i = 0; i < plan->n_ops; i++) {
		const struct mu_op *op = &plan->ops[i];

		for (int p = mu_plan_first_own(plan, i); p < op->n_params + op->n_aux; p++)
			add_key(&plan->layout, i, p,
				&whole->slices[whole->op_keys[plan->first + i][p]]);
	}
	plan->layout.n = whole->n;
}

enum mu_status mu_plan_lay_keys(struct mu_plan *plan)
{
	enum mu_status st = MU_OK;
	struct plan_layout *layout = &plan->layout;
	const size_t most = plan->n_ops * NET_MAX_PARAMS;

	MU_TRY(MU_ALLOC(layout->op_keys, plan->n_ops, "keys of layers"));
	MU_TRY(MU_ALLOC(layout->slices, most, "slices"));
	MU_TRY(MU_ALLOC(layout->keys, most, "keys"));
	for (size_t i = 0; i < plan->n_ops; i++)
		MU_TRY(MU_ALLOC(layout->op_keys[i], NET_MAX_PARAMS, "keys of a layer"));
	if (plan->part)
		copy_slices(plan, &plan->part->whole->layout);
	else
		add_slices(plan);
	for (size_t i = 0; i < plan->n_ops; i++)
		if (layout->ties[i].with != MU_PLAN_NONE)
			layout->op_keys[i][0] = layout->op_keys[layout->ties[i].with][0];
out:
	return st;
}

void mu_plan_free_layout(struct mu_plan *plan)
{
	for (size_t i = 0; plan->layout.op_keys && i < plan->n_ops; i++)
		mu_free(plan->layout.op_keys[i]);
	mu_free(plan->layout.op_keys);
	mu_free(plan->layout.slices);
	mu_free(plan->layout.keys);
	mu_free(plan->layout.ties);
}
