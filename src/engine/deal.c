/* SPDX-License-Identifier: Apache-2.0 */
/* Divide a batch, of this step or a later one, among the devices of a rank. */
#include "samples.h"

#include <string.h>

#include <muster/base.h>

/*
 * The samples of a device and the plan for them. The short last step is divided in the same ratios,
 * for balance, and has its own plans. In validation a device has its samples of a full batch, so
 * the last devices may have none.
 */
struct device_part {
	size_t first, n;
	struct mu_plan *plan; /* NULL: none */
};

static struct device_part find_part(const struct mu_engine *e, const struct engine_device *d,
				    enum mu_phase phase, size_t group, size_t count)
{
	const struct engine_plans *plans = &d->plans[group];
	const struct engine_device_list *list = &e->devices.list;
	size_t batch = e->train->config.batch;
	size_t whole = phase == MU_PHASE_TRAIN ? count : batch;
	size_t end = mu_engine_device_first(list, d->number + 1, whole);
	struct device_part h = {.first = mu_engine_device_first(list, d->number, whole)};

	if (end > count)
		end = count;
	h.n = end > h.first ? end - h.first : 0;
	if (h.n == 0)
		h.plan = NULL;
	else if (phase == MU_PHASE_INFER)
		h.plan = plans->infer;
	else
		h.plan = h.n == d->batch ? plans->full : plans->tail;
	return h;
}

/* Set the batch of the device's plan to its part. */
static void set_batch(struct engine_device *d, const struct mu_batch *whole, size_t labels)
{
	struct mu_batch *own = mu_plan_batch(d->now);

	own->count = d->n;
	own->labels = whole->labels + d->first * labels;
	own->ids = whole->ids + d->first;
	own->label_smoothing = whole->label_smoothing;
	own->loss_scale = whole->loss_scale;
	own->seed = whole->seed;
	own->epoch = whole->epoch;
	own->step = whole->step;
}

float *mu_engine_samples_begin(struct mu_engine *e, enum mu_phase phase, size_t group,
			       const struct mu_batch *batch)
{
	struct engine_devices *s = &e->devices;

	s->sample = mu_input_sample(e->train, group);
	for (size_t i = 0; i < s->list.n; i++) {
		const struct device_part h = find_part(e, &s->of[i], phase, group, batch->count);

		s->of[i].first = h.first;
		s->of[i].n = h.n;
		s->of[i].now = h.plan;
		if (s->of[i].now)
			set_batch(&s->of[i], batch, mu_input_labels(e->train, group));
	}
	s->layer = s->left = mu_plan_layers(e->plan);
	return s->list.n == 1 ? mu_plan_input(s->of[0].now) : s->samples;
}

void mu_engine_samples_count(struct mu_engine *e, size_t count)
{
	for (size_t i = 0; i < e->devices.list.n; i++) {
		const struct engine_device *d = &e->devices.of[i];
		size_t left = count > d->first ? count - d->first : 0;

		if (d->now)
			mu_plan_batch(d->now)->count = left < d->n ? left : d->n;
	}
}

/* Copy samples [first, first + n) of the rank's batch to one of several devices. */
static void copy_samples(const struct mu_engine *e, const struct device_part *h, size_t sample,
			 bool as_bytes)
{
	const struct engine_devices *s = &e->devices;

	if (as_bytes)
		memcpy(mu_plan_input_bytes(h->plan), s->bytes + h->first * sample, h->n * sample);
	else
		memcpy(mu_plan_input(h->plan), s->samples + h->first * sample,
		       h->n * sample * sizeof(float));
}

void mu_engine_samples_copy(const struct mu_engine *e, const struct engine_device *d)
{
	if (!mu_plan_is_sent(d->now))
		copy_samples(e, &(struct device_part){d->first, d->n, d->now}, e->devices.sample,
			     false);
}

/* ---- a later batch ---- */

bool mu_engine_sends_ahead(const struct mu_engine *e)
{
	return e->ops->shares_batch && e->devices.list.kind->memory;
}

void mu_engine_room(const struct mu_engine *e, size_t group, size_t count,
		    struct mu_input_batch *samples)
{
	const struct engine_devices *s = &e->devices;
	struct mu_plan *plan = find_part(e, &s->of[0], MU_PHASE_TRAIN, group, count).plan;

	samples->data = s->list.n > 1 ? s->samples : mu_plan_input(plan);
	if (mu_input_has_bytes(e->train))
		samples->bytes = s->list.n > 1 ? s->bytes : mu_plan_input_bytes(plan);
}

enum mu_status mu_engine_send(const struct mu_engine *e, size_t group, const struct mu_batch *batch,
			      bool as_bytes)
{
	enum mu_status st = MU_OK;
	const struct engine_devices *s = &e->devices;
	const size_t labels = mu_input_labels(e->train, group);
	const size_t sample = mu_input_sample(e->train, group);
	const struct mu_field *data = mu_input_field(e->train, MU_FIELD_INPUT);
	struct mu_pixels pixels;

	memcpy(pixels.mean, data->mean, sizeof pixels.mean);
	memcpy(pixels.std, data->std, sizeof pixels.std);
	for (size_t i = 0; i < s->list.n; i++) {
		const struct device_part h =
			find_part(e, &s->of[i], MU_PHASE_TRAIN, group, batch->count);
		struct mu_batch own = *batch;

		if (!h.plan)
			continue;
		if (s->list.n > 1)
			copy_samples(e, &h, sample, as_bytes);
		own.count = h.n;
		own.labels += h.first * labels;
		own.ids += h.first;
		MU_TRY(mu_engine_device_named(
			e, &s->of[i], mu_plan_send(h.plan, &own, as_bytes ? &pixels : NULL)));
	}
out:
	return st;
}
