/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readers, partition and order. The records of a step depend only on seed, epoch, step and worker.
 */
#include <muster/input.h>

#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/stat.h>

#include "pipeline.h"
#include "cache.h"
#include "reader.h"
#include "storage/rows/rows.h"

enum { LIST_BYTES = 256, FILES_BYTES = 1024 };

static const struct mu_reader *const readers[] = {
	&mu_reader_arrays,
	&mu_reader_cifar,
	&mu_reader_idx,
	&mu_reader_records,
	&mu_reader_synthetic,
	&mu_reader_text,
	&mu_reader_tokens,
};

enum { NUM_READERS = sizeof readers / sizeof *readers };

enum mu_status mu_input_reader(const char *name, const struct mu_reader **out)
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

const struct mu_reader *mu_input_reader_at(size_t i)
{
	return i < NUM_READERS ? readers[i] : NULL;
}

/* "cifar: data_batch_1.bin ...; idx: ..." */
static const char *list_files(char text[FILES_BYTES])
{
	int used = 0;

	for (int i = 0; i < NUM_READERS && used < FILES_BYTES; i++) {
		if (readers[i]->files)
			used += snprintf(text + used, FILES_BYTES - (size_t)used, "%s%s (%s)",
					 used ? "; " : "", readers[i]->files, readers[i]->name);
	}
	return text;
}

static const char *advise(const char *dir, const char *name)
{
	char path[4096];

	return snprintf(path, sizeof path, "%s/%s", dir, name) < (int)sizeof path
		       ? mu_rows_advice(path)
		       : "";
}

/* What a folder without data files has instead: the end of a message. */
static const char *find_others(const char *dir)
{
	DIR *d = opendir(dir);
	const char *advice = "";
	bool folder = false;

	for (const struct dirent *entry; d && !folder && (entry = readdir(d));) {
		struct stat status;

		if (entry->d_name[0] == '.' || fstatat(dirfd(d), entry->d_name, &status, 0) != 0)
			continue;
		folder = S_ISDIR(status.st_mode);
		if (folder)
			advice = "; a folder of images for each class is for data train";
		else if (!*advice)
			advice = advise(dir, entry->d_name);
	}
	if (d)
		closedir(d);
	return advice;
}

enum mu_status mu_input_detect(const char *dir, const struct mu_reader **reader)
{
	enum mu_status st = MU_OK;
	char list[FILES_BYTES], found[FILES_BYTES], all[2 * FILES_BYTES] = "";
	size_t n = 0, used = 0;
	struct stat status;

	*reader = NULL;
	if (stat(dir, &status) != 0)
		MU_FAIL(MU_ERR_IO, "%s: cannot be read: %s; it must be a folder with %s", dir,
			strerror(errno), list_files(list));
	if (!S_ISDIR(status.st_mode))
		MU_FAIL(MU_ERR_IO, "%s: is not a folder; it must be one with %s%s", dir,
			list_files(list), mu_rows_advice(dir));
	for (int i = 0; i < NUM_READERS; i++) {
		size_t sets = readers[i]->find ? readers[i]->find(dir, found, sizeof found) : 0;

		if (sets == 0)
			continue;
		*reader = readers[i];
		if (used < sizeof all)
			used += (size_t)snprintf(all + used, sizeof all - used, "%s%s",
						 n ? ", " : "", found);
		n += sets;
	}
	if (n == 0)
		MU_FAIL(MU_ERR_IO, "%s: holds no data files; looked for %s%s", dir,
			list_files(list), find_others(dir));
	if (n > 1)
		MU_FAIL(MU_ERR_USAGE,
			"%s: holds %zu data sets (%s), and only one is allowed; looked for %s",
			dir, n, all, list_files(list));
out:
	return st;
}

static enum mu_status check_config(const struct mu_input *in)
{
	enum mu_status st = MU_OK;
	const struct mu_input_config *c = &in->config;

	if (c->batch == 0)
		MU_FAIL(MU_ERR_ARGUMENT, "input: batch 0; it must be at least 1");
	if (c->classes == 0 && !in->ops->knows_classes)
		MU_FAIL(MU_ERR_ARGUMENT, "input: 0 classes; there must be at least 1");
	if (c->threads > 0 && c->prefetch == 0)
		MU_FAIL(MU_ERR_ARGUMENT, "input: threads without batches to prefetch");
	if (c->held_out > 0 && in->ops->files)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"input: %s files have a part for validation, and none can be held out",
			in->ops->name);
	if (c->label_width > 1 && in->ops->files)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"input: %s files have one label per sample, and %zu are asked for",
			in->ops->name, c->label_width);
	if (c->num_workers < 1 || c->worker < 0 || c->worker >= c->num_workers)
		MU_FAIL(MU_ERR_ARGUMENT,
			"input: worker %d of %d; it must be from 0 to one less than their number",
			c->worker, c->num_workers);
