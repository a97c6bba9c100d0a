/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order and batches of an epoch. The records of a step depend only on seed, epoch, step and worker.
 */
#include <string.h>

#include "pipeline.h"
#include "reader.h"

void mu_input_thread_release(struct mu_input_thread *thread)
{
	mu_image_worker_release(&thread->image);
	mu_record_buffer_release(&thread->record);
}

/* ---- order ---- */

/* Permute the chunks, then the records of each. The end of `order` holds the permutation of the
 * chunks while the start is filled from it: there are no more chunks than records. */
static void shuffle_chunks(const struct mu_random *key, uint32_t *order, size_t n, size_t chunk)
{
	size_t n_chunks = (n + chunk - 1) / chunk, at = 0;
	uint32_t *chunks = order + n - n_chunks;

	mu_random_permutation(key, chunks, n_chunks);
	for (size_t i = 0; i < n_chunks; i++) {
		size_t start = chunks[i] * chunk, m = n - start < chunk ? n - start : chunk;
		struct mu_random inner = *key;

		inner.sample = 1 + start / chunk;
		mu_random_permutation(&inner, order + at, m);
		for (size_t j = 0; j < m; j++)
			order[at + j] += (uint32_t)start;
		at += m;
	}
}

/* Permute records within their groups, then the steps. */
static void shuffle_groups(const struct mu_random *key, struct mu_input *in)
{
	for (size_t g = 0; g < in->n_groups; g++) {
		const struct mu_input_group *group = &in->groups[g];
		struct mu_random inner = *key;

		inner.sample = 1 + g;
		mu_random_permutation(&inner, in->order + group->first, group->n);
		for (size_t i = 0; i < group->n; i++)
			in->order[group->first + i] += (uint32_t)group->first;
	}
	mu_random_permutation(key, in->step_order, in->steps);
}

void mu_input_order(struct mu_input *in, uint32_t epoch)
{
	struct mu_random key = {
		.seed = in->config.seed, .purpose = MU_RANDOM_SHUFFLE, .epoch = epoch};

	in->epoch = epoch;
	in->n_bad = 0;
	if (in->order && in->groups)
		shuffle_groups(&key, in);
	else if (in->order && in->config.shuffle_chunk > 1)
		shuffle_chunks(&key, in->order, in->n, in->config.shuffle_chunk);
	else if (in->order)
		mu_random_permutation(&key, in->order, in->n);
}

enum mu_status mu_input_epoch(struct mu_input *in, uint32_t epoch)
{
	enum mu_status st = MU_OK;

	if (in->pipeline)
		mu_pipeline_pause(in->pipeline);
	mu_input_order(in, epoch);
	if (in->ops->check)
		MU_TRY(in->ops->check(in));
	if (in->pipeline)
		mu_pipeline_start(in->pipeline, 0);
out:
	return st;
}

/* ---- steps ---- */

static struct mu_input_group group_of(const struct mu_input *in, size_t group)
{
	return in->groups ? in->groups[group] : (struct mu_input_group){.n = in->n};
}

static size_t all_workers(const struct mu_input *in)
{
	return (size_t)in->config.num_workers * in->config.batch;
}

size_t mu_input_group_steps(const struct mu_input *in, size_t group)
{
	return (group_of(in, group).n + all_workers(in) - 1) / all_workers(in);
}

size_t mu_input_sample(const struct mu_input *in, size_t group)
{
	return in->groups ? in->groups[group].length : mu_shape_sample(mu_input_shape(in));
}

size_t mu_input_labels(const struct mu_input *in, size_t group)
{
	return in->groups ? in->groups[group].length : mu_input_width(in);
}

/* Convert *step of the epoch to a step of its group. */
static size_t find_group(const struct mu_input *in, size_t *step)
{
	size_t group = 0;

	if (!in->groups)
		return 0;
	if (in->step_order)
		*step = in->step_order[*step];
	while (*step >= mu_input_group_steps(in, group))
		*step -= mu_input_group_steps(in, group++);
	return group;
}

/* Of m samples in a step, worker r of N reads [m r / N, m (r + 1) / N); in a full step, m = N b,
 * this is the r-th run of b. */
static size_t share(const struct mu_input *in, size_t m, size_t *from)
{
	size_t worker = (size_t)in->config.worker, workers = (size_t)in->config.num_workers;

	*from = m * worker / workers;
	return m * (worker + 1) / workers - *from;
}

size_t mu_input_find(const struct mu_input *in, size_t step, size_t *first)
{
	size_t all = all_workers(in), from, n, start;
	struct mu_input_group group;

	*first = 0;
	if (step >= in->steps)
		return 0;
	group = group_of(in, find_group(in, &step));
	start = step * all;
	n = share(in, group.n - start < all ? group.n - start : all, &from);
	*first = group.first + start + from;
	return n;
}

size_t mu_input_group(const struct mu_input *in, size_t step)
{
	return step < in->steps ? find_group(in, &step) : 0;
}

size_t mu_input_rest(const struct mu_input *in, size_t group)
{
	size_t from;

	return share(in, group_of(in, group).n % all_workers(in), &from);
}

size_t mu_input_count(const struct mu_input *in, size_t step)
{
	size_t first;

	return mu_input_find(in, step, &first);
}

/* ---- batches ---- */

size_t mu_input_prefetch_bytes(const struct mu_input *in)
{
	const size_t sample = mu_shape_sample(mu_input_shape(in));
	const size_t numbers = (sample + mu_input_width(in)) * sizeof(float);

	return in->pipeline ? in->config.prefetch * in->config.batch *
				      (numbers + sizeof(uint32_t) +
				       (mu_input_has_bytes(in) ? sample : 0))
			    : 0;
}

