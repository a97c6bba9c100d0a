/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The training loop. One step: read samples, forward (each layer waits for its weights first),
 * backward (each layer's gradients leave as soon as they are there). Here nets and stores meet.
 */
#include "train.h"

#include <math.h>
#include <string.h>

#include <muster/base.h>

/* How long to wait for samples before looking at messages. */
#define POLL_SECONDS 1e-3

struct fit {
	struct train_run *run;
	size_t epoch;
	struct mu_metrics total, window; /* of the epoch, since the last line; this worker's */
	double window_start, window_progress, window_data;
	size_t window_first;
};

static enum mu_status pull_layer(struct train_run *run, size_t l)
{
	enum mu_status st = MU_OK;
	const size_t *keys;
	size_t n = mu_plan_layer_keys(run->plan, l, &keys);

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
	const struct mu_slice *slices = mu_plan_slices(run->plan, &n_slices);
	const size_t *keys;

	for (size_t i = mu_plan_layer_keys(run->plan, l, &keys); i-- > 0;) {
		const struct mu_slice *s = &slices[keys[i]];

		mu_train_sum_give(&run->sum, mu_kv_gradients(run->kv), s->at, s->n_padded);
		MU_TRY(mu_kv_push_ready(run->kv, keys[i]));
	}
out:
	return st;
}

static enum mu_status forward(struct train_run *run)
{
	enum mu_status st = MU_OK;

	for (size_t l = 0; l < mu_plan_layers(run->plan); l++) {
		MU_TRY(pull_layer(run, l));
		mu_clock_start(MU_CLOCK_FORWARD);
		st = mu_train_devices_forward(run, l);
		mu_clock_stop(MU_CLOCK_FORWARD);
		MU_TRY(st);
	}
out:
	return st;
}

static enum mu_status backward(struct train_run *run, bool push)
{
	enum mu_status st = MU_OK;

	for (size_t ready = mu_plan_layers(run->plan), l = ready; ready > 0;) {
		mu_clock_start(MU_CLOCK_BACKWARD);
		st = mu_train_devices_backward(run, &ready);
		mu_clock_stop(MU_CLOCK_BACKWARD);
		MU_TRY(st);
		while (push && l > ready)
			MU_TRY(push_layer(run, --l));
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

/* The short last step, or bad records, can leave a worker without samples; it takes part all the
 * same. */
static enum mu_status empty_step(struct train_run *run, size_t step)
{
	enum mu_status st = MU_OK;

	if (!ends_update(run, step))
		return MU_OK;
	MU_TRY(mu_kv_step_end(run->kv));
	MU_TRY(mu_kv_step_begin(run->kv, run->sum.count));
	memset(mu_kv_gradients(run->kv), 0, mu_kv_n(run->kv) * sizeof(float));
	for (size_t l = mu_plan_layers(run->plan); l-- > 0;)
		MU_TRY(push_layer(run, l));
	mu_train_sum_clear(&run->sum);
out:
	return st;
}

/*
 * Others may need what is under way here while samples are not ready. Polling looks like work to
 * them, so this worker itself tells how long it takes.
 */
static enum mu_status wait_for_samples(const struct train_run *run, struct mu_input *in,
				       size_t step)
{
	enum mu_status st = MU_OK;
	const double start = mu_now(), warn = run->options.limits.warn;
	double told = start;

	while (!mu_input_wait(in, step, POLL_SECONDS)) {
		MU_TRY(mu_kv_poll(run->kv));
		if (warn == 0 || mu_now() - told < warn)
			continue;
		told = mu_now();
		mu_log_warn("worker %d has waited %.1f s for the samples of step %zu",
			    run->topology.index, told - start, step);
	}
out:
	return st;
}

/* *count: samples that are good. */
static enum mu_status load(struct train_run *run, struct mu_input *in, size_t step, size_t *count)
{
	enum mu_status st = MU_OK;
	bool train = in == &run->train;
	struct mu_batch batch = {
		.count = mu_input_count(in, step),
		.labels = run->labels,
		.ids = run->ids,
		.label_smoothing = train ? (float)run->options.label_smoothing : 0,
		.seed = (uint64_t)run->options.seed,
		.epoch = in->epoch,
		.step = step,
	};
	struct mu_input_batch samples = {.labels = run->labels, .ids = run->ids};

	mu_clock_start(MU_CLOCK_DATA);
	MU_TRY(wait_for_samples(run, in, step));
	samples.data = mu_train_devices_begin(run, train ? MU_PHASE_TRAIN : MU_PHASE_INFER, &batch);
	MU_TRY(mu_input_read(in, step, &samples));
	*count = samples.count;
	if (*count < batch.count)
		mu_train_devices_count(run, *count);
out:
	mu_clock_stop(MU_CLOCK_DATA);
	return st;
}

static enum mu_status check_loss(const struct fit *f, size_t step)
{
	enum mu_status st = MU_OK;
	const char *place;

	if (isfinite(mu_train_devices_loss(f->run)))
		return MU_OK;
	place = mu_train_devices_find_nonfinite(f->run);
	MU_FAIL(MU_ERR_NUMERIC,
		"epoch %zu, step %zu: the loss is not finite; the first value that is not finite "
		"is in %s; "
		"a lower --lr may help",
		f->epoch, step, place ? place : "the loss itself");
out:
	return st;
}

static enum mu_status train_step(struct fit *f, size_t step)
{
	enum mu_status st = MU_OK;
	struct train_run *run = f->run;
	size_t count = mu_input_count(&run->train, step);
	bool push = ends_update(run, step);

	if (count == 0)
		return empty_step(run, step);
	MU_TRY(load(run, &run->train, step, &count));
	if (count == 0) /* all of them are bad */
		return empty_step(run, step);
	MU_TRY(forward(run));
	MU_TRY(check_loss(f, step));
	if (push)
		MU_TRY(mu_kv_step_begin(run->kv, run->sum.count + count));
	mu_train_devices_measure(run, &f->window);
	MU_TRY(backward(run, push));
	if (push)
		mu_train_sum_clear(&run->sum);
	else
		mu_train_sum_take(&run->sum, mu_kv_gradients(run->kv), count);
out:
	return st;
}

/*
 * A line for steps (first, last]. Synchronous stores sum the metrics over the workers; dist_async
 * must not meet inside an epoch, so its lines have the speed of the whole job (the servers count
 * samples) and the metrics of worker 0.
 */
static enum mu_status show_window(struct fit *f, size_t last)
{
	enum mu_status st = MU_OK;
	struct train_run *run = f->run;
	struct train_window w = {
		.epoch = f->epoch, .first = f->window_first, .last = last, .metrics = f->window};
	double progress = mu_kv_progress(run->kv);

	mu_metrics_add(&f->total, &f->window);
	f->window = (struct mu_metrics){0};
	if (run->store.synchronous)
		MU_TRY(mu_train_metrics_reduce(&w.metrics, run->topology.peers));
	w.samples = run->store.synchronous ? w.metrics.samples : progress - f->window_progress;
	w.seconds = mu_now() - f->window_start;
	w.data_seconds = mu_clock_seconds(MU_CLOCK_DATA) - f->window_data;
	if (run->topology.index == 0)
		mu_train_report_speed(run, &w);
	f->window_first = last;
	f->window_start = mu_now();
	f->window_data += w.data_seconds;
	f->window_progress = progress;
out:
	return st;
}

/*
 * A loss can hide values that are not finite (relu of oneDNN makes 0 of NaN), weights cannot. All
 * workers hold the same ones here.
 */
static enum mu_status check_weights(const struct fit *f)
{
	enum mu_status st = MU_OK;
	const float *weights = mu_kv_weights(f->run->kv);
	size_t n_slices;
	const struct mu_slice *slices = mu_plan_slices(f->run->plan, &n_slices);

	for (size_t k = 0; k < n_slices; k++)
		for (size_t i = 0; i < slices[k].n_padded; i++)
			if (!isfinite(weights[slices[k].at + i]))
				MU_FAIL(MU_ERR_NUMERIC,
					"epoch %zu: %s is not finite; a lower --lr may help",
					f->epoch, slices[k].name);
out:
	return st;
}

/* What --skip-bad-records left out. */
static void tell_bad(const struct train_run *run, const struct mu_input *in, const char *what)
{
	if (in->n_bad > 0)
		mu_log_warn("%s worker %d left %zu bad records out", what, run->topology.index,
			    in->n_bad);
}

/* The same on all workers. */
static enum mu_status check_samples(const struct mu_metrics *m, const char *what)
{
	enum mu_status st = MU_OK;

	if (m->samples == 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: none of the records can be read; --skip-bad-records 0 ends with what "
			"is wrong with the first",
			what);
out:
	return st;
}

static enum mu_status train_epoch(struct fit *f)
{
	enum mu_status st = MU_OK;
	struct train_run *run = f->run;
	double start = mu_now(), seconds;
	char what[32];

	f->total = f->window = (struct mu_metrics){0};
	f->window_first = 0;
	f->window_start = start;
	f->window_data = mu_clock_seconds(MU_CLOCK_DATA);
	f->window_progress = mu_kv_progress(run->kv);
	MU_TRY(mu_input_epoch(&run->train, (uint32_t)f->epoch));
	for (size_t step = 0; step < run->steps; step++) {
		MU_TRY(train_step(f, step));
		if (step > 0 && step % (size_t)run->options.disp_batches == 0)
			MU_TRY(show_window(f, step));
	}
	snprintf(what, sizeof what, "Epoch[%zu]", f->epoch);
	tell_bad(run, &run->train, what);
	MU_TRY(mu_kv_meet(run->kv));
	MU_TRY(mu_kv_fetch(run->kv));
	seconds = mu_now() - start;
	MU_TRY(check_weights(f));
	mu_metrics_add(&f->total, &f->window);
	MU_TRY(mu_train_metrics_reduce(&f->total, run->topology.peers));
	MU_TRY(check_samples(&f->total, what));
	run->speed_seconds += seconds;
	run->speed_samples += f->total.samples;
	run->exchanges += ceil(ceil((double)run->steps / (double)run->options.update_period) /
			       (double)run->options.sync_period);
	if (run->topology.index == 0)
		mu_train_report_epoch(run, f->epoch, &f->total, seconds);
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
		if (mu_input_count(&run->validate, step) == 0)
			continue;
		MU_TRY(load(run, &run->validate, step, &count));
		if (count == 0)
			continue;
		for (size_t l = 0; l < mu_plan_layers(run->plan); l++)
			MU_TRY(mu_train_devices_forward(run, l));
		mu_train_devices_measure(run, m);
	}
	tell_bad(run, &run->validate, "validation:");
	MU_TRY(mu_train_metrics_reduce(m, run->topology.peers));
	MU_TRY(check_samples(m, "validation"));
	if (!isfinite(m->cross_entropy))
		MU_FAIL(MU_ERR_NUMERIC,
			"validation: the loss is not finite; a lower --lr may help");
out:
	return st;
}

/* Validate after epoch f->epoch. */
static enum mu_status validate(struct fit *f, bool *reached)
{
	enum mu_status st = MU_OK;
	struct train_run *run = f->run;
	double target = run->options.target_accuracy;
	struct mu_metrics m;

	if (!run->has_validation)
		goto out;
	MU_TRY(mu_train_evaluate(run, &m));
	if (run->topology.index == 0)
		mu_train_report_validation(run, f->epoch, &m);
	*reached = target > 0 && m.correct / m.predictions >= target;
	if (*reached && run->topology.index == 0)
		mu_log_info("target accuracy %g reached: training ends", target);
out:
	return st;
}

/* Worker 0 saves; all learn whether it could. */
static enum mu_status save(struct fit *f)
{
	enum mu_status st = MU_OK;
	struct train_run *run = f->run;

	if (!run->options.model_prefix || (f->epoch + 1) % (size_t)run->options.save_period != 0)
		return MU_OK;
	st = run->topology.index == 0 ? mu_train_checkpoint_save(run, f->epoch + 1) : MU_OK;
	MU_TRY(mu_train_agree_late(st, run->topology.peers));
out:
	return st;
}

enum mu_status mu_train_fit(struct train_run *run)
{
	enum mu_status st = MU_OK;
	size_t end = (size_t)run->options.num_epochs;
	struct fit f = {.run = run, .epoch = run->begin_epoch};
	bool reached = false;

	if (f.epoch == end) { /* nothing to train: tell what the loaded file is worth */
		f.epoch--;
		MU_TRY(validate(&f, &reached));
		goto out;
	}
	for (; f.epoch < end && !reached; f.epoch++) {
		MU_TRY(train_epoch(&f));
		MU_TRY(save(&f));
		MU_TRY(validate(&f, &reached));
	}
out:
	return st;
}
