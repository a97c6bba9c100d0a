/* SPDX-License-Identifier: Apache-2.0 */
/* The devices of a worker and the part of its batch that each has: --devices, --gpus and
 * --work-load-list. */
#include "engine/engine.h"

#include <stdlib.h>
#include <string.h>

#include <muster/base.h>

enum { MAX_LOAD = 1000000, WORD_BYTES = 64 };

_Static_assert((int)CONF_MAX_STAGES == (int)MU_MAX_STAGES, "limits of the options");

/* The next word of a list with commas; false after the last. Long words are truncated. */
static bool next_word(const char **text, char word[WORD_BYTES])
{
	size_t n;

	if (!*text)
		return false;
	n = strcspn(*text, ",");
	snprintf(word, WORD_BYTES, "%.*s", (int)n, *text);
	*text = (*text)[n] ? *text + n + 1 : NULL;
	return true;
}

const char *mu_engine_device_name(const struct engine_device_list *list, size_t i, char *text,
				  size_t nbytes)
{
	snprintf(text, nbytes, "%s:%d", list->kind->name, list->indices[i]);
	return text;
}

/* Append a device. */
static enum mu_status add_device(struct engine_device_list *list, const char *word, const char *all)
{
	enum mu_status st = MU_OK;
	struct mu_device device;

	if (list->n == TRAIN_MAX_DEVICES)
		MU_FAIL(MU_ERR_USAGE, "--devices: more than %d devices", TRAIN_MAX_DEVICES);
	MU_TRY(mu_device_find(&device, word));
	if (list->n > 0 && device.ops != list->kind)
		MU_FAIL(MU_ERR_USAGE,
			"--devices %s: %s and %s are of two kinds; the devices of a worker share "
			"its weights, so all must be of one kind",
			all, list->kind->name, device.ops->name);
	for (size_t i = 0; i < list->n; i++)
		if (list->indices[i] == device.index)
			MU_FAIL(MU_ERR_USAGE, "--devices %s: %s:%d is named twice", all,
				device.ops->name, device.index);
	list->kind = device.ops;
	list->indices[list->n++] = device.index;
out:
	return st;
}

/* "cpu:0,cpu:1", "gpu:0,2" */
static enum mu_status read_devices(struct engine_device_list *list, const char *all)
{
	enum mu_status st = MU_OK;
	const char *rest = all;
	char word[WORD_BYTES], name[WORD_BYTES + 16];

	if (!all) {
		list->kind = mu_device_table[0];
		list->n = 1;
		goto out;
	}
	while (next_word(&rest, word)) {
		if (list->n > 0 && *word && word[strspn(word, "0123456789")] == '\0')
			snprintf(name, sizeof name, "%s:%s", list->kind->name, word);
		else
			snprintf(name, sizeof name, "%s", word);
		MU_TRY(add_device(list, name, all));
	}
out:
	return st;
}

/* --gpus: numbers, or "auto". */
static enum mu_status read_gpus(struct engine_device_list *list, const char *gpus)
{
	enum mu_status st = MU_OK;
	const char *rest = gpus;
	char word[WORD_BYTES], name[WORD_BYTES + 8];

	for (size_t i = 0; mu_device_table[i]; i++)
		if (strcmp(mu_device_table[i]->name, "gpu") == 0)
			list->kind = mu_device_table[i];
	if (!list->kind)
		MU_FAIL(MU_ERR_USAGE,
			"--gpus %s: this build has no device gpu, because configure found no "
			"CUDA; without --gpus the CPU trains",
			gpus);
	list->automatic = strcmp(gpus, "auto") == 0;
	if (list->automatic) {
		list->n = 1;
		goto out;
	}
	while (next_word(&rest, word)) {
		if (*word == '\0' || word[strspn(word, "0123456789")] != '\0')
			MU_FAIL(MU_ERR_USAGE,
				"--gpus %s: \"%s\" is not a number; a list such as 0,2 or the word "
				"auto is needed",
				gpus, word);
		snprintf(name, sizeof name, "gpu:%s", word);
		MU_TRY(add_device(list, name, gpus));
	}
out:
	return st;
}

