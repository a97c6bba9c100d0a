/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The training loop. One step: read samples, forward (each layer waits for its weights first),
 * backward (each layer's gradients are pushed as soon as they are ready).
 */
#include "fit.h"

#include <math.h>

#include <muster/base.h>
#include <muster/notice.h>

#include "best.h"
#include "engine/comm_thread.h"
#include "engine/gpus.h"
#include "engine/lives.h"
#include "engine/metrics.h"
#include "evaluate.h"
#include "validate.h"

/* ---- a step ---- */

static enum mu_status pull_layer(const struct mu_engine *e, size_t l)
{
	enum mu_status st = MU_OK;
	const size_t *keys;
	size_t n = mu_plan_layer_keys(e->plan, l, &keys);

	mu_clock_mark((int)l);
	for (size_t i = 0; i < n; i++)
		MU_TRY(mu_kv_pull_end(e->kv, keys[i]));
out:
	return st;
}

/* Adds the gradients of earlier batches of this update. */
static enum mu_status push_layer(struct train_fit *f, size_t l)
{
	enum mu_status st = MU_OK;
	struct mu_engine *e = f->engine;
	size_t n_slices;
	const struct mu_slice *slices = mu_plan_slices(e->plan, &n_slices);
	const size_t *keys;

	mu_clock_mark((int)l);
	for (size_t i = mu_plan_layer_keys(e->plan, l, &keys); i-- > 0;) {
		const struct mu_slice *s = &slices[keys[i]];

		mu_engine_sum_add_to(f->sum, mu_kv_gradients(e->kv), s->at, s->n_padded);
		MU_TRY(mu_kv_push_ready(e->kv, keys[i]));
	}
out:
	return st;
}

/* All gradients of the update are ready; or, with `clear`, there are none. */
static enum mu_status push_all(struct train_fit *f, bool clear)
{
	enum mu_status st = MU_OK;

	for (size_t l = mu_plan_layers(f->engine->plan); l-- > 0;) {
		MU_TRY(clear ? mu_engine_gradients_clear(f->engine, l) : MU_OK);
		MU_TRY(push_layer(f, l));
	}
	mu_engine_sum_clear(f->sum);
out:
	return st;
}

/* Reads the samples of a step. f->count: the good ones, 0 if the worker has none. */
static enum mu_status batch_next(struct train_fit *f, size_t step)
{
	f->step = step;
	f->begin = mu_now();
	f->count = mu_input_count(f->train, step);
	return f->count > 0 ? mu_train_batch_load(f->batches, f->train, step, &f->count) : MU_OK;
}

/* Each layer runs once its weights are there. */
static enum mu_status forward(struct train_fit *f)
{
	enum mu_status st = MU_OK;
	struct mu_engine *e = f->engine;

	if (f->count == 0)
		goto out;
	for (size_t l = 0; l < mu_plan_layers(e->plan); l++) {
		MU_TRY(pull_layer(e, l));
		mu_clock_mark((int)l); /* a server in this rank sets others */
		mu_clock_start(MU_CLOCK_FORWARD);
		st = mu_engine_forward(e, l);
		mu_clock_stop(MU_CLOCK_FORWARD);
		mu_train_batch_name(f->train, st);
		MU_TRY(st);
	}
	mu_clock_mark(-1);
	MU_TRY(mu_engine_backward_begin(e));
out:
	return st;
}

/* *keep: the batch has samples, and its loss is finite. */
static enum mu_status guard_loss(struct train_fit *f, bool *keep)
{
	*keep = f->count > 0;
	return *keep ? mu_train_guard_loss(f->guard, f->step, keep) : MU_OK;
}

/* The next step's samples are read while the devices run this step's backward. */
static enum mu_status backward_layers(struct train_fit *f, bool push)
{
	enum mu_status st = MU_OK;
	struct mu_engine *e = f->engine;

	MU_TRY(mu_engine_gpus_clear(e, false));
	for (size_t ready = mu_plan_layers(e->plan), l = ready; ready > 0;) {
		mu_clock_mark((int)ready - 1);
		MU_TRY(mu_engine_gradients_begin(e, ready - 1));
		mu_clock_start(MU_CLOCK_BACKWARD);
		st = mu_engine_backward(e, &ready);
		mu_clock_stop(MU_CLOCK_BACKWARD);
		MU_TRY(st);
		while (push && l > ready)
			MU_TRY(push_layer(f, --l));
		MU_TRY(mu_train_batch_ahead(f->batches, f->step + 1));
		if (!push)
			MU_TRY(mu_kv_poll(e->kv)); /* other ranks may wait for messages */
	}
out:
	return st;
}

/* --update-period: is this batch the last of an update? The last update of an epoch may be shorter.
 */
static bool ends_update(const struct train_fit *f)
{
	const struct mu_engine *e = f->engine;

	return (f->step + 1) % (size_t)e->conf->update_period == 0 || f->step + 1 == e->steps;
}

/*
 * The short last step, bad records or values that are not finite can leave a worker without
 * samples. It takes part in the update all the same, with gradients of 0.
 */
static enum mu_status push_nothing(struct train_fit *f)
{
	enum mu_status st = MU_OK;
	struct mu_kv *kv = f->engine->kv;

	if (!ends_update(f))
		return MU_OK;
	MU_TRY(mu_kv_step_end(kv));
	MU_TRY(mu_kv_step_begin(kv, f->sum->count));
	MU_TRY(mu_engine_gpus_clear(f->engine, true));
	MU_TRY(push_all(f, true));
out:
	return st;
}

/* Gradients are pushed only when all of them are known to be finite. */
static enum mu_status held_backward(struct train_fit *f, size_t n_samples)
{
	enum mu_status st = MU_OK;
	struct mu_engine *e = f->engine;
	struct mu_metrics metrics = {0};
	bool keep;

	e->ops->measure(e, &metrics);
	MU_TRY(backward_layers(f, false));
	MU_TRY(mu_train_guard_gradients(f->guard, f->step, false, &keep));
	if (!keep) {
		MU_TRY(push_nothing(f));
		goto out;
	}
	mu_metrics_add(&f->window, &metrics);
	if (!ends_update(f)) {
		mu_engine_sum_add(f->sum, mu_kv_gradients(e->kv), n_samples);
		goto out;
	}
	MU_TRY(mu_kv_step_begin(e->kv, f->sum->count + n_samples));
	MU_TRY(push_all(f, false));
out:
	return st;
}

/* This worker has no good samples. */
static enum mu_status idle_step(struct train_fit *f)
{
	enum mu_status st = MU_OK;
	bool keep;

	MU_TRY(mu_train_guard_gradients(f->guard, f->step, true, &keep));
	MU_TRY(push_nothing(f));
out:
	return st;
}

/*
 * Keys are pushed as the gradients of their layers are ready, unless the guard holds them back or
 * the update needs more batches.
 */
static enum mu_status backward(struct train_fit *f, bool keep)
{
	enum mu_status st = MU_OK;
	struct mu_engine *e = f->engine;
	const size_t n_samples = mu_engine_team_count(e, f->count);
	const bool push = ends_update(f);

	if (!keep)
		return idle_step(f);
	if (mu_train_guard_holds(f->guard))
		return held_backward(f, n_samples);
	if (push)
		MU_TRY(mu_kv_step_begin(e->kv, f->sum->count + n_samples));
	e->ops->measure(e, &f->window);
	MU_TRY(backward_layers(f, push));
	if (push)
		mu_engine_sum_clear(f->sum);
	else
		mu_engine_sum_add(f->sum, mu_kv_gradients(e->kv), n_samples);
out:
	return st;
}

/*
 * A line for the steps since the last. Synchronous stores sum the metrics over the workers;
 * dist_async must not synchronise inside an epoch, so its lines have the speed of the whole job
 * (the servers count samples) and the metrics of worker 0.
 */
static enum mu_status end_window(struct train_fit *f)
{
	enum mu_status st = MU_OK;
	const struct mu_engine *e = f->engine;
	struct report_window w = {.epoch = f->epoch,
				  .first = f->window_first,
				  .last = f->step,
				  .metrics = f->window};
	double progress = mu_kv_progress(e->kv);

	mu_metrics_add(&f->total, &f->window);
	f->window = (struct mu_metrics){0};
	if (e->store->synchronous)
		MU_TRY(mu_engine_metrics_reduce(&w.metrics, e->members));
	w.samples = e->store->synchronous ? w.metrics.samples - f->window_before
					  : progress - f->window_progress;
	f->window_before = 0;
	w.seconds = mu_now() - f->window_start;
	w.data_seconds = mu_clock_seconds(MU_CLOCK_DATA) - f->window_data;
	w.comm_seconds = mu_report_comm_seconds() - f->window_comm;
	w.joules = NAN;
	if (e->store->synchronous)
		MU_TRY(mu_engine_energy_sum(&f->engine->energy, e->members, ENGINE_ENERGY_WINDOW,
					    &w.joules));
	mu_report_window(f->observers, &w);
	if (e->store->synchronous)
		MU_TRY(mu_checkpoint_saver_check_minutes(f->saver));
	f->window_first = f->step;
	mu_engine_energy_begin(&f->engine->energy, ENGINE_ENERGY_WINDOW);
	f->window_start = mu_now();
	f->window_data += w.data_seconds;
	f->window_comm += w.comm_seconds;
	f->window_progress = progress;
out:
	return st;
}

static enum mu_status observe_step(struct train_fit *f)
{
	enum mu_status st = MU_OK;
	struct report_step s = {.epoch = f->epoch,
				.done = f->step + 1,
				.begin = f->begin,
				.metrics = f->total};

	mu_metrics_add(&s.metrics, &f->window);
	mu_report_step(f->observers, &s);
	mu_engine_energy_poll(&f->engine->energy);
	if (f->step > 0 && f->step % (size_t)f->engine->conf->disp_batches == 0)
		MU_TRY(end_window(f));
	f->done = f->step + 1;
out:
	return st;
}

static enum mu_status checkpoint_due(struct train_fit *f)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_train_guard_verify(f->guard, f->done));
	MU_TRY(mu_train_fit_save_inside(f));
