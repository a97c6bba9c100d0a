/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The devices of a rank work through a batch: each on its own samples, all at the same time. With
 * one device everything here is a call of its plan.
 *
 * Forward and backward are jobs of the team (threads.h). Forward of a layer begins when the first
 * device's thread has its weights; in backward a layer that all devices have done is summed by the
 * homes of its keys, and told to the caller, who pushes it.
 */
#include "engine/engine.h"

#include <string.h>

#include <muster/base.h>

#include "engine/engine.h"
#include "engine/stages/staged.h"
#include "threads.h"

static bool is_alone(const struct engine_devices *s)
{
	return s->list.n == 1;
}

/* An error of one of several devices says which. */
enum mu_status mu_engine_device_named(const struct mu_engine *e, const struct engine_device *d,
				      enum mu_status st)
{
	char name[32];

	if (st != MU_OK && !is_alone(&e->devices))
		mu_trace_prefix("device %s: ", mu_engine_device_name(&e->devices.list, d->number,
								     name, sizeof name));
	return st;
}

/* Until the other devices have ended a job. poll: the store's messages move on meanwhile. */
enum mu_status mu_engine_devices_join(struct mu_engine *e, bool poll)
{
	enum mu_status st = MU_OK;
	struct mu_waiter waiter;

	mu_waiter_init(&waiter, e->topology);
	while (!mu_team_ended(e->devices.team)) {
		if (poll)
			MU_TRY(mu_engine_poll(e));
		mu_waiter_nap(&waiter);
	}
	MU_TRY(mu_team_result(e->devices.team));
out:
	return st;
}

/* ---- any work ---- */

struct task {
	struct mu_engine *e;
	engine_device_fn *fn;
};

static enum mu_status run_task(void *context, size_t member)
{
	const struct task *task = context;
	struct engine_device *d = &task->e->devices.of[member];

	return mu_engine_device_named(task->e, d, task->fn(task->e, d));
}

enum mu_status mu_engine_devices_run(struct mu_engine *e, engine_device_fn *fn)
{
	enum mu_status st = MU_OK, others = MU_OK;
	struct engine_devices *s = &e->devices;
	struct task task = {e, fn};

	if (!is_alone(s))
		mu_team_begin(s->team, run_task, &task);
	st = run_task(&task, 0);
	if (!is_alone(s)) { /* they read the task: it stays until they have ended */
		struct mu_trace *own = st != MU_OK ? mu_trace_detach() : NULL;

		others = mu_engine_devices_join(e, false);
		mu_trace_attach(own);
	}
	return st != MU_OK ? st : others;
}

/* ---- life ---- */

static enum mu_status open_device(struct mu_engine *e, struct engine_device *d)
{
	enum mu_status st = MU_OK;
	const struct engine_device_list *list = &e->devices.list;
	char name[32];
	int threads = e->n_threads;

	mu_engine_device_name(list, d->number, name, sizeof name);
	if (list->n > 1)
		MU_TRY(mu_place_group((int)d->number, (int)list->n, e->n_threads, &threads));
	MU_TRY(mu_device_open(&d->device, name, threads));
	MU_TRY(mu_engine_device_set(&d->device, e->conf));
	mu_engine_conv_ask(e, &d->device);
out:
	return st;
}

enum mu_status mu_engine_devices_open(struct mu_engine *e, size_t batch)
{
	enum mu_status st = MU_OK;
	struct engine_devices *s = &e->devices;

