/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The training loop. One step: read samples, forward (each layer waits for its weights first),
 * backward (each layer's gradients leave as soon as they are there). Here nets and stores meet.
 */
#include "fit.h"

#include <math.h>
#include <string.h>

#include <muster/base.h>

#include "batch.h"
#include "report/observers.h"

static enum mu_status pull_layer(struct train_run *run, size_t l)
{
	enum mu_status st = MU_OK;
	const size_t *keys;
	size_t n = mu_plan_layer_keys(run->engine.plan, l, &keys);

	mu_clock_mark((int)l);
	for (size_t i = 0; i < n; i++)
		MU_TRY(mu_kv_pull_end(run->kv, keys[i]));
out:
	return st;
}

/* With the gradients of earlier batches of this update added. */
static enum mu_status push_layer(struct train_run *run, size_t l)
{
	enum mu_status st = MU_OK;
	size_t n_slices;
	const struct mu_slice *slices = mu_plan_slices(run->engine.plan, &n_slices);
	const size_t *keys;

	mu_clock_mark((int)l);
	for (size_t i = mu_plan_layer_keys(run->engine.plan, l, &keys); i-- > 0;) {
		const struct mu_slice *s = &slices[keys[i]];

		mu_engine_sum_add_to(&run->sum, mu_kv_gradients(run->kv), s->at, s->n_padded);
		MU_TRY(mu_kv_push_ready(run->kv, keys[i]));
	}
out:
	return st;
}

/* The layers of an update whose gradients are all there. */
static enum mu_status push_all(struct train_run *run)
{
	enum mu_status st = MU_OK;

	for (size_t l = mu_plan_layers(run->engine.plan); l-- > 0;)
		MU_TRY(push_layer(run, l));
	mu_engine_sum_clear(&run->sum);
out:
	return st;
}

static enum mu_status forward_layer(struct train_run *run, size_t l)
{
	mu_engine_comm_thread_resume(&run->engine);
	return mu_engine_comm_thread_pause(&run->engine, run->engine.ops->forward(&run->engine, l));
}

/* Reads the samples of step f->done; f->count: the good ones, 0 where the worker has none. */
static enum mu_status batch_next(struct train_fit *f)
{
	struct train_run *run = f->run;

	f->count = mu_input_count(&run->train, f->done);
	return f->count > 0 ? mu_train_batch_load(run, &run->train, f->done, &f->count) : MU_OK;
}

/* Each layer runs once its weights are there. */
static enum mu_status forward(struct train_fit *f)
{
	enum mu_status st = MU_OK;
	struct train_run *run = f->run;

	if (f->count == 0)
		goto out;
	for (size_t l = 0; l < mu_plan_layers(run->engine.plan); l++) {
		MU_TRY(pull_layer(run, l));
		mu_clock_mark((int)l); /* a server end in this rank has others */
		mu_clock_start(MU_CLOCK_FORWARD);
		st = forward_layer(run, l);
		mu_clock_stop(MU_CLOCK_FORWARD);
		MU_TRY(st);
	}
	mu_clock_mark(-1);
out:
	return st;
}

/* *keep: the batch has samples, and its loss is finite. */
static enum mu_status guard_loss(struct train_fit *f, bool *keep)
{
	*keep = f->count > 0;
	return *keep ? mu_train_guard_loss(&f->run->guard, f->done, keep) : MU_OK;
}

/* The next step's samples are read while the devices run this step's backward. */
static enum mu_status backward_layers(struct train_run *run, size_t step, bool push)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_engine_gpus_clear(&run->engine, false));
	for (size_t ready = mu_plan_layers(run->engine.plan), l = ready; ready > 0;) {
		mu_clock_mark((int)ready - 1);
		mu_clock_start(MU_CLOCK_BACKWARD);
		mu_engine_comm_thread_resume(&run->engine);
		st = mu_engine_comm_thread_pause(&run->engine,
						 run->engine.ops->backward(&run->engine, &ready));
		mu_clock_stop(MU_CLOCK_BACKWARD);
		MU_TRY(st);
		while (push && l > ready)
			MU_TRY(push_layer(run, --l));
		MU_TRY(mu_train_batch_ahead(run, step + 1));
		if (!push)
			MU_TRY(mu_kv_poll(run->kv)); /* others may need what is under way here */
	}
