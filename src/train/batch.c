/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples of a step. Devices with memory of their own get them a step ahead: when they have all
 * of a backward to do, the next batch is read, and on its way, if it is ready by then.
 */
#include "batch.h"

#include <string.h>

#include <muster/base.h>

/* How long to wait for samples before looking at messages. */
#define POLL_SECONDS 1e-3

/*
 * Others may need what is under way here while samples are not ready. Polling looks like work to
 * them, so this worker itself tells how long it takes.
 */
static enum mu_status wait_for_samples(struct train_run *run, struct mu_input *in, size_t step)
{
	enum mu_status st = MU_OK;
	const double start = mu_now(), warn = run->options.limits.warn;
	double told = start;

	while (!mu_input_wait(in, step, POLL_SECONDS)) {
		MU_TRY(mu_engine_poll(&run->engine));
		if (warn == 0 || mu_now() - told < warn)
			continue;
		told = mu_now();
		mu_log_warn("worker %d has waited %.1f s for the samples of step %zu",
			    run->topology.index, told - start, step);
	}
out:
	return st;
}

enum mu_status mu_train_batch_open(struct train_run *run)
{
	enum mu_status st = MU_OK;
	const struct mu_input_config *c = &run->train.config;

	MU_TRY(MU_ALLOC(run->labels, c->batch * c->label_width, "labels"));
	MU_TRY(MU_ALLOC(run->ids, c->batch, "sample ids"));
	if (!mu_engine_sends_ahead(&run->engine))
		goto out;
	MU_TRY(MU_ALLOC(run->ahead, 1, "a batch ahead"));
	MU_TRY(MU_ALLOC(run->ahead->labels, c->batch * c->label_width, "labels"));
	MU_TRY(MU_ALLOC(run->ahead->ids, c->batch, "sample ids"));
	if (run->train.bytes && run->topology.index == 0)
		mu_log_info("samples go to the GPUs as bytes");
out:
	return st;
}

void mu_train_batch_close(struct train_run *run)
{
	mu_free(run->labels);
	mu_free(run->ids);
	if (!run->ahead)
		return;
	mu_free(run->ahead->labels);
	mu_free(run->ahead->ids);
	mu_free(run->ahead);
}

static bool is_ahead(const struct train_run *run, const struct mu_input *in, size_t step)
{
	return in == &run->train && run->ahead && run->ahead->there && run->ahead->step == step;
}

/* The labels and ids that were read ahead become the step's. */
static void take_ahead(struct train_run *run)
{
	struct train_ahead *a = run->ahead;
	float *labels = run->labels;
	uint32_t *ids = run->ids;

	run->labels = a->labels;
	run->ids = a->ids;
	a->labels = labels;
	a->ids = ids;
	a->there = false;
}

void mu_train_batch_forget(struct train_run *run)
{
	if (run->ahead)
		run->ahead->there = false;
}

enum mu_status mu_train_batch_load(struct train_run *run, struct mu_input *in, size_t step,
				   size_t *count)
{
	enum mu_status st = MU_OK;
	const bool train = in == &run->train, ahead = is_ahead(run, in, step);
	const bool sends = train && run->ahead && !ahead;
	struct mu_batch batch = {
		.count = mu_input_count(in, step),
		.label_smoothing = train ? (float)run->options.label_smoothing : 0,
		.loss_scale = train ? (float)run->guard.scale.scale : 0,
		.seed = (uint64_t)run->options.seed,
		.epoch = in->epoch,
		.step = step,
	};
	struct mu_input_batch samples = {.count = ahead ? run->ahead->count : 0};

	mu_clock_mark(-1);
	mu_clock_start(MU_CLOCK_DATA);
	mu_engine_comm_thread_resume(&run->engine);
	if (ahead)
		take_ahead(run);
	else
		MU_TRY(wait_for_samples(run, in, step));
	batch.labels = samples.labels = run->labels;
	batch.ids = samples.ids = run->ids;
	samples.data = run->engine.ops->begin(&run->engine, train ? MU_PHASE_TRAIN : MU_PHASE_INFER,
					      mu_input_group(in, step), &batch);
	if (sends)
		mu_engine_room(&run->engine, mu_input_group(in, step), batch.count, &samples);
	if (!ahead)
		MU_TRY(mu_input_read(in, step, &samples));
	if (sends) /* in place of one that nobody took */
		MU_TRY(mu_engine_send(&run->engine, mu_input_group(in, step), &batch,
				      samples.are_bytes));
	*count = samples.count;
	if (*count < batch.count)
		run->engine.ops->count(&run->engine, *count);
out:
	st = mu_engine_comm_thread_pause(&run->engine, st);
	mu_clock_stop(MU_CLOCK_DATA);
	return st;
}

static enum mu_status read_ahead(struct train_run *run, size_t step)
{
	enum mu_status st = MU_OK;
	struct train_ahead *a = run->ahead;
	struct mu_input *in = &run->train;
	const size_t group = mu_input_group(in, step);
	const struct mu_batch batch = {
		.count = mu_input_count(in, step),
		.labels = a->labels,
		.ids = a->ids,
		.epoch = in->epoch,
	};
	struct mu_input_batch samples = {.labels = a->labels, .ids = a->ids};

	mu_engine_room(&run->engine, group, batch.count, &samples);
	MU_TRY(mu_input_read(in, step, &samples));
	MU_TRY(mu_engine_send(&run->engine, group, &batch, samples.are_bytes));
	a->step = step;
	a->count = samples.count;
	a->there = true;
out:
	return st;
}

enum mu_status mu_train_batch_ahead(struct train_run *run, size_t step)
{
	enum mu_status st = MU_OK;
	struct mu_input *in = &run->train;

	if (!run->ahead || run->ahead->there || run->engine.devices.layer > 0 ||
	    step >= run->steps || mu_input_count(in, step) == 0 || !mu_input_wait(in, step, 0))
		return MU_OK;
	mu_clock_start(MU_CLOCK_DATA);
	mu_engine_comm_thread_resume(&run->engine);
	st = mu_engine_comm_thread_pause(&run->engine, read_ahead(run, step));
	mu_clock_stop(MU_CLOCK_DATA);
	return st;
}