out:
	return st;
}

/* ---- an epoch ---- */

/* f->first: steps that are done, in the epoch with which a run resumes. */
static enum mu_status begin_steps(struct train_fit *f)
{
	enum mu_status st = MU_OK;
	const bool resumes = f->epoch == f->from->epoch;

	mu_engine_energy_begin(&f->engine->energy, ENGINE_ENERGY_WINDOW);
	mu_engine_energy_begin(&f->engine->energy, ENGINE_ENERGY_EPOCH);
	f->window_start = mu_now();
	f->window_data = mu_clock_seconds(MU_CLOCK_DATA);
	f->window_comm = mu_report_comm_seconds();
	f->window_progress = mu_kv_progress(f->engine->kv);
	MU_TRY(mu_input_epoch(f->train, (uint32_t)f->epoch));
	mu_train_batch_forget(f->batches);
	f->total = f->window = (struct mu_metrics){0};
	f->before = f->window_before = 0;
	f->aside = (struct train_seconds){0};
	f->saved = 0;
	f->first = f->done = resumes ? f->from->step : 0;
	f->window_first = resumes ? f->from->window_first : 0;
	if (resumes && f->engine->members->index == 0) { /* sums over all workers */
		f->total = f->from->total;
		f->window = f->from->window;
		f->window_before = f->window.samples;
		f->before = f->total.samples + f->window.samples;
	}
out:
	return st;
}

