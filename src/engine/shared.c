/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices that share a batch: each computes its own samples, in parallel.
 *
 * Forward and backward are jobs of the devices' threads (threads.h). Forward of a layer begins when
 * the first device's thread has its weights. In backward, when all devices have finished a layer,
 * the homes of its keys sum it, and the caller pushes it.
 */
#include "samples.h"

#include <muster/base.h>

#include "threads.h"

/* ---- life ---- */

static enum mu_status bind(struct mu_engine *e)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_engine_devices_run(e, mu_engine_samples_bind));
	MU_TRY(mu_engine_homes(e, e->store->sums_on_devices));
out:
	return st;
}

static void describe(const struct mu_engine *e)
{
	const struct engine_devices *s = &e->devices;
	char text[128], name[32];

	for (size_t i = 0; i < s->list.n; i++)
		mu_log_detail("device %s, %zu of %zu samples: %s",
			      mu_engine_device_name(&s->list, i, name, sizeof name), s->of[i].batch,
			      e->train->config.batch,
			      mu_engine_device_text(&s->of[i].device, text, sizeof text));
	mu_log_detail(
		"the %zu devices of a worker share its weights; their gradients are summed on "
		"the %s",
		s->list.n, e->store->sums_on_devices ? "devices" : "CPU");
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
	mu_engine_samples_copy(e, d);
	for (size_t l = 0; l < layers; l++) {
		if (!mu_engine_threads_wait_left(e->devices.threads, ENGINE_PULL, layers - 1 - l))
			goto out;
		MU_TRY(mu_engine_device_named(e, d, mu_plan_forward(d->now, l)));
	}
out:
	return st;
}

/* A layer on the first device; the others follow. */
static enum mu_status forward(struct mu_engine *e, size_t l)
{
	enum mu_status st = MU_OK;
	struct engine_devices *s = &e->devices;
	struct engine_device *d = &s->of[0];
	size_t left = mu_plan_layers(e->plan) - 1 - l;

	mu_engine_threads_set_left(s->threads, 0, ENGINE_PULL, left);
	if (l == 0) {
		mu_engine_threads_begin(s->threads, forward_job, e);
		if (d->now)
			mu_engine_samples_copy(e, d);
	}
	if (d->now)
		MU_TRY(mu_engine_device_named(e, d, mu_plan_forward(d->now, l)));
	if (left == 0 || mu_engine_threads_stopped(s->threads))
		MU_TRY(mu_engine_devices_join(e, true));
out:
	return st;
}

/* ---- backward ---- */

/* Sum the layers that all devices have finished. */
static void sum_ready(struct mu_engine *e, struct engine_device *d, size_t left)
{
	if (left >= d->unsummed)
		return;
	mu_engine_sum_layers(e, d, left);
	mu_engine_threads_set_left(e->devices.threads, d->number, ENGINE_SUM, left);
}

static enum mu_status backward_job(void *context, size_t member)
{
	enum mu_status st = MU_OK;
	struct mu_engine *e = context;
	struct engine_threads *threads = e->devices.threads;
	struct engine_device *d = &e->devices.of[member];
	size_t layer = d->now ? mu_plan_layers(e->plan) : 0, left = layer;

	while (left > 0) {
		if (mu_engine_threads_stopped(threads))
			goto out;
		MU_TRY(mu_engine_device_named(e, d,
					      mu_engine_samples_backward_next(d, &layer, &left)));
		sum_ready(e, d, mu_engine_threads_set_left(threads, member, ENGINE_BACKWARD, left));
	}
	while (d->unsummed > 0 &&
	       mu_engine_threads_wait_left(threads, ENGINE_BACKWARD, d->unsummed - 1))
		sum_ready(e, d, mu_engine_threads_left(threads, ENGINE_BACKWARD));
out:
	return st;
}

/* Set the layers left of all members before any member reads them. */
static void begin_backward(struct mu_engine *e)
{
	struct engine_devices *s = &e->devices;
	size_t layers = mu_plan_layers(e->plan);

	for (size_t i = 0; i < s->list.n; i++) {
		struct engine_device *d = &s->of[i];

		d->unsummed = mu_engine_is_home(e, i) ? layers : 0;
		mu_engine_threads_set_left(s->threads, i, ENGINE_SUM, d->unsummed);
		mu_engine_threads_set_left(s->threads, i, ENGINE_BACKWARD, d->now ? layers : 0);
	}
	if (!s->of[0].now)
		s->layer = s->left = 0;
	mu_waiter_init(&s->waiter, e->members);
	s->waiter.without_mpi = e->comm_thread != NULL;
	mu_engine_threads_begin(s->threads, backward_job, e);
}

/* A layer of the first device, or after its last one a short wait for the others. */
static enum mu_status backward(struct mu_engine *e, size_t *ready)
{
	enum mu_status st = MU_OK;
	struct engine_devices *s = &e->devices;
	struct engine_device *d = &s->of[0];
	size_t before = *ready;

	if (before == mu_plan_layers(e->plan) && s->layer == before)
		begin_backward(e);
	if (s->left > 0) {
		MU_TRY(mu_engine_device_named(
			e, d, mu_engine_samples_backward_next(d, &s->layer, &s->left)));
		mu_engine_threads_set_left(s->threads, 0, ENGINE_BACKWARD, s->left);
	}
	sum_ready(e, d, mu_engine_threads_left(s->threads, ENGINE_BACKWARD));
	*ready = mu_engine_threads_left(s->threads,
					e->store->on_gpus ? ENGINE_BACKWARD : ENGINE_SUM);
	if (*ready == 0 || mu_engine_threads_stopped(s->threads)) {
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

const struct mu_engine_ops mu_engine_shared = {
	.open = mu_engine_samples_open,
	.open_others = mu_engine_samples_open_others,
	.plan = mu_engine_samples_plan,
	.allocate = mu_engine_samples_allocate,
	.close = mu_engine_samples_close,
	.arena = mu_engine_samples_arena,
	.activations = mu_engine_samples_activations,
	.bind = bind,
	.begin = mu_engine_samples_begin,
	.count = mu_engine_samples_count,
	.forward = forward,
	.backward = backward,
	.loss = mu_engine_samples_loss,
	.measure = mu_engine_samples_measure,
	.probabilities = mu_engine_samples_probabilities,
	.predictions = mu_engine_samples_predictions,
	.overflowed = mu_engine_samples_overflowed,
	.find_nonfinite = mu_engine_samples_find_nonfinite,
	.describe = describe,
	.shares_batch = true,
};