/* ---- devices that have layers of the network ---- */

static enum mu_status find_place(const struct engine_device_list *list, const char *name,
				 size_t *place)
{
	enum mu_status st = MU_OK;
	struct mu_device device;

	MU_TRY(mu_device_find(&device, name));
	for (*place = 0; *place < list->n; ++*place)
		if (list->kind == device.ops && list->indices[*place] == device.index)
			goto out;
	MU_FAIL(MU_ERR_USAGE, "--model-parallel: %s is not one of --devices", name);
out:
	return st;
}

/* Read a list of --model-parallel; devices are numbered as in the list of devices. */
static enum mu_status read_groups(const struct engine_device_list *list, const char *text,
				  struct mu_group_map *map)
{
	enum mu_status st = MU_OK;
	size_t places[MU_MAX_STAGES];

	MU_TRY(mu_group_map_read(map, text, false));
	for (size_t d = 0; d < map->n_devices; d++)
		MU_TRY(find_place(list, map->devices[d], &places[d]));
	for (size_t i = 0; i < map->n; i++)
		map->of[i].device = places[map->of[i].device];
out:
	return st;
}

static enum mu_status check_groups(const struct engine_device_list *list, const char *text)
{
	enum mu_status st = MU_OK;
	struct mu_group_map map;
	char name[WORD_BYTES];
	bool used[TRAIN_MAX_DEVICES] = {false};

	MU_TRY(read_groups(list, text, &map));
	for (size_t i = 0; i < map.n; i++)
		used[map.of[i].device] = true;
	for (size_t d = 0; d < list->n; d++)
		if (!used[d])
			MU_FAIL(MU_ERR_USAGE,
				"--devices: %s has no group in --model-parallel %s",
				mu_engine_device_name(list, d, name, sizeof name), text);
out:
	return st;
}

static enum mu_status check_split(const struct engine_device_list *list, const struct conf *v)
{
	enum mu_status st = MU_OK;

	if (v->group2rank && list->n > 1)
		MU_FAIL(MU_ERR_USAGE,
			"--model-parallel-ranks %s with %zu devices: each rank of it has one "
			"device; --model-parallel-ranks N with --model-parallel cuts over several",
			v->group2rank, list->n);
	if (v->model_parallel && (size_t)v->model_parallel != list->n)
		MU_FAIL(MU_ERR_USAGE,
			"--model-parallel %ld with %zu devices: one for each part is needed",
			v->model_parallel, list->n);
	if (!v->model_parallel && !v->group2dev && list->n > 1)
		MU_FAIL(MU_ERR_USAGE,
			"--%s: the %zu devices share the samples; with --model-parallel %zu they "
			"share the layers",
			list->ranks > 1 ? "model-parallel-ranks"
			: v->time_block ? "time-block"
					: "micro-batches",
			list->n, list->n);
	if (v->group2dev)
		MU_TRY(check_groups(list, v->group2dev));
out:
	return st;
}

/* Without --devices: the devices of its list, or --model-parallel devices of the first kind. */
static enum mu_status name_devices(struct engine_device_list *list, const struct conf *v)
{
	enum mu_status st = MU_OK;
	struct mu_group_map map = {.n_devices = 0};
	char name[WORD_BYTES];

	if (v->group2dev)
		MU_TRY(mu_group_map_read(&map, v->group2dev, false));
	for (size_t d = 0; d < map.n_devices; d++)
		MU_TRY(add_device(list, map.devices[d], v->group2dev));
	for (long d = 0; !v->group2dev && d < v->model_parallel; d++) {
		snprintf(name, sizeof name, "%s:%ld", mu_device_table[0]->name, d);
		MU_TRY(add_device(list, name, name));
	}
out:
	return st;
}