out:
	return st;
}

/* --update-period: is this batch the last of an update? The rest of an epoch makes a shorter one.
 */
static bool ends_update(const struct train_run *run, size_t step)
{
	return (step + 1) % (size_t)run->options.update_period == 0 || step + 1 == run->steps;
}

/* The short last step, bad records or values that are not finite can leave a worker without
 * samples; it takes part all the same. */
static enum mu_status empty_step(struct train_run *run, size_t step)
{
	enum mu_status st = MU_OK;

	if (!ends_update(run, step))
		return MU_OK;
	MU_TRY(mu_kv_step_end(run->kv));
	MU_TRY(mu_kv_step_begin(run->kv, run->sum.count));
	memset(mu_kv_gradients(run->kv), 0, mu_kv_n(run->kv) * sizeof(float));
	MU_TRY(mu_engine_gpus_clear(&run->engine, true));
	MU_TRY(push_all(run));
out:
	return st;
}

/* Backward of a batch whose gradients are pushed only once all of them are known to be finite. */
static enum mu_status held_backward(struct train_fit *f, size_t step, size_t told)
{
	enum mu_status st = MU_OK;
	struct train_run *run = f->run;
	struct mu_metrics metrics = {0};
	bool good;

	run->engine.ops->measure(&run->engine, &metrics);
	MU_TRY(backward_layers(run, step, false));
	MU_TRY(mu_train_guard_gradients(&run->guard, step, false, &good));
	if (!good) {
		MU_TRY(empty_step(run, step));
		goto out;
	}
	mu_metrics_add(&f->window, &metrics);
	if (!ends_update(run, step)) {
		mu_engine_sum_add(&run->sum, mu_kv_gradients(run->kv), told);
		goto out;
	}
	MU_TRY(mu_kv_step_begin(run->kv, run->sum.count + told));
	MU_TRY(push_all(run));
out:
	return st;
}

/* This worker has no good samples. */
static enum mu_status idle_step(struct train_fit *f, size_t step)
{
	enum mu_status st = MU_OK;
	bool good;

	MU_TRY(mu_train_guard_gradients(&f->run->guard, step, true, &good));
	MU_TRY(empty_step(f->run, step));
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
	struct train_run *run = f->run;
	const size_t step = f->done, told = mu_engine_team_count(&run->engine, f->count);
	const bool push = ends_update(run, step);

	if (!keep)
		return idle_step(f, step);
	if (mu_train_guard_holds(&run->guard))
		return held_backward(f, step, told);
	if (push)
		MU_TRY(mu_kv_step_begin(run->kv, run->sum.count + told));
	run->engine.ops->measure(&run->engine, &f->window);
	MU_TRY(backward_layers(run, step, push));
	if (push)
		mu_engine_sum_clear(&run->sum);
	else
		mu_engine_sum_add(&run->sum, mu_kv_gradients(run->kv), told);
out:
	return st;
}

/*
 * A line for steps (first, last]. Synchronous stores sum the metrics over the workers; dist_async
 * must not meet inside an epoch, so its lines have the speed of the whole job (the servers count
 * samples) and the metrics of worker 0.
 */
static enum mu_status show_window(struct train_fit *f, size_t last)
{
	enum mu_status st = MU_OK;
	struct train_run *run = f->run;
	struct report_window w = {
		.epoch = f->epoch, .first = f->window_first, .last = last, .metrics = f->window};
	double progress = mu_kv_progress(run->kv);

	mu_metrics_add(&f->total, &f->window);
	f->window = (struct mu_metrics){0};
	if (run->store.synchronous)
		MU_TRY(mu_engine_metrics_reduce(&w.metrics, run->topology.peers));
	w.samples = run->store.synchronous ? w.metrics.samples - f->window_before
					   : progress - f->window_progress;
	f->window_before = 0;
	w.seconds = mu_now() - f->window_start;
	w.data_seconds = mu_clock_seconds(MU_CLOCK_DATA) - f->window_data;
	w.comm_seconds = mu_report_comm_seconds() - f->window_comm;
	mu_report_window(run->observers, &w);
	if (run->store.synchronous)
		MU_TRY(mu_checkpoint_saver_check_minutes(run->saver));
	f->window_first = last;
	f->window_start = mu_now();
	f->window_data += w.data_seconds;
	f->window_comm += w.comm_seconds;
	f->window_progress = progress;
out:
	return st;
}

