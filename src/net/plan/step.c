/* SPDX-License-Identifier: Apache-2.0 */
/* Steps of a plan: bound to flat arrays, forward and backward layer by layer. */
#include "plan.h"

#include <muster/base.h>

/* With a sum: bind layers that can add to it. */
static enum mu_status bind(struct mu_plan *plan, struct plan_arrays arrays)
{
	enum mu_status st = MU_OK;
	const bool train = plan->phase == MU_PHASE_TRAIN;
	const struct plan_layout *layout = &plan->layout;

	mu_plan_record_drop(plan);
	MU_TRY(mu_plan_mirror(plan, &arrays));
	for (size_t i = 0; i < plan->n_ops; i++) {
		struct mu_op *op = &plan->ops[i];

		mu_plan_tie_adds(plan, i, arrays.sum && !(plan->batch.loss_scale > 0));
		for (int p = 0; p < op->n_params + op->n_aux; p++) {
			float *gradients = layout->ties[i].sums ? arrays.sum : arrays.gradients;
			const size_t key = layout->op_keys[i][p], at = layout->slices[key].at;
			const size_t place = plan->flat.places ? plan->flat.places[key] : at;

			mu_plan_op_param(op, p)->data = arrays.weights + at;
			mu_plan_op_param(op, p)->grad = train ? gradients + place : NULL;
		}
		MU_TRY(plan->device->ops->bind(plan->device, op));
	}
out:
	return st;
}

void mu_plan_set_places(struct mu_plan *plan, const size_t *places)
{
	plan->flat.places = places;
}

enum mu_status mu_plan_bind(struct mu_plan *plan, float *weights, float *gradients)
{
	const bool train = plan->phase == MU_PHASE_TRAIN;

	return bind(plan, (struct plan_arrays){weights, train ? gradients : NULL, NULL});
}

enum mu_status mu_plan_bind_sum(struct mu_plan *plan, float *weights, float *sum, float *own,
				bool last)
{
	plan->flat.sum_stays = !last;
	return bind(plan, (struct plan_arrays){weights, own, sum});
}

enum mu_status mu_plan_forward(struct mu_plan *plan, size_t l)
{
	enum mu_status st = MU_OK;
	bool given;

	MU_TRY(mu_plan_upload(plan, l));
	MU_TRY(mu_plan_submit(plan, false, l, &given));
	if (plan->ops[l].loss_later)
		MU_TRY(mu_plan_results_begin(plan));
out:
	return st;
}

enum mu_status mu_plan_backward_begin(struct mu_plan *plan, size_t l)
{
	enum mu_status st = MU_OK;
	bool given;

	if (l + 1 == plan->n_ops)
		plan->backward.left = plan->backward.begun = plan->n_ops;
	MU_TRY(mu_plan_submit(plan, true, l, &given));
	while (given && plan->backward.begun > l) {
		MU_TRY(mu_plan_download(plan, plan->backward.begun - 1));
		plan->backward.begun--;
	}
out:
	return st;
}

enum mu_status mu_plan_backward(struct mu_plan *plan, size_t l)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_plan_backward_begin(plan, l));
	MU_TRY(mu_plan_backward_wait(plan, l));
out:
	return st;
}
