/* SPDX-License-Identifier: Apache-2.0 */
/* Runs operations: forward, and backward with the restores that it needs; takes their times. */
#include "plan.h"

#include <muster/base.h>

/* A call for `samples` samples has ended. */
static void add_time(struct mu_layer_time *t, double seconds, size_t samples)
{
	double each = seconds / (double)samples;

	if (t->calls == 0 || each < t->fastest)
		t->fastest = each;
	t->calls++;
	t->samples += samples;
	t->seconds += seconds;
}

/*
 * Recompute what backward of operation l reads. Counts as backward time of the restored operations.
 */
static enum mu_status restore(struct mu_plan *plan, size_t l)
{
	enum mu_status st = MU_OK;

	for (size_t i = plan->restore.first[l]; i < plan->restore.first[l + 1]; i++) {
		size_t r = plan->restore.all[i];
		double start = plan->times ? mu_now() : 0;

		MU_TRY(plan->device->ops->restore(plan->device, &plan->ops[r]));
		if (plan->times) {
			MU_TRY(mu_plan_finish(plan));
			plan->times[r].backward.seconds += mu_now() - start;
		}
	}
out:
	return st;
}

static enum mu_status run_forward(struct mu_plan *plan, size_t l)
{
	enum mu_status st = MU_OK;
	double start = plan->times ? mu_now() : 0;

	MU_TRY(plan->device->ops->forward(plan->device, &plan->ops[l]));
	if (plan->times) {
		MU_TRY(mu_plan_finish(plan));
		add_time(&plan->times[l].forward, mu_now() - start, plan->batch_size);
	}
out:
	return st;
}

static enum mu_status run_backward(struct mu_plan *plan, size_t l)
{
	enum mu_status st = MU_OK;
	double start;

	if (!plan->ops[l].outputs[0]->needs_grad)
		goto out;
	MU_TRY(restore(plan, l));
	start = plan->times ? mu_now() : 0;
	MU_TRY(plan->device->ops->backward(plan->device, &plan->ops[l]));
	if (plan->times) {
		MU_TRY(mu_plan_finish(plan));
		add_time(&plan->times[l].backward, mu_now() - start, plan->batch_size);
	}
out:
	return st;
}

/* An embedding adds to the gradient of the layer that has its table, which must be complete. */
static enum mu_status run_backwards(struct mu_plan *plan, size_t from, size_t to)
{
	enum mu_status st = MU_OK;
	const struct mu_device_ops *device = plan->device->ops;

	for (size_t i = to; i-- > from;) {
		if (device->conclude && plan->layout.ties[i].reader < to) {
			MU_TRY(device->conclude(plan->device, &plan->ops[i + 1], to - (i + 1)));
			to = i + 1;
		}
		MU_TRY(run_backward(plan, i));
	}
	if (device->conclude)
		MU_TRY(device->conclude(plan->device, &plan->ops[from], to - from));
out:
	return st;
}

/* Only layers that run one by one leave gradients for later. */
enum mu_status mu_plan_run(struct mu_plan *plan, bool backward, size_t from, size_t to)
{
	enum mu_status st = MU_OK;
	const struct mu_device_ops *device = plan->device->ops;

	if (!backward && device->prepare)
		MU_TRY(device->prepare(plan->device, &plan->ops[from], to - from));
	for (size_t i = from; i < to && !backward; i++)
		MU_TRY(run_forward(plan, i));
	if (backward)
		MU_TRY(run_backwards(plan, from, to));
	if (backward && !plan->ops[from].fusion.weights_later)
		MU_TRY(mu_plan_unscale(plan, from, to));
out:
	return st;
}