enum mu_status mu_input_fill(const struct mu_input *in, struct mu_input_thread *thread,
			     const struct mu_input_run *run, const struct mu_input_batch *batch,
			     uint8_t *marks)
{
	enum mu_status st = MU_OK;
	size_t sample = mu_input_sample(in, run->group), width = mu_input_labels(in, run->group);

	for (size_t i = run->from; i < run->to; i++) {
		size_t place = run->first + i;

		batch->ids[i] = in->order ? in->order[place] : (uint32_t)place;
		if (in->records)
			batch->ids[i] = in->records[batch->ids[i]];
		thread->record.ahead = in->order || in->records ? 0 : run->to - i - 1;
		thread->bytes =
			mu_input_has_bytes(in) && batch->bytes ? batch->bytes + i * sample : NULL;
		thread->are_bytes = false;
		st = in->ops->read(in, thread, batch->ids[i], batch->data + i * sample,
				   batch->labels + i * width);
		marks[i] = thread->are_bytes ? MU_INPUT_BYTES : 0;
		if (st == MU_ERR_FORMAT && in->config.skip_bad_records) {
			marks[i] = MU_INPUT_BAD;
			mu_log_warn("skipped: %s", mu_trace_message());
			mu_trace_clear();
			st = MU_OK;
		}
		MU_TRY(st);
	}
out:
	return st;
}

static void copy_sample(const struct mu_input *in, struct mu_input_batch *batch, uint8_t *marks,
			size_t to, size_t from)
{
	size_t sample = mu_shape_sample(mu_input_shape(in)), width = mu_input_width(in);

	if (to == from)
		return;
	if (marks[from] & MU_INPUT_BYTES)
		memcpy(batch->bytes + to * sample, batch->bytes + from * sample, sample);
	else
		memcpy(batch->data + to * sample, batch->data + from * sample,
		       sample * sizeof *batch->data);
	memcpy(batch->labels + to * width, batch->labels + from * width,
	       width * sizeof *batch->labels);
	batch->ids[to] = batch->ids[from];
	marks[to] = marks[from];
}

void mu_input_from_bytes(const struct mu_input *in, float *out, const uint8_t *bytes, size_t n)
{
	const struct mu_field *data = mu_input_field(in, MU_FIELD_INPUT);
	const size_t plane = mu_shape_positions(&data->shape), c = mu_shape_channels(&data->shape);

	for (size_t i = 0; i < n * c; i++, out += plane, bytes += plane) {
		const float mean = data->mean[i % c], std = data->std[i % c];

		for (size_t j = 0; j < plane; j++)
			out[j] = ((float)bytes[j] - mean) / std;
	}
}

/* Make all samples bytes or all floats. */
static void make_alike(const struct mu_input *in, struct mu_input_batch *batch,
		       const uint8_t *marks, size_t n)
{
	size_t sample = mu_shape_sample(mu_input_shape(in)), bytes = 0;

	for (size_t i = 0; i < n; i++)
		bytes += (marks[i] & MU_INPUT_BYTES) > 0;
	batch->are_bytes = n > 0 && bytes == n;
	for (size_t i = 0; i < n && !batch->are_bytes; i++)
		if (marks[i] & MU_INPUT_BYTES)
			mu_input_from_bytes(in, batch->data + i * sample,
					    batch->bytes + i * sample, 1);
}

void mu_input_leave_out(const struct mu_input *in, struct mu_input_batch *batch, uint8_t *marks,
			size_t *n_bad)
{
	size_t all = batch->count, good = 0;

	for (size_t i = 0; i < all; i++)
		if (!(marks[i] & MU_INPUT_BAD))
			copy_sample(in, batch, marks, good++, i);
	for (size_t i = good; i < all && good > 0; i++)
		copy_sample(in, batch, marks, i, i - good);
	if (good == 0) {
		memset(batch->data, 0,
		       all * mu_shape_sample(mu_input_shape(in)) * sizeof *batch->data);
		memset(batch->labels, 0, all * mu_input_width(in) * sizeof *batch->labels);
	}
	make_alike(in, batch, marks, good > 0 ? all : 0);
	batch->count = good;
	*n_bad += all - good;
}

bool mu_input_wait(struct mu_input *in, size_t step, double seconds)
{
	if (!in->pipeline)
		return true;
	mu_pipeline_start(in->pipeline, step);
	return mu_pipeline_wait(in->pipeline, step, seconds);
}

enum mu_status mu_input_borrow(struct mu_input *in, size_t step, struct mu_input_batch *batch)
{
	if (!in->pipeline)
		return mu_input_read(in, step, batch);
	mu_pipeline_start(in->pipeline, step);
	return mu_pipeline_borrow(in->pipeline, step, batch);
}

enum mu_status mu_input_read(struct mu_input *in, size_t step, struct mu_input_batch *batch)
{
	enum mu_status st = MU_OK;
	struct mu_input_run run = {0};

	if (in->pipeline) {
		mu_pipeline_start(in->pipeline, step);
		MU_TRY(mu_pipeline_copy(in->pipeline, step, batch));
		goto out;
	}
	run.to = batch->count = mu_input_find(in, step, &run.first);
	run.group = mu_input_group(in, step);
	batch->are_bytes = false;
	MU_TRY(mu_input_fill(in, in->thread, &run, batch, in->marks));
	if (!in->groups) /* with groups all records are in memory: none is bad */
		mu_input_leave_out(in, batch, in->marks, &in->n_bad);
out:
	return st;
}