enum mu_status mu_engine_device_stages(const struct engine_device_list *list, const struct conf *v,
				       const struct mu_plan *plan, struct mu_stages *stages)
{
	enum mu_status st = MU_OK;
	struct mu_group_map map;

	if (v->group2rank) {
		MU_TRY(mu_engine_team_stages(v, plan, stages));
		goto out;
	}
	if (!v->group2dev) {
		st = (v->time_block > 0 ? mu_stages_of_blocks
					: mu_stages_balanced)(stages, plan, list->n * list->ranks);
		if (st != MU_OK)
			mu_trace_prefix(list->ranks > 1 ? "--model-parallel-ranks %zu: "
							: "--model-parallel %zu: ",
					list->ranks > 1 ? list->ranks : list->n);
		goto out;
	}
	MU_TRY(read_groups(list, v->group2dev, &map));
	MU_TRY(mu_stages_of_groups(stages, plan, &map));
out:
	return st;
}

size_t mu_engine_device_shares(const struct engine_device_list *list)
{
	return list->split ? 1 : list->n;
}

/* ---- devices that have samples ---- */

static enum mu_status read_load(size_t *load, const char *word, const char *all)
{
	enum mu_status st = MU_OK;
	size_t digits = strspn(word, "0123456789");
	long value = strtol(word, NULL, 10);

	if (digits == 0 || word[digits] != '\0' || value < 1 || value > MAX_LOAD)
		MU_FAIL(MU_ERR_USAGE,
			"--work-load-list %s: \"%s\" is no whole number from 1 to %d; with 3,1 "
			"the first device has three quarters of each batch",
			all, word, MAX_LOAD);
	*load = (size_t)value;
out:
	return st;
}

static enum mu_status read_loads(struct engine_device_list *list, const char *all)
{
	enum mu_status st = MU_OK;
	const char *rest = all;
	char word[WORD_BYTES];
	size_t n = 0, load = 1, first = 1;

	for (size_t i = 0; !all && i < list->n; i++)
		list->ends[i] = i + 1;
	while (next_word(&rest, word)) {
		MU_TRY(read_load(&load, word, all));
		if (n == 0)
			first = load;
		list->unequal |= load != first;
		if (n < list->n)
			list->ends[n] = (n > 0 ? list->ends[n - 1] : 0) + load;
		n++;
	}
	if (all && n != list->n)
		MU_FAIL(MU_ERR_USAGE,
			"--work-load-list %s has %zu number%s, and --devices names %zu device%s: "
			"one for each is needed",
			all, n, MU_S(n), list->n, MU_S(list->n));
out:
	return st;
}

enum mu_status mu_engine_device_list_read(struct engine_device_list *list, const struct conf *v)
{
	enum mu_status st = MU_OK;

	*list = (struct engine_device_list){.n = 0};
	MU_TRY(mu_engine_team_size(v, &list->ranks));
	list->split = v->facts.split;
	if (v->gpus && *v->gpus)
		MU_TRY(read_gpus(list, v->gpus));
	else if (v->devices && strcmp(v->devices, "gpu:auto") == 0)
		MU_TRY(read_gpus(list, "auto"));
	else if ((v->group2dev || v->model_parallel) && !v->devices)
		MU_TRY(name_devices(list, v));
	else
		MU_TRY(read_devices(list, v->devices));
	if (list->split)
		MU_TRY(check_split(list, v));
	MU_TRY(read_loads(list, v->work_load_list));
	if (list->unequal && v->batch_per_device)
		MU_FAIL(MU_ERR_USAGE,
			"--batch-per-device %ld with --work-load-list %s: the devices have "
			"different numbers of samples; use --batch-size, of a worker",
			v->batch_per_device, v->work_load_list);
out:
	return st;
}

void mu_engine_device_list_place(struct engine_device_list *list, int node_worker)
{
	char why[256];
	const int n = list->automatic ? list->kind->count(why, sizeof why) : 0;

	if (n > 0)
		list->indices[0] = node_worker % n;
}