out:
	return st;
}

/* The reader must have found enough records for every worker. */
static enum mu_status check_records(const struct mu_input *in)
{
	enum mu_status st = MU_OK;
	const struct mu_input_config *c = &in->config;
	size_t workers = (size_t)c->num_workers;

	if (in->n == 0)
		MU_FAIL(MU_ERR_FORMAT, "%s input: there are no records in %s", in->ops->name,
			c->dir	   ? c->dir
			: c->paths ? c->paths
				   : "it");
	if (in->n > UINT32_MAX)
		MU_FAIL(MU_ERR_UNSUPPORTED, "%s input: %zu records; at most %lu are possible",
			in->ops->name, in->n, (unsigned long)UINT32_MAX);
	if (c->part == MU_INPUT_VALIDATE || c->any_size || c->batch <= in->n / workers)
		goto out;
	if (in->n < workers)
		MU_FAIL(MU_ERR_USAGE, "%zu training record%s too few for %zu worker%s", in->n,
			in->n == 1 ? " is" : "s are", workers, MU_S(workers));
	MU_FAIL(MU_ERR_USAGE,
		"batch size %zu: batch larger than a worker's part of %zu training record%s "
		"over %zu worker%s; the largest possible is %zu",
		c->batch, in->n, MU_S(in->n), workers, MU_S(workers),
		in->n / workers);
out:
	return st;
}

static enum mu_status copy_settings(struct mu_input *in)
{
	enum mu_status st = MU_OK;
	const size_t nbytes = in->ops->settings_nbytes;

	if (nbytes == 0)
		goto out;
	MU_TRY(mu_alloc(&in->settings, nbytes, "settings of the reader"));
	if (in->config.settings)
		memcpy(in->settings, in->config.settings, nbytes);
	in->config.settings = in->settings;
out:
	return st;
}

enum mu_status mu_input_open(struct mu_input *in, const struct mu_input_config *config)
{
	enum mu_status st = MU_OK;

	*in = (struct mu_input){.config = *config};
	if (in->config.label_width == 0)
		in->config.label_width = 1;
	MU_TRY(mu_input_reader(config->reader, &in->ops));
	MU_TRY(check_config(in));
	MU_TRY(copy_settings(in));
	MU_TRY(MU_ALLOC(in->thread, 1, "input"));
	MU_TRY(in->ops->open(in));
	if (mu_input_has_bytes(in) && !config->bytes)
		in->fields[0].number = MU_NUMBER_FLOAT32;
	if (config->held_out > 0)
		MU_TRY(mu_input_hold_out(in));
	if (config->num_examples && config->num_examples < in->n)
		in->n = config->num_examples;
	MU_TRY(check_records(in));
	for (size_t g = 0; g < (in->groups ? in->n_groups : 1); g++)
		in->steps += mu_input_group_steps(in, g);
	if (config->shuffle)
		MU_TRY(MU_ALLOC(in->order, in->n, "order of the training records"));
	if (config->shuffle && in->groups)
		MU_TRY(MU_ALLOC(in->step_order, in->steps, "order of the steps"));
	mu_input_order(in, 0);
	MU_TRY(MU_ALLOC(in->marks, config->batch, "marks of samples"));
	if (config->threads > 0 && in->ops->threads && !in->about.in_memory)
		MU_TRY(mu_pipeline_new(&in->pipeline, in));
out:
	if (st != MU_OK)
		mu_input_close(in);
	return st;
}

void mu_input_close(struct mu_input *in)
{
	mu_pipeline_free(in->pipeline);
	if (in->ops)
		in->ops->close(in);
	if (in->thread)
		mu_input_thread_release(in->thread);
	mu_free(in->thread);
	mu_free(in->settings);
	mu_free(in->marks);
	mu_free(in->records);
	mu_free(in->order);
	mu_free(in->step_order);
	*in = (struct mu_input){0};
}

enum mu_status mu_input_cache(struct mu_input *in, const struct mu_topology *t, size_t *bytes)
{
	enum mu_status st = MU_OK, possible = MU_OK;
	struct mu_cache *none;

	*bytes = 0;
	if (in && !in->ops->cache)
		possible = mu_trace_start(
			MU_ERR_USAGE, __FILE__, __LINE__,
			"the cache is for .rec, .tar and .h5 files and for folders of images, not "
			"for %s data",
			in->ops->name);
	MU_TRY(mu_agree(possible, t->node));
	if (in)
		MU_TRY(in->ops->cache(in, t, bytes));
	else
		MU_TRY(mu_cache_open(&none, NULL, 0, t, bytes));
out:
	return st;
}
