/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loss scaling (struct mu_batch): gradients of parameters are divided by the scale directly after a
 * layer's backward, so later code sees unscaled gradients. An infinite gradient is noted, because
 * the scale may have caused it. Auxiliary gradients do not come from the loss.
 */
#include "plan.h"

#include <float.h>
#include <math.h>

#include <muster/base.h>

/* Multiply n numbers; is a product not finite? */
MU_LOOP static int multiply_and_look(float *x, size_t n, float factor)
{
	int bad = 0;

	for (size_t i = 0; i < n; i++) {
		x[i] *= factor;
		bad |= !(fabsf(x[i]) <= FLT_MAX);
	}
	return bad;
}

static enum mu_status scale(struct mu_plan *plan, const struct mu_param *param, float factor)
{
	const struct mu_device_memory *memory = plan->device->ops->memory;

	if (memory)
		return memory->scale(plan->device, param->grad, param->n_padded, factor,
				     plan->overflow);
	plan->overflowed |= multiply_and_look(param->grad, param->n_padded, factor);
	return MU_OK;
}

enum mu_status mu_plan_unscale(struct mu_plan *plan, size_t l)
{
	enum mu_status st = MU_OK;
	const struct mu_op *op = &plan->ops[l];
	const float factor = 1 / mu_batch_loss_scale(&plan->batch);

	if (!(plan->batch.loss_scale > 0))
		goto out;
	for (int p = 0; p < op->n_params; p++)
		MU_TRY(scale(plan, &op->params[p], factor));
	for (int p = 0; p < op->n_aux; p++)
		MU_TRY(scale(plan, &op->aux[p], 1));
out:
	return st;
}

enum mu_status mu_plan_overflowed(struct mu_plan *plan, bool *overflowed)
{
	enum mu_status st = MU_OK;
	const struct mu_device_memory *memory = plan->device->ops->memory;
	static const uint32_t none = 0;
	uint32_t found = 0;

	if (memory) {
		MU_TRY(memory->download(plan->device, &found, plan->overflow, sizeof found));
		MU_TRY(mu_plan_finish(plan));
		plan->overflowed = found != 0;
		if (found)
			MU_TRY(memory->upload(plan->device, plan->overflow, &none, sizeof none));
	}
	*overflowed = plan->overflowed;
	plan->overflowed = false;
out:
	return st;
}