static enum mu_status train_steps(struct train_fit *f)
{
	enum mu_status st = MU_OK;
	bool keep, halt = false;

	MU_TRY(begin_steps(f));
	for (size_t s = f->first; s < f->engine->steps && !halt; s++) {
		MU_TRY(batch_next(f, s));
		MU_TRY(forward(f)); /* pull each layer's keys, then run it */
		MU_TRY(guard_loss(f, &keep));
		MU_TRY(backward(f, keep)); /* push keys as layers are ready */
		MU_TRY(observe_step(f));
		MU_TRY(checkpoint_due(f));
		halt = mu_train_halt_is_due(f->halt, f->done);
		MU_TRY(halt ? MU_OK : mu_train_validate_inside(f));
		halt = halt || f->halt->wanted;
	}
	MU_TRY(mu_checkpoint_saver_finish_shared(f->saver));
	MU_TRY(mu_kv_meet(f->engine->kv));
	MU_TRY(mu_train_fit_end_inside(f));
out:
	return st;
}

static enum mu_status train_epoch(struct train_fit *f)
{
	enum mu_status st = MU_OK;
	double start = mu_now();
	struct report_window epoch = {.epoch = f->epoch,
				      .data_seconds = -mu_clock_seconds(MU_CLOCK_DATA),
				      .comm_seconds = -mu_report_comm_seconds()};
	char what[64];

