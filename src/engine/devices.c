/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of a rank: open and close, and work of each on its own thread. */
#include "engine/engine.h"

#include <string.h>

#include <muster/base.h>

#include "threads.h"

static bool is_alone(const struct engine_devices *s)
{
	return s->list.n == 1;
}

/* The message of an error names the device, if there are several. */
enum mu_status mu_engine_device_named(const struct mu_engine *e, const struct engine_device *d,
				      enum mu_status st)
{
	char name[32];

	if (st != MU_OK && !is_alone(&e->devices))
		mu_trace_prefix("device %s: ", mu_engine_device_name(&e->devices.list, d->number,
								     name, sizeof name));
	return st;
}

/* Wait until the other devices have ended the job. poll: make progress on the store's messages. */
enum mu_status mu_engine_devices_join(struct mu_engine *e, bool poll)
{
	enum mu_status st = MU_OK;
	struct mu_waiter waiter;

	mu_waiter_init(&waiter, e->members);
	waiter.without_mpi = e->comm_thread != NULL;
	while (!mu_engine_threads_ended(e->devices.threads)) {
		if (poll)
			MU_TRY(mu_engine_poll(e));
		mu_waiter_nap(&waiter);
	}
	MU_TRY(mu_engine_threads_result(e->devices.threads));
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
		mu_engine_threads_begin(s->threads, run_task, &task);
	st = run_task(&task, 0);
	if (!is_alone(s)) { /* they read the task, so wait for them also after an error */
		struct mu_trace *own = st != MU_OK ? mu_trace_detach() : NULL;

		others = mu_engine_devices_join(e, false);
		mu_trace_attach(own);
	}
	return st != MU_OK ? st : others;
}

/* ---- life ---- */

const char *mu_engine_device_text(const struct mu_device *device, char *text, size_t nbytes)
{
	device->ops->describe(device, text, nbytes);
	if (device->dtype != MU_FLOAT32)
		snprintf(text + strlen(text), nbytes - strlen(text), ", %s",
			 mu_dtype_name(device->dtype));
	else if (device->allow_tf32)
		snprintf(text + strlen(text), nbytes - strlen(text), ", float32 with TF32");
	return text;
}

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
out:
	return st;
}

enum mu_status mu_engine_devices_open(struct mu_engine *e, size_t batch)
{
	enum mu_status st = MU_OK;
	struct engine_devices *s = &e->devices;

	s->list = *e->list;
	mu_engine_device_list_place(&s->list, e->members->topology.node_worker);
	MU_TRY(mu_engine_device_list_check(&s->list, e->conf, batch));
	MU_TRY(MU_ALLOC(s->of, s->list.n, "devices"));
	for (size_t i = 0; i < s->list.n; i++) {
		s->of[i].number = i;
		if (s->list.split) /* each has all samples */
			continue;
		s->of[i].batch = mu_engine_device_first(&s->list, i + 1, batch) -
				 mu_engine_device_first(&s->list, i, batch);
	}
	if (!is_alone(s)) { /* before any is pinned: each starts with all cores of the rank */
		MU_TRY(mu_places_save(&s->places));
		MU_TRY(mu_engine_threads_new(&s->threads, s->list.n, e->members));
	}
	MU_TRY(mu_engine_devices_run(e, open_device));
	for (size_t i = 0; i < s->list.n; i++) /* it may drop the table, which all of them share */
		mu_engine_conv_set(e, &s->of[i].device);
out:
	return st;
}

void mu_engine_devices_close(struct mu_engine *e)
{
	struct engine_devices *s = &e->devices;

	for (size_t i = 0; s->of && i < s->list.n; i++) {
		struct engine_device *d = &s->of[i];

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
