/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The samples of a step. Devices with their own memory receive them one step ahead: while they
 * run backward, the next batch is read and sent, if it is ready by then.
 */
#include "batch.h"

#include <muster/base.h>

/* How long to wait for samples before messages are polled. */
#define POLL_SECONDS 1e-3

/*
 * Other ranks may need messages from this one meanwhile. They see polling as progress, so this
 * worker itself warns of a long wait.
 */
static enum mu_status wait_for_samples(struct mu_engine *e, struct mu_input *in, size_t step)
{
	enum mu_status st = MU_OK;
	const double start = mu_now(), warn = e->conf->limits.warn;
	double warned = start;

	while (!mu_input_wait(in, step, POLL_SECONDS)) {
		MU_TRY(mu_engine_poll(e));
		if (warn == 0 || mu_now() - warned < warn)
			continue;
		warned = mu_now();
		mu_log_warn("worker %d has waited %.1f s for the samples of step %zu",
			    e->members->index, warned - start, step);
	}
out:
	return st;
}

enum mu_status mu_train_batch_open(struct train_batches *b)
{
	enum mu_status st = MU_OK;
	const size_t n = b->train->config.batch, width = mu_input_width(b->train);

	MU_TRY(MU_ALLOC(b->labels, n * width, "labels"));
	MU_TRY(MU_ALLOC(b->ids, n, "sample ids"));
	if (!mu_engine_sends_ahead(b->engine))
		goto out;
	MU_TRY(MU_ALLOC(b->ahead, 1, "a batch ahead"));
	MU_TRY(MU_ALLOC(b->ahead->labels, n * width, "labels"));
	MU_TRY(MU_ALLOC(b->ahead->ids, n, "sample ids"));
	if (mu_input_has_bytes(b->train) && b->engine->members->index == 0)
		mu_log_detail("samples go to the GPUs as bytes");
out:
	return st;
}

void mu_train_batch_close(struct train_batches *b)
{
	mu_free(b->labels);
	mu_free(b->ids);
	if (!b->ahead)
		return;
	mu_free(b->ahead->labels);
	mu_free(b->ahead->ids);
	mu_free(b->ahead);
}

static bool is_ahead(const struct train_batches *b, const struct mu_input *in, size_t step)
{
	return in == b->train && b->ahead && b->ahead->there && b->ahead->step == step;
}

/* The labels and ids that were read ahead become the step's. */
static void use_ahead(struct train_batches *b)
{
	struct train_batch_ahead *a = b->ahead;
	float *labels = b->labels;
	uint32_t *ids = b->ids;

	b->labels = a->labels;
	b->ids = a->ids;
	a->labels = labels;
	a->ids = ids;
	a->there = false;
}

void mu_train_batch_forget(struct train_batches *b)
{
	if (b->ahead)
		b->ahead->there = false;
}

static enum mu_status read_samples(struct train_batches *b, struct mu_input *in, size_t step,
				   struct mu_input_batch *samples)
{
	const enum mu_status read = mu_input_read(in, step, samples);
	const enum mu_status st = mu_train_recover(b->recovering, TRAIN_NOT_READ, read);

	if (read != MU_OK)
		samples->count = 0;
	return st;
}

enum mu_status mu_train_batch_load(struct train_batches *b, struct mu_input *in, size_t step,
				   size_t *count)
{
	enum mu_status st = MU_OK;
	const bool train = in == b->train, ahead = is_ahead(b, in, step);
	const bool sends = train && b->ahead && !ahead;
	struct mu_batch batch = {
		.count = mu_input_count(in, step),
		.label_smoothing = train ? (float)b->engine->conf->label_smoothing : 0,
		.loss_scale = train ? (float)*b->loss_scale : 0,
		.seed = (uint64_t)b->engine->conf->seed,
		.epoch = in->epoch,
		.step = step,
	};
	struct mu_input_batch samples = {.count = ahead ? b->ahead->count : 0};

	mu_clock_mark(-1);
	mu_clock_start(MU_CLOCK_DATA);
	mu_engine_comm_thread_resume(b->engine);
	if (ahead)
		use_ahead(b);
	else
		MU_TRY(wait_for_samples(b->engine, in, step));
	batch.labels = samples.labels = b->labels;
	batch.ids = samples.ids = b->ids;
	samples.data = b->engine->ops->begin(b->engine, train ? MU_PHASE_TRAIN : MU_PHASE_INFER,
					      mu_input_group(in, step), &batch);
	if (sends)
		mu_engine_room(b->engine, mu_input_group(in, step), batch.count, &samples);
	if (!ahead)
		MU_TRY(read_samples(b, in, step, &samples));
	if (sends) /* none was sent in advance */
		MU_TRY(mu_engine_send(b->engine, mu_input_group(in, step), &batch,
				      samples.are_bytes));
	*count = samples.count;
	if (*count < batch.count)
		b->engine->ops->count(b->engine, *count);
out:
	st = mu_engine_comm_thread_pause(b->engine, st);
	mu_clock_stop(MU_CLOCK_DATA);
	return st;
}

static enum mu_status read_ahead(struct train_batches *b, size_t step)
{
	enum mu_status st = MU_OK;
	struct train_batch_ahead *a = b->ahead;
	struct mu_input *in = b->train;
	const size_t group = mu_input_group(in, step);
	const struct mu_batch batch = {
		.count = mu_input_count(in, step),
		.labels = a->labels,
		.ids = a->ids,
		.epoch = in->epoch,
	};
	struct mu_input_batch samples = {.labels = a->labels, .ids = a->ids};

	mu_engine_room(b->engine, group, batch.count, &samples);
	MU_TRY(read_samples(b, in, step, &samples));
	MU_TRY(mu_engine_send(b->engine, group, &batch, samples.are_bytes));
	a->step = step;
	a->count = samples.count;
	a->there = true;
out:
	return st;
}

enum mu_status mu_train_batch_ahead(struct train_batches *b, size_t step)
{
	enum mu_status st = MU_OK;
	const struct mu_engine *e = b->engine;
	struct mu_input *in = b->train;

	if (!b->ahead || b->ahead->there || e->devices.layer > 0 || step >= e->steps ||
	    mu_input_count(in, step) == 0 || !mu_input_wait(in, step, 0))
		return MU_OK;
	mu_clock_start(MU_CLOCK_DATA);
	mu_engine_comm_thread_resume(b->engine);
	st = mu_engine_comm_thread_pause(b->engine, read_ahead(b, step));
	mu_clock_stop(MU_CLOCK_DATA);
	return st;
}

void mu_train_batch_name(const struct mu_input *in, enum mu_status st)
{
	const char *name = in->config.paths ? in->config.paths : in->config.dir;

	if (st == MU_ERR_ARGUMENT && name)
		mu_trace_prefix("%s: ", name);
}
