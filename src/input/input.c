/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Partition, shuffle and batch. Which records a step takes is a function of seed, epoch, step and
 * worker alone.
 */
#include <muster/input.h>

#include <string.h>

#include "reader.h"

enum { LIST_BYTES = 256 };

static const struct mu_reader *const readers[] = {
	&mu_reader_idx,
	&mu_reader_synthetic,
};

enum { NUM_READERS = sizeof readers / sizeof *readers };

static enum mu_status find_reader(const char *name, const struct mu_reader **out)
{
	enum mu_status st = MU_OK;
	char list[LIST_BYTES] = "";
	size_t used = 0;

	*out = NULL;
	for (int i = 0; i < NUM_READERS && used < sizeof list; i++) {
		if (strcmp(readers[i]->name, name) == 0)
			*out = readers[i];
		used += (size_t)snprintf(list + used, sizeof list - used, "%s%s", i ? ", " : "",
					 readers[i]->name);
	}
	if (!*out)
		MU_FAIL(MU_ERR_USAGE, "unknown reader \"%s\"; choose one of: %s", name, list);
out:
	return st;
}

static enum mu_status check_config(const struct mu_input_config *c)
{
	enum mu_status st = MU_OK;

	if (c->batch == 0 || c->classes == 0)
		MU_FAIL(MU_ERR_ARGUMENT,
			"input: batch %zu and %zu classes; both must be at least 1", c->batch,
			c->classes);
	if (c->num_workers < 1 || c->worker < 0 || c->worker >= c->num_workers)
		MU_FAIL(MU_ERR_ARGUMENT,
			"input: worker %d of %d; it must be from 0 to one less than their number",
			c->worker, c->num_workers);
out:
	return st;
}

/* What the reader found must be enough for every worker. */
static enum mu_status check_records(const struct mu_input *in)
{
	enum mu_status st = MU_OK;
	const struct mu_input_config *c = &in->config;
	size_t workers = (size_t)c->num_workers;

	if (in->n == 0)
		MU_FAIL(MU_ERR_FORMAT, "%s input: there are no records", in->ops->name);
	if (in->n > UINT32_MAX)
		MU_FAIL(MU_ERR_UNSUPPORTED, "%s input: %zu records; at most %lu are possible",
			in->ops->name, in->n, (unsigned long)UINT32_MAX);
	if (c->part == MU_INPUT_VALIDATE || c->batch <= in->n / workers)
		goto out;
	if (in->n < workers)
		MU_FAIL(MU_ERR_USAGE, "%zu training records are too few for %zu workers", in->n,
			workers);
	MU_FAIL(MU_ERR_USAGE,
		"batch larger than a worker's part: %zu training records over %zu workers; "
		"a batch of %zu for each worker "
		"was asked for, the largest possible is %zu",
		in->n, workers, c->batch, in->n / workers);
out:
	return st;
}

enum mu_status mu_input_open(struct mu_input *in, const struct mu_input_config *config)
{
	enum mu_status st = MU_OK;
	size_t all;

	*in = (struct mu_input){.config = *config};
	if (in->config.label_width == 0)
		in->config.label_width = 1;
	MU_TRY(check_config(config));
	MU_TRY(find_reader(config->reader, &in->ops));
	MU_TRY(in->ops->open(in));
	if (config->num_examples && config->num_examples < in->n)
		in->n = config->num_examples;
	MU_TRY(check_records(in));
	all = (size_t)config->num_workers * config->batch;
	in->steps = (in->n + all - 1) / all;
	if (config->shuffle)
		MU_TRY(MU_ALLOC(in->order, in->n, "order of the training records"));
	mu_input_epoch(in, 0);
out:
	if (st != MU_OK)
		mu_input_close(in);
	return st;
}

void mu_input_close(struct mu_input *in)
{
	if (in->ops)
		in->ops->close(in);
	mu_free(in->order);
	*in = (struct mu_input){0};
}

void mu_input_epoch(struct mu_input *in, uint32_t epoch)
{
	struct mu_random key = {
		.seed = in->config.seed, .purpose = MU_RANDOM_SHUFFLE, .epoch = epoch};

	in->epoch = epoch;
	if (in->order)
		mu_random_permutation(&key, in->order, in->n);
}

/*
 * The run of this worker in a step: *first is its place in the epoch's order. With m samples in the
 * step, worker r of N has [m r / N, m (r + 1) / N); in a full step, m = N b, that is the r-th run
 * of b.
 */
static size_t find_run(const struct mu_input *in, size_t step, size_t *first)
{
	size_t worker = (size_t)in->config.worker, workers = (size_t)in->config.num_workers;
	size_t all = workers * in->config.batch;
	size_t start = step * all, m, from;

	*first = 0;
	if (step >= in->steps)
		return 0;
	m = in->n - start < all ? in->n - start : all;
	from = m * worker / workers;
	*first = start + from;
	return m * (worker + 1) / workers - from;
}

size_t mu_input_count(const struct mu_input *in, size_t step)
{
	size_t first;

	return find_run(in, step, &first);
}

size_t mu_input_read(struct mu_input *in, size_t step, float *data, float *labels, uint32_t *ids)
{
	size_t sample = in->shape[0] * in->shape[1] * in->shape[2];
	size_t first, count = find_run(in, step, &first);

	for (size_t i = 0; i < count; i++) {
		ids[i] = in->order ? in->order[first + i] : (uint32_t)(first + i);
		in->ops->read(in, ids[i], data + i * sample, labels + i * in->config.label_width);
	}
	return count;
}