	MU_TRY(mu_engine_device_list_read(&s->list, e->conf));
	mu_engine_device_list_place(&s->list, e->topology->node_worker);
	MU_TRY(mu_engine_device_list_check(&s->list, e->conf, batch));
	MU_TRY(MU_ALLOC(s->of, s->list.n, "devices"));
	for (size_t i = 0; i < s->list.n; i++) {
		s->of[i].number = i;
		if (s->list.split) /* all have all samples */
			continue;
		s->of[i].batch = mu_engine_device_first(&s->list, i + 1, batch) -
				 mu_engine_device_first(&s->list, i, batch);
	}
	if (!is_alone(s)) { /* threads first: each begins with all cores of the rank */
		MU_TRY(mu_places_save(&s->places));
		MU_TRY(mu_team_new(&s->team, s->list.n, e->topology));
	}
	MU_TRY(mu_engine_devices_run(e, open_device));
out:
	return st;
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

void mu_engine_devices_close(struct mu_engine *e)
{
	struct engine_devices *s = &e->devices;

	mu_team_free(s->team); /* its threads use all that follows */
	mu_engine_staged_close(e);
	for (size_t i = 0; s->of && i < s->list.n; i++) {
		struct engine_device *d = &s->of[i];

		free_plans(d, e->n_groups);
		mu_device_close(&d->device);
		if (i > 0)
			mu_free(d->gradients);
	}
	mu_places_restore(s->places);
	mu_free(s->of);
	mu_free(s->samples);
	mu_free(s->bytes);
	mu_free(s->homes);
	*s = (struct engine_devices){.of = NULL};
}

/* Of its own: what it cannot have in the memory of the largest. */
static double arena(const struct mu_plan *plan, const struct mu_plan *largest)
{
	const size_t n = plan ? mu_plan_arena_bytes(plan) : 0;

	return n > mu_plan_arena_bytes(largest) ? (double)n : 0;
}

double mu_engine_devices_arena(const struct mu_engine *e)
{
	double sum = 0;

	if (e->split)
		return mu_engine_staged_arena(e);
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

static enum mu_status bind_plan(const struct mu_engine *e, struct mu_plan *plan, float *gradients)
{
	enum mu_status st = MU_OK;

	if (!plan)
		goto out;
	MU_TRY(mu_plan_bind(plan, mu_kv_weights(e->kv), gradients));
	mu_plan_set_versions(plan, mu_kv_versions(e->kv));
out:
	return st;
}

static enum mu_status bind(struct mu_engine *e, struct engine_device *d)
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

enum mu_status mu_engine_devices_link(struct mu_engine *e)
{
	return e->team.size > 1 ? mu_engine_borders_open(e) : MU_OK;
}

uint64_t mu_engine_devices_hash(const struct mu_engine *e)
{
	return mu_plan_hash(e->plan) ^ (e->split ? mu_engine_borders_hash(e) : 0);
}

enum mu_status mu_engine_devices_bind(struct mu_engine *e)
{
	enum mu_status st = MU_OK;
	struct engine_devices *s = &e->devices;

	if (e->split)
		return mu_engine_staged_bind(e);
	MU_TRY(mu_engine_devices_run(e, bind));
	if (!is_alone(s))
		MU_TRY(mu_engine_homes(e, e->store->sums_on_devices));
out:
	return st;
}

/* ---- forward ---- */

static enum mu_status forward_job(void *context, size_t member)
{
	enum mu_status st = MU_OK;
	struct mu_engine *e = context;
	struct engine_device *d = &e->devices.of[member];
	size_t layers = mu_plan_layers(e->plan);

	if (!d->now)
		goto out;
	mu_engine_devices_copy_samples(e, d);
	for (size_t l = 0; l < layers; l++) {
		if (!mu_team_wait(e->devices.team, TEAM_PULL, layers - 1 - l))
			goto out;
		MU_TRY(mu_engine_device_named(e, d, mu_plan_forward(d->now, l)));
	}
out:
	return st;
}

/* The first device's part of what several do. */
static enum mu_status forward_first(struct mu_engine *e, size_t l)
{
	enum mu_status st = MU_OK;
	struct engine_devices *s = &e->devices;
	struct engine_device *d = &s->of[0];
	size_t left = mu_plan_layers(e->plan) - 1 - l;

	mu_team_tell(s->team, 0, TEAM_PULL, left);
	if (l == 0) {
		mu_team_begin(s->team, forward_job, e);
		if (d->now)
			mu_engine_devices_copy_samples(e, d);
	}
	if (d->now)
		MU_TRY(mu_engine_device_named(e, d, mu_plan_forward(d->now, l)));
	if (left == 0 || mu_team_stopped(s->team))
		MU_TRY(mu_engine_devices_join(e, true));
out:
	return st;
}

enum mu_status mu_engine_devices_forward(struct mu_engine *e, size_t l)
{
	if (e->split)
		return mu_engine_staged_forward(e, l);
	if (is_alone(&e->devices))
		return mu_plan_forward(e->devices.of[0].now, l);
	return forward_first(e, l);
}

/* ---- backward ---- */

/* Sum what all devices have done and nobody needs to wait for. */
static void sum_ready(struct mu_engine *e, struct engine_device *d, size_t left)
{
	if (left >= d->unsummed)
		return;
	mu_engine_sum_layers(e, d, left);
	mu_team_tell(e->devices.team, d->number, TEAM_SUM, left);
}

/*
 * One more layer, while there is one that has not begun. *left: those of the device that are not
 * done; when all have begun, at least one more is.
 */
static enum mu_status backward_next(const struct engine_device *d, size_t *layer, size_t *left)
{
	enum mu_status st = MU_OK;

	if (*layer > 0)
		MU_TRY(mu_plan_backward_begin(d->now, --*layer));
	MU_TRY(mu_plan_backward_left(d->now, *layer == 0, left));
out:
	return st;
}

static enum mu_status backward_job(void *context, size_t member)
{
	enum mu_status st = MU_OK;
	struct mu_engine *e = context;
	struct mu_team *team = e->devices.team;
	struct engine_device *d = &e->devices.of[member];
	size_t layer = d->now ? mu_plan_layers(e->plan) : 0, left = layer;

	while (left > 0) {
		if (mu_team_stopped(team))
			goto out;
		MU_TRY(mu_engine_device_named(e, d, backward_next(d, &layer, &left)));
		sum_ready(e, d, mu_team_tell(team, member, TEAM_BACKWARD, left));
	}
	while (d->unsummed > 0 && mu_team_wait(team, TEAM_BACKWARD, d->unsummed - 1))
		sum_ready(e, d, mu_team_left(team, TEAM_BACKWARD));
out:
	return st;
}

/* All that is left to do, told before anybody asks. */
static void begin_backward(struct mu_engine *e)
{
	struct engine_devices *s = &e->devices;
	size_t layers = mu_plan_layers(e->plan);

	for (size_t i = 0; i < s->list.n; i++) {
		struct engine_device *d = &s->of[i];

		d->unsummed = mu_engine_is_home(e, i) ? layers : 0;
		mu_team_tell(s->team, i, TEAM_SUM, d->unsummed);
		mu_team_tell(s->team, i, TEAM_BACKWARD, d->now ? layers : 0);
	}
	if (!s->of[0].now)
		s->layer = s->left = 0;
	mu_waiter_init(&s->waiter, e->topology);
	mu_team_begin(s->team, backward_job, e);
}

/* A layer of the first device, or if it has none left a short wait for the others. */
static enum mu_status backward_first(struct mu_engine *e, size_t *ready)
{
	enum mu_status st = MU_OK;
	struct engine_devices *s = &e->devices;
	struct engine_device *d = &s->of[0];
	size_t before = *ready;

	if (before == mu_plan_layers(e->plan) && s->layer == before)
		begin_backward(e);
	if (s->left > 0) {
		MU_TRY(mu_engine_device_named(e, d, backward_next(d, &s->layer, &s->left)));
		mu_team_tell(s->team, 0, TEAM_BACKWARD, s->left);
	}
	sum_ready(e, d, mu_team_left(s->team, TEAM_BACKWARD));
	*ready = mu_team_left(s->team, e->store->on_gpus ? TEAM_BACKWARD : TEAM_SUM);
	if (*ready == 0 || mu_team_stopped(s->team)) {
		MU_TRY(mu_engine_devices_join(e, true));
		goto out;
	}
	MU_TRY(mu_engine_poll(e));
	if (*ready < before)
		mu_waiter_reset(&s->waiter);
	else if (s->left == 0)
		mu_waiter_nap(&s->waiter);
out:
	return st;
}

enum mu_status mu_engine_devices_backward(struct mu_engine *e, size_t *ready)
{
	struct engine_devices *s = &e->devices;

	if (e->split)
		return mu_engine_staged_backward(e, ready);
	if (!is_alone(s))
		return backward_first(e, ready);
	return backward_next(&s->of[0], &s->layer, ready);
}
