/* SPDX-License-Identifier: Apache-2.0 */
/* Plans of devices that have all layers and share the samples of a batch. */
#include "samples.h"

#include <muster/base.h>

static enum mu_status plan_batch(struct mu_engine *e, struct engine_device *d)
{
	enum mu_status st = MU_OK;

	MU_TRY(MU_ALLOC(d->plans, e->n_groups, "plans"));
	MU_TRY(mu_plan_new_dry(&d->plans[e->n_groups - 1].full, e->net, &d->device, d->batch,
			       MU_PHASE_TRAIN, e->plan));
out:
	return st;
}

/* Same layouts as the first device's plan: the devices share the weights. */
static enum mu_status plan_further(struct mu_engine *e, struct engine_device *d)
{
	return d->number > 0 ? plan_batch(e, d) : MU_OK;
}

enum mu_status mu_engine_samples_open(struct mu_engine *e, size_t batch)
{
	enum mu_status st = MU_OK;

	(void)batch; /* each device knows its part */
	MU_TRY(plan_batch(e, &e->devices.of[0]));
	e->plan = e->devices.of[0].plans[e->n_groups - 1].full;
out:
	return st;
}

enum mu_status mu_engine_samples_open_others(struct mu_engine *e)
{
	return mu_engine_devices_run(e, plan_further);
}

static bool has_records(const struct mu_input *in, size_t group)
{
	return in->groups ? in->groups[group].n > 0 : in->n > 0;
}

/* The missing plans of a group with `rest` samples in its short last step. */
static enum mu_status plan_group(struct mu_engine *e, struct engine_device *d, size_t group,
				 size_t rest)
{
	enum mu_status st = MU_OK;
	const struct engine_device_list *list = &e->devices.list;
	struct engine_plans *p = &d->plans[group];
	const struct mu_net *net = e->nets[group];
	size_t part = mu_engine_device_first(list, d->number + 1, rest) -
		      mu_engine_device_first(list, d->number, rest);

	if (!p->full && has_records(e->train, group))
		MU_TRY(mu_plan_new_dry(&p->full, net, &d->device, d->batch, MU_PHASE_TRAIN,
				       e->plan));
	if (part > 0 && part != d->batch)
		MU_TRY(mu_plan_new_dry(&p->tail, net, &d->device, part, MU_PHASE_TRAIN, e->plan));
	if (e->validate && has_records(e->validate, group))
		MU_TRY(mu_plan_new_dry(&p->infer, net, &d->device, d->batch, MU_PHASE_INFER,
				       e->plan));
out:
	return st;
}

/* Plans of the other groups, of short last steps, and for validation. */
static enum mu_status plan_others(struct mu_engine *e, struct engine_device *d)
{
	enum mu_status st = MU_OK;
	const bool ends_early = !e->train->groups && e->steps < e->train->steps;

	for (size_t g = 0; g < e->n_groups; g++)
		MU_TRY(plan_group(e, d, g, ends_early ? 0 : mu_input_rest(e->train, g)));
out:
	return st;
}

/* On the device's thread, so that memory is local to its cores. */
static enum mu_status allocate(struct mu_engine *e, struct engine_device *d)
{
	enum mu_status st = MU_OK;
	struct mu_plan *largest = d->plans[e->n_groups - 1].full;

	MU_TRY(mu_plan_allocate(largest));
	for (size_t g = 0; g < e->n_groups; g++) {
		const struct engine_plans *p = &d->plans[g];
		struct mu_plan *others[] = {p->full, p->tail, p->infer};

		for (size_t i = 0; i < 3; i++)
			if (others[i] && others[i] != largest)
				MU_TRY(mu_plan_allocate_in(others[i], largest));
	}
out:
	return st;
}

enum mu_status mu_engine_samples_plan(struct mu_engine *e)
{
	return mu_engine_devices_run(e, plan_others);
}

enum mu_status mu_engine_samples_allocate(struct mu_engine *e)
{
	return mu_engine_devices_run(e, allocate);
}

static void free_plans(struct engine_device *d, size_t n_groups)
{
	for (size_t g = 0; d->plans && g < n_groups; g++) {
		mu_plan_free(d->plans[g].tail);
		mu_plan_free(d->plans[g].infer);
		mu_plan_free(d->plans[g].full);
	}
	mu_free(d->plans);
}

void mu_engine_samples_close(struct mu_engine *e)
{
	for (size_t i = 0; e->devices.of && i < e->devices.list.n; i++)
		free_plans(&e->devices.of[i], e->n_groups);
}

/* Bytes of the plan's own memory: 0 if it fits into the memory of the largest. */
static double arena(const struct mu_plan *plan, const struct mu_plan *largest)
{
	const size_t n = plan ? mu_plan_arena_bytes(plan) : 0;

	return n > mu_plan_arena_bytes(largest) ? (double)n : 0;
}

double mu_engine_samples_arena(const struct mu_engine *e)
{
	double sum = 0;

	for (size_t i = 0; i < e->devices.list.n; i++) {
		const struct engine_plans *plans = e->devices.of[i].plans;
		const struct mu_plan *largest = plans[e->n_groups - 1].full;

		sum += (double)mu_plan_arena_bytes(largest);
		for (size_t g = 0; g < e->n_groups; g++)
			sum += arena(plans[g].full, largest) + arena(plans[g].tail, largest) +
			       arena(plans[g].infer, largest);
	}
	return sum;
}

double mu_engine_samples_activations(const struct mu_engine *e)
{
	double sum = 0;

	for (size_t i = 0; i < e->devices.list.n; i++)
		sum += (double)mu_plan_arena_bytes(e->devices.of[i].plans[e->n_groups - 1].full);
	return sum;
}

static enum mu_status bind_plan(const struct mu_engine *e, struct mu_plan *plan, float *gradients)
{
	enum mu_status st = MU_OK;

	if (!plan)
		goto out;
	mu_plan_set_places(plan, mu_kv_gradient_places(e->kv));
	MU_TRY(mu_plan_bind(plan, mu_kv_weights(e->kv), gradients));
	mu_plan_set_versions(plan, mu_kv_versions(e->kv));
out:
	return st;
}

enum mu_status mu_engine_samples_bind(struct mu_engine *e, struct engine_device *d)
{
	enum mu_status st = MU_OK;

	if (d->number == 0)
		d->gradients = mu_kv_gradients(e->kv);
	else
		MU_TRY(MU_ALLOC(d->gradients, mu_kv_n(e->kv), "gradients of a device"));
	for (size_t g = 0; g < e->n_groups; g++) {
		MU_TRY(bind_plan(e, d->plans[g].full, d->gradients));
		MU_TRY(bind_plan(e, d->plans[g].tail, d->gradients));
		MU_TRY(bind_plan(e, d->plans[g].infer, NULL));
	}
out:
	return st;
}

enum mu_status mu_engine_samples_backward_next(const struct engine_device *d, size_t *layer,
					       size_t *left)
{
	enum mu_status st = MU_OK;

	if (*layer > 0)
		MU_TRY(mu_plan_backward_begin(d->now, --*layer));
	MU_TRY(mu_plan_backward_left(d->now, *layer == 0, left));
out:
	return st;
}