/* What --skip-bad-records left out. */
static void tell_bad(const struct train_run *run, const struct mu_input *in, const char *what)
{
	if (in->n_bad > 0 && run->engine.team.member == 0)
		mu_log_warn("%s worker %d left %zu bad records out", what, run->topology.index,
			    in->n_bad);
}

/* The same on all workers. */
static enum mu_status check_samples(const struct mu_metrics *m, const char *what)
{
	enum mu_status st = MU_OK;

	if (m->samples == 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: none of the records can be read or used; without --skip-bad-records "
			"and --on-nan the run ends with what is wrong with the first",
			what);
out:
	return st;
}

/* Where the epoch begins: in the one that a run goes on with, behind what is done. */
static size_t begin_epoch(struct train_fit *f)
{
	const struct train_run *run = f->run;

	f->total = f->window = (struct mu_metrics){0};
	f->before = f->window_before = 0;
	f->window_first = f->saved = 0;
	if (f->epoch != run->begin_epoch)
		return 0;
	f->window_first = run->resume->at.window_first;
	if (run->topology.index == 0) { /* sums over all workers */
		f->total = run->resume->at.total;
		f->window = run->resume->at.window;
		f->window_before = f->window.samples;
		f->before = f->total.samples + f->window.samples;
	}
	return run->begin_step;
}

/* Step f->done, which began at this time, is over. */
static enum mu_status observe_step(struct train_fit *f, double begin)
{
	enum mu_status st = MU_OK;
	struct train_run *run = f->run;
	struct report_step s = {
		.epoch = f->epoch, .done = f->done + 1, .begin = begin, .metrics = f->total};

	mu_metrics_add(&s.metrics, &f->window);
	mu_report_step(run->observers, &s);
	if (f->done > 0 && f->done % (size_t)run->options.disp_batches == 0)
		MU_TRY(show_window(f, f->done));
	f->done++;
out:
	return st;
}

static enum mu_status begin_steps(struct train_fit *f)
{
	enum mu_status st = MU_OK;
	struct train_run *run = f->run;

	f->window_start = mu_now();
	f->window_data = mu_clock_seconds(MU_CLOCK_DATA);
	f->window_comm = mu_report_comm_seconds();
	f->window_progress = mu_kv_progress(run->kv);
	MU_TRY(mu_input_epoch(&run->train, (uint32_t)f->epoch));
	mu_train_batch_forget(run);
	f->first = f->done = begin_epoch(f);
out:
	return st;
}

static enum mu_status train_steps(struct train_fit *f)
{
	enum mu_status st = MU_OK;
	struct train_run *run = f->run;
	bool keep;

	MU_TRY(begin_steps(f));
	do {
		const double begin = mu_now();

		MU_TRY(batch_next(f));
		MU_TRY(forward(f)); /* pull each layer's keys, then run it */
		MU_TRY(guard_loss(f, &keep));
		MU_TRY(backward(f, keep)); /* push keys as layers are ready */
		MU_TRY(observe_step(f, begin));
		MU_TRY(mu_train_guard_verify(&run->guard, f->done));
		MU_TRY(mu_train_fit_save_inside(f));
	} while (f->done < run->steps && !mu_train_halt_heard(run, f->done));
	MU_TRY(mu_checkpoint_saver_finish_shared(run->saver));
	MU_TRY(mu_kv_meet(run->kv));
	MU_TRY(mu_train_fit_look_inside(f));
out:
	return st;
}

static enum mu_status train_epoch(struct train_fit *f)
{
	enum mu_status st = MU_OK;
	struct train_run *run = f->run;
	double start = mu_now();
	struct report_window epoch = {.epoch = f->epoch,
				      .data_seconds = -mu_clock_seconds(MU_CLOCK_DATA),
				      .comm_seconds = -mu_report_comm_seconds()};
	char what[32];

