/* SPDX-License-Identifier: Apache-2.0 */
/* What a plan computed: its predictions, in plain order, and whether its values are finite. */
#include "plan.h"

#include <math.h>

#include <muster/base.h>

const float *mu_plan_probabilities(struct mu_plan *plan)
{
	const struct mu_op *last = &plan->ops[plan->n_ops - 1];
	const struct mu_tensor *out = last->outputs[0];

	if (!out->layout && !plan->device->ops->memory)
		return out->data;
	if (last->fusion.in_place && plan->phase == MU_PHASE_TRAIN && plan->device->ops->memory)
		return NULL; /* their gradient is in their place */
	if (!plan->result.probabilities && mu_plan_alloc_probabilities(plan) != MU_OK)
		return NULL;
	if (mu_plan_results_end(plan) != MU_OK)
		return NULL;
	if (plan->device->ops->to_plain(plan->device, &out->shape, out->layout, out->data,
					plan->result.probabilities) != MU_OK)
		return NULL;
	return plan->result.probabilities;
}

void mu_plan_metrics(struct mu_plan *plan, size_t k, struct mu_metrics *m)
{
	const struct mu_loss *loss = mu_op_loss(&plan->ops[plan->n_ops - 1]);
	const struct mu_loss_results results = {
		.batch = &plan->batch,
		.targets = mu_plan_targets(plan),
		.k = k,
		.output = loss->reads_output || m->tally ? mu_plan_probabilities(plan) : NULL,
		.shape = &plan->ops[plan->n_ops - 1].outputs[0]->shape,
	};

	mu_metrics_measure(m, loss, &results);
}

static bool all_finite(const float *v, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!isfinite(v[i]))
			return false;
	return true;
}

/* For a tensor in any type and layout; assumed finite if there is no memory for a copy. */
static bool tensor_finite(const struct mu_plan *plan, const struct mu_tensor *t)
{
	size_t n = mu_shape_n(&t->shape);
	float *plain = NULL;
	bool finite = MU_ALLOC(plain, n, "values to look at") != MU_OK ||
		      plan->device->ops->to_plain(plan->device, &t->shape, t->layout, t->data,
						  plain) != MU_OK ||
		      all_finite(plain, n);

	mu_free(plain);
	return finite;
}

/* Activations share memory, so forward of the step is repeated and every output is checked before
 * it is overwritten. */
const char *mu_plan_find_nonfinite(struct mu_plan *plan)
{
	const struct plan_layout *layout = &plan->layout;
	const float *weights = plan->flat.host.weights;

	if (mu_plan_input(plan) && !plan->feed.as_bytes &&
	    !all_finite(mu_plan_input(plan), mu_shape_n(&plan->tensors[0].shape)))
		return "the input";
	for (size_t i = 0; i < plan->n_ops; i++) {
		struct mu_op *op = &plan->ops[i];

		/* Where the device has the weights, the host's are those of the last fetch. */
		for (int p = 0; p < op->n_params && !plan->flat.resident; p++)
			if (!all_finite(weights + layout->slices[layout->op_keys[i][p]].at,
					op->params[p].n_padded))
				return op->params[p].name;
		if (mu_plan_upload(plan, i) != MU_OK || mu_plan_run(plan, false, i, i + 1) != MU_OK)
			return op->name;
		for (int o = 0; o < op->n_outputs; o++)
			if (!tensor_finite(plan, op->outputs[o]))
				return op->name;
	}
	return NULL;
}
