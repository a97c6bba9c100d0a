/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loss scaling (struct mu_batch): gradients of parameters are divided by the scale directly after
 * the backward of a run of layers, so later code sees unscaled gradients. An infinite gradient is
 * noted, because the scale may have caused it. Auxiliary gradients do not come from the loss.
 *
 * A device with its own memory scales neighbouring arrays in one call: the parameters of a run of
 * layers are neighbours in the flat array, and the padding between them is 0.
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

/* n neighbouring elements. */
struct run {
	float *x;
	size_t n;
};

static enum mu_status scale(struct mu_plan *plan, struct run *run, float factor)
{
	enum mu_status st = MU_OK;
	const struct mu_device_memory *memory = plan->device->ops->memory;

	if (memory && run->n > 0)
		MU_TRY(memory->scale(plan->device, run->x, run->n, factor, plan->scale.word));
	else if (run->n > 0)
		plan->scale.overflowed |= multiply_and_look(run->x, run->n, factor);
	run->n = 0;
out:
	return st;
}

/* The array joins the run if it is the run's neighbour on a device with its own memory. */
static enum mu_status add(struct mu_plan *plan, struct run *run, const struct mu_param *param,
			  float factor)
{
	enum mu_status st = MU_OK;

	if (!plan->device->ops->memory || param->grad != run->x + mu_pad(run->n))
		MU_TRY(scale(plan, run, factor));
	if (run->n == 0)
		run->x = param->grad;
	run->n = (size_t)(param->grad - run->x) + param->n_padded;
out:
	return st;
}

enum mu_status mu_plan_unscale(struct mu_plan *plan, size_t from, size_t to)
{
	enum mu_status st = MU_OK;
	const float factor = 1 / mu_batch_loss_scale(&plan->batch);
	struct run params = {NULL, 0}, aux = {NULL, 0};

	if (!(plan->batch.loss_scale > 0))
		goto out;
	for (size_t l = from; l < to; l++) {
		const struct mu_op *op = &plan->ops[l];

		for (int p = mu_plan_first_own(plan, l);
		     p < op->n_params && op->outputs[0]->needs_grad; p++)
			MU_TRY(add(plan, &params, &op->params[p], factor));
		for (int p = 0; p < op->n_aux && op->outputs[0]->needs_grad; p++)
			MU_TRY(add(plan, &aux, &op->aux[p], 1));
	}
	MU_TRY(scale(plan, &params, factor));
	MU_TRY(scale(plan, &aux, 1));
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
		MU_TRY(memory->download(plan->device, &found, plan->scale.word, sizeof found));
		MU_TRY(mu_plan_finish(plan));
		plan->scale.overflowed = found != 0;
		if (found)
			MU_TRY(memory->upload(plan->device, plan->scale.word, &none, sizeof none));
	}
	*overflowed = plan->scale.overflowed;
	plan->scale.overflowed = false;
out:
	return st;
}