	snprintf(what, sizeof what, "epoch %zu of %ld", f->epoch + 1, f->engine->conf->num_epochs);
	mu_train_guard_epoch(f->guard, f->epoch);
	mu_report_epoch_begin(f->observers, f->epoch == f->from->epoch ? f->from->step : 0);
	MU_TRY(train_steps(f));
	mu_train_report_bad(f->engine, f->train, what);
	mu_train_guard_report(f->guard, what);
	if (!f->early)
		MU_TRY(mu_kv_fetch(f->engine->kv));
	epoch.seconds = mu_now() - start - f->aside.all;
	mu_report_epoch_end(f->observers);
	epoch.data_seconds += mu_clock_seconds(MU_CLOCK_DATA) - f->aside.data;
	epoch.comm_seconds += mu_report_comm_seconds() - f->aside.comm;
	if (!f->early && !f->halt->goes_back)
		MU_TRY(mu_train_guard_weights(f->guard));
	mu_metrics_add(&f->total, &f->window);
	MU_TRY(mu_engine_metrics_reduce(&f->total, f->engine->members));
	if (!f->early && !f->halt->goes_back &&
	    f->guard->scale.in_a_row == 0) /* else the last batches overflowed */
		MU_TRY(mu_train_recover(f->recovering, TRAIN_NOT_GOOD,
					mu_train_check_samples(&f->total, what)));
	MU_TRY(mu_engine_energy_sum(&f->engine->energy, f->engine->members, ENGINE_ENERGY_EPOCH,
				    &epoch.joules));
	epoch.metrics = f->total;
	epoch.samples = f->total.samples - f->before;
	epoch.first = f->first;
	epoch.last = f->done;
	epoch.early = f->early;
	mu_report_epoch(f->observers, &epoch);
out:
	return st;
}

/* ---- all epochs ---- */

/* An epoch, its validation and its checkpoint. *ends: training ends. */
static enum mu_status train_and_validate(struct train_fit *f, bool *ends)
{
	enum mu_status st = MU_OK;

	f->best->state.improved = false;
	MU_TRY(train_epoch(f));
	*ends = f->early;
	if (f->early)
		goto out;
	MU_TRY(mu_train_fit_goes_back(f, f->epoch + 1, ends));
	if (*ends)
		goto out;
	f->unvalidated = mu_train_validates_epoch(f);
	*ends = f->halt->wanted;
	if (f->halt->wanted) {
		MU_TRY(mu_train_fit_end_between(f, f->epoch + 1));
		goto out;
	}
	if (f->unvalidated)
		MU_TRY(mu_train_validate(f, ends));
	if (!f->halt->goes_back)
		MU_TRY(mu_train_fit_save(f)); /* after the validation, whose results it holds */
out:
	return st;
}

enum mu_status mu_train_fit(struct train_fit *f)
{
	enum mu_status st = MU_OK;
	const size_t end = (size_t)f->engine->conf->num_epochs;
	bool ends = false;

	f->epoch = f->from->epoch;
	if (f->epoch == end && !f->from->best.pending) {
		MU_TRY(mu_train_validate_loaded(f));
		goto out;
	}
	if (f->from->best.pending)
		MU_TRY(mu_train_validate_pending(f, &ends));
	else
		ends = mu_train_best_stops(f->best);
	for (; f->epoch < end && !ends; f->epoch++) {
		MU_TRY(mu_train_halt_agree(f->halt));
		if (f->halt->wanted) {
			MU_TRY(mu_train_fit_end_between(f, f->epoch));
			break;
		}
		MU_TRY(train_and_validate(f, &ends));
	}
	MU_TRY(mu_train_fit_energy(f)); /* of the last validation, too */
out:
	return st;
}