	snprintf(what, sizeof what, "Epoch[%zu]", f->epoch);
	mu_train_guard_epoch(&run->guard, f->epoch);
	mu_report_epoch_begin(run->observers, f->epoch == run->begin_epoch ? run->begin_step : 0);
	MU_TRY(train_steps(f));
	tell_bad(run, &run->train, what);
	mu_train_guard_report(&run->guard, what);
	if (!f->early)
		MU_TRY(mu_kv_fetch(run->kv));
	epoch.seconds = mu_now() - start;
	mu_report_epoch_end(run->observers);
	epoch.data_seconds += mu_clock_seconds(MU_CLOCK_DATA);
	epoch.comm_seconds += mu_report_comm_seconds();
	if (!f->early)
		MU_TRY(mu_train_guard_weights(&run->guard));
	mu_metrics_add(&f->total, &f->window);
	MU_TRY(mu_engine_metrics_reduce(&f->total, run->topology.peers));
	if (!f->early && run->guard.scale.in_a_row == 0) /* or its last batches did not fit it */
		MU_TRY(check_samples(&f->total, what));
	epoch.metrics = f->total;
	epoch.samples = f->total.samples - f->before;
	epoch.first = f->first;
	epoch.last = f->done;
	epoch.early = f->early;
	mu_report_epoch(run->observers, &epoch);
out:
	return st;
}

enum mu_status mu_train_evaluate(struct train_run *run, struct mu_metrics *m)
{
	enum mu_status st = MU_OK;
	size_t count;

	*m = (struct mu_metrics){0};
	MU_TRY(mu_input_epoch(&run->validate, 0));
	for (size_t step = 0; step < run->validate.steps; step++) {
		count = mu_input_count(&run->validate, step);
		if (count > 0)
			MU_TRY(mu_train_batch_load(run, &run->validate, step, &count));
		for (size_t l = 0; count > 0 && l < mu_plan_layers(run->engine.plan); l++)
			MU_TRY(forward_layer(run, l));
		if (count > 0)
			run->engine.ops->measure(&run->engine, m);
		if (run->prediction)
			MU_TRY(mu_train_prediction_take(run, step, count, m));
		MU_TRY(mu_checkpoint_saver_poll(run->saver));
	}
	tell_bad(run, &run->validate, "validation:");
	MU_TRY(mu_engine_metrics_reduce(m, run->topology.peers));
	MU_TRY(check_samples(m, "validation"));
	if (!isfinite(m->cross_entropy))
		MU_FAIL(MU_ERR_NUMERIC,
			"validation: the loss is not finite; a lower --lr may help");
out:
	return st;
}

/* Validate after epoch f->epoch. */
static enum mu_status validate(struct train_fit *f, bool *reached)
{
	enum mu_status st = MU_OK;
	struct train_run *run = f->run;
	double target = run->options.target_accuracy;
	struct mu_metrics m;

	if (!run->has_validation)
		goto out;
	MU_TRY(mu_train_evaluate(run, &m));
	mu_report_validation(run->observers, f->epoch, &m);
	*reached = target > 0 && m.correct / m.predictions >= target;
	if (*reached && run->topology.index == 0)
		mu_log_info("target accuracy %g reached: training ends", target);
out:
	return st;
}

enum mu_status mu_train_fit(struct train_run *run)
{
	enum mu_status st = MU_OK;
	size_t end = (size_t)run->options.num_epochs;
	struct train_fit f = {.run = run, .epoch = run->begin_epoch};
	/* Then a checkpoint holds the learning rate after the validation. */
	const bool plateau = run->options.schedule.kind == CONF_SCHEDULE_PLATEAU;
	bool reached = false;

	if (f.epoch == end) { /* nothing to train: tell what the loaded file is worth */
		f.epoch--;
		MU_TRY(validate(&f, &reached));
		goto out;
	}
	for (; f.epoch < end && !reached; f.epoch++) {
		MU_TRY(mu_train_halt_agree(run));
		if (run->halt.wanted) {
			MU_TRY(mu_train_fit_end_between(&f, f.epoch));
			break;
		}
		MU_TRY(train_epoch(&f));
		if (f.early)
			break;
		if (run->halt.wanted) {
			MU_TRY(mu_train_fit_end_between(&f, f.epoch + 1));
			break;
		}
		if (!plateau)
			MU_TRY(mu_train_fit_save(&f));
		MU_TRY(validate(&f, &reached));
		if (plateau)
			MU_TRY(mu_train_fit_save(&f));
	}
out:
	return st;
}