size_t mu_engine_device_first(const struct engine_device_list *list, size_t i, size_t count)
{
	return i > 0 ? count * list->ends[i - 1] / list->ends[list->n - 1] : 0;
}

size_t mu_engine_device_batch(const struct engine_device_list *list, const struct conf *v,
			      size_t batch)
{
	return list->split ? batch / (size_t)v->micro_batches
			   : mu_engine_device_first(list, 1, batch);
}

const char *mu_engine_device_batches(const struct engine_device_list *list, size_t batch,
				     char *text, size_t nbytes)
{
	size_t n = mu_engine_device_shares(list), used = 0, of[TRAIN_MAX_DEVICES];
	bool same = true;

	for (size_t i = 0; i < n; i++) {
		of[i] = list->split ? batch
				    : mu_engine_device_first(list, i + 1, batch) -
					      mu_engine_device_first(list, i, batch);
		same &= of[i] == of[0];
	}
	for (size_t i = 0; i < (same ? 1 : n) && used < nbytes; i++)
		used += (size_t)snprintf(text + used, nbytes - used, "%s%zu", i ? "," : "", of[i]);
	return text;
}

enum mu_status mu_engine_device_list_check(const struct engine_device_list *list,
					   const struct conf *v, size_t batch)
{
	enum mu_status st = MU_OK;
	char name[WORD_BYTES];

	if (v->shard_gradients && (list->n > 1 || list->kind->memory))
		MU_FAIL(MU_ERR_USAGE,
			"--shard-gradients 1 is for workers with one device, a CPU: %s",
			list->kind->memory ? "a GPU keeps all gradients of its own"
					   : "each further device has an array of all gradients");
	if (list->split) {
		if (batch % (size_t)v->micro_batches != 0)
			MU_FAIL(MU_ERR_USAGE,
				"--micro-batches %ld does not divide a worker's batch of %zu",
				v->micro_batches, batch);
		goto out;
	}
	for (size_t i = 0; i < list->n; i++)
		if (mu_engine_device_first(list, i, batch) ==
		    mu_engine_device_first(list, i + 1, batch))
			MU_FAIL(MU_ERR_USAGE,
				"a worker's batch of %zu over %zu devices leaves none for %s; a "
				"larger --batch-size is needed%s",
				batch, list->n, mu_engine_device_name(list, i, name, sizeof name),
				list->unequal ? ", or a --work-load-list less unequal" : "");
out:
	return st;
}

/* An error or, with --dtype-fallback, a warning if the device does not support --dtype. */
static enum mu_status set_dtype(struct mu_device *device, const struct conf *v)
{
	enum mu_status st = mu_device_set_dtype(device, v->dtype);
	char why[256];

	if (st != MU_ERR_UNSUPPORTED)
		return st;
	snprintf(why, sizeof why, "%s", mu_trace_message());
	mu_trace_clear();
	st = MU_OK;
	if (!v->dtype_fallback)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"--dtype %s: %s; --dtype-fallback 1 trains in float32 there",
			mu_dtype_name(v->dtype),
			why);
	mu_log_warn("--dtype %s: %s; this rank works in float32 (--dtype-fallback 1)",
		    mu_dtype_name(v->dtype),
		    why);
out:
	return st;
}

enum mu_status mu_engine_device_set(struct mu_device *device, const struct conf *v)
{
	enum mu_status st = MU_OK;

	if (v->conv_algo != CONF_CONV_TUNE)
		device->algorithm = (enum mu_convolution_algorithm)v->conv_algo;
	device->fused_attention = v->attention_algo == CONF_ATTENTION_FUSED;
	device->allow_tf32 = v->allow_tf32 && device->ops->has_tf32;
	if (v->dtype != MU_FLOAT32)
		MU_TRY(set_dtype(device, v));
out:
	return st;
}
