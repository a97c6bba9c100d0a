/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --load: parameters and running statistics of a file, for a new run. Arrays are matched by name
 * and must have the same shape; anything else in the file is ignored.
 */
#include "contents.h"

#include <string.h>

#include <muster/checkpoint.h>

/* A list of names; names beyond its size are only counted. */
struct names {
	size_t n, omitted, used;
	char text[600];
};

struct load {
	const struct mu_plan *plan;
	const char *path;
	struct mu_array_file *file;
	bool *fits; /* by key */
	bool *seen; /* by key: it is in the file, of any shape */
	struct names missing, shapes, unknown;
	bool other; /* what does not fit has another cure than these options */
	char cures[200];
};

/* Of a transformer of text: an option by which an array of the file fits. */
static void note_cure(struct load *l, const char *option, size_t value)
{
	const size_t used = strlen(l->cures);
	char cure[64];

	snprintf(cure, sizeof cure, "--%s %zu", option, value);
	if (!strstr(l->cures, cure))
		snprintf(l->cures + used, sizeof l->cures - used, "%s%s", used ? " and " : "",
			 cure);
}

static void cure_shape(struct load *l, const char *name, int ndims, const size_t *dims,
		       const struct mu_shape *shape)
{
	const bool rows = ndims > 1 && ndims == shape->ndims && dims[1] == shape->dims[1];

	if (rows && strcmp(name, "arg/wpe_weight") == 0)
		note_cure(l, "num-positions", dims[0]);
	else if (rows && (strcmp(name, "arg/wte_weight") == 0 ||
			  strcmp(name, "arg/head_weight") == 0))
		note_cure(l, "num-classes", dims[0]);
	else
		l->other = true;
}

static void cure_absence(struct load *l, const char *name, bool in_file)
{
	if (strcmp(name, "arg/head_weight") == 0)
		note_cure(l, "tie-weights", in_file ? 0 : 1);
	else
		l->other = true;
}

static void add_name(struct names *names, const char *name)
{
	const size_t room = sizeof names->text - names->used;
	const int n = snprintf(names->text + names->used, room, "%s%s", names->n ? ", " : "", name);

	names->n++;
	if ((size_t)n < room) {
		names->used += (size_t)n;
		return;
	}
	names->text[names->used] = '\0';
	names->omitted++;
}

static void dims_text(int ndims, const size_t *dims, char *text, size_t nbytes)
{
	size_t used = (size_t)snprintf(text, nbytes, "(");

	for (int i = 0; i < ndims && used < nbytes; i++)
		used += (size_t)snprintf(text + used, nbytes - used, "%s%zu", i ? ", " : "",
					 dims[i]);
	if (used < nbytes)
		snprintf(text + used, nbytes - used, ")");
}

static void key_name(const struct mu_plan *plan, size_t key, char name[CHECKPOINT_NAME])
{
	size_t n;
	const struct mu_slice *slice = &mu_plan_slices(plan, &n)[key];

	mu_checkpoint_weights_name(slice, name, CHECKPOINT_NAME);
}

/* Finds the key of an array of the file. */
static enum mu_status match(void *context, const char *name, int ndims, const size_t *dims)
{
	struct load *l = context;
	char wanted[CHECKPOINT_NAME], text[2 * CHECKPOINT_NAME], found[200], expected[200];
	size_t n_slices;

	if (strncmp(name, "arg/", 4) != 0 && strncmp(name, "aux/", 4) != 0)
		return MU_OK;
	mu_plan_slices(l->plan, &n_slices);
	for (size_t k = 0; k < n_slices; k++) {
		const struct mu_shape *shape = mu_plan_slice_shape(l->plan, k);

		key_name(l->plan, k, wanted);
		if (strcmp(wanted, name) != 0)
			continue;
		l->seen[k] = true;
		l->fits[k] = ndims == shape->ndims &&
			     memcmp(dims, shape->dims, (size_t)ndims * sizeof *dims) == 0;
		if (l->fits[k])
			return MU_OK;
		dims_text(ndims, dims, found, sizeof found);
		dims_text(shape->ndims, shape->dims, expected, sizeof expected);
		snprintf(text, sizeof text, "%s %s, not %s", name, found, expected);
		add_name(&l->shapes, text);
		cure_shape(l, name, ndims, dims, shape);
		return MU_OK;
	}
	add_name(&l->unknown, name);
	cure_absence(l, name, true);
	return MU_OK;
}

/* Appends "; of another shape: ..." to text. */
static void describe(const char *what, const struct names *names, char *text, size_t nbytes)
{
	const size_t n = strlen(text);

	if (names->n == 0)
		return;
	snprintf(text + n, nbytes - n, "; %s: %s", what, names->text);
	if (names->omitted > 0)
		snprintf(text + strlen(text), nbytes - strlen(text), " and %zu more",
			 names->omitted);
}

static enum mu_status check_fit(struct load *l, bool skip_mismatch, bool acts)
{
	enum mu_status st = MU_OK;
	char text[2048] = "", name[CHECKPOINT_NAME];
	size_t n_slices, fit = 0;

	mu_plan_slices(l->plan, &n_slices);
	for (size_t k = 0; k < n_slices; k++) {
		fit += l->fits[k];
		if (l->seen[k])
			continue;
		key_name(l->plan, k, name);
		add_name(&l->missing, name);
		cure_absence(l, name, false);
	}
	describe("of another shape", &l->shapes, text, sizeof text);
	describe("not in the file", &l->missing, text, sizeof text);
	describe("not in the network", &l->unknown, text, sizeof text);
	if (fit == 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: none of its arrays fits the network%s", l->path, text);
	if (*text && !skip_mismatch)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: it does not fit the network%s; %s", l->path, text,
			l->other ? "--skip-mismatch takes what fits" : l->cures);
	if (*text)
		mu_log_warn("%s: %zu of %zu arrays are taken%s", l->path, fit, n_slices, text);
	else if (skip_mismatch && !acts)
		mu_log_warn("--skip-mismatch has no effect: all arrays of %s fit", l->path);
out:
	return st;
}

static enum mu_status read_keys(const struct load *l, float *flat)
{
	enum mu_status st = MU_OK;
	size_t n_slices;
	char name[CHECKPOINT_NAME];
	float *plain = NULL;

	mu_plan_slices(l->plan, &n_slices);
	MU_TRY(mu_checkpoint_plain_buffer(l->plan, &plain));
	for (size_t k = 0; k < n_slices; k++) {
		const struct mu_shape *shape = mu_plan_slice_shape(l->plan, k);

		if (!l->fits[k])
			continue;
		key_name(l->plan, k, name);
		MU_TRY(mu_array_file_read(l->file, name, shape->ndims, shape->dims, plain));
		MU_TRY(mu_plan_slice_from_plain(l->plan, k, plain, flat));
	}
out:
	mu_free(plain);
	return st;
}

/* acts: --skip-mismatch has had an effect already. */
static enum mu_status load_weights(const struct mu_plan *plan, const char *path,
				   bool skip_mismatch, bool acts, float *flat)
{
	enum mu_status st = MU_OK;
	struct load *l = NULL;
	size_t n_slices;

	mu_plan_slices(plan, &n_slices);
	MU_TRY(MU_ALLOC(l, 1, "loading of weights"));
	l->plan = plan;
	l->path = path;
	MU_TRY(mu_array_file_open_checked(&l->file, path));
	MU_TRY(MU_ALLOC(l->fits, n_slices + 1, "keys of a file"));
	MU_TRY(MU_ALLOC(l->seen, n_slices + 1, "keys of a file"));
	MU_TRY(mu_array_file_each(l->file, match, l));
	MU_TRY(check_fit(l, skip_mismatch, acts));
	MU_TRY(read_keys(l, flat));
out:
	if (l) {
		mu_array_file_close(l->file, false);
		mu_free(l->seen);
		mu_free(l->fits);
	}
	mu_free(l);
	return st;
}

enum mu_status mu_load_weights(const struct mu_plan *plan, const char *path, bool skip_mismatch,
			       float *flat)
{
	return load_weights(plan, path, skip_mismatch, false, flat);
}

/* *other: --skip-mismatch goes on with other classes. */
static enum mu_status check_classes(const struct mu_engine *e, const char *path, bool *other)
{
	enum mu_status st = MU_OK;
	const struct conf *v = e->conf;
	struct mu_array_file *file = NULL;

	MU_TRY(mu_array_file_open_checked(&file, path));
	st = mu_checkpoint_classes_check(
		e, file, path,
		v->evaluate ? "; rename the folders, or the classes in config.json"
			    : "; --skip-mismatch trains on other classes");
	*other = st == MU_ERR_USAGE && v->skip_mismatch;
	if (!*other)
		MU_TRY(st);
	mu_trace_clear();
	st = MU_OK;
	if (*other)
		mu_log_warn("%s names other classes than the data, whose names are taken: class i "
			    "of the file is class i of the data",
			    path);
out:
	mu_array_file_close(file, false);
	return st;
}

/* Training may go over to another one. */
static enum mu_status check_tokenizer(const struct mu_engine *e, const char *path)
{
	enum mu_status st = MU_OK;
	const struct conf *v = e->conf;
	const char *data = v->data_train ? v->data_train : v->data_val ? v->data_val : v->data_dir;
	bool same;

	MU_TRY(mu_checkpoint_tokenizer_compare(path, e->train->about.tokenizer, &same));
	if (!same && v->evaluate)
		MU_FAIL(MU_ERR_USAGE,
			"%s was trained on the tokens of another tokenizer than those of %s", path,
			data);
	if (!same)
		mu_log_warn("%s was trained on the tokens of another tokenizer than those of %s",
			    path, data);
out:
	return st;
}

enum mu_status mu_checkpoint_load_weights(const struct mu_engine *e)
{
	enum mu_status st = MU_OK;
	const struct conf *v = e->conf;
	bool other;

	MU_TRY(check_classes(e, v->load, &other));
	MU_TRY(mu_checkpoint_columns_check(e, v->load));
	MU_TRY(mu_checkpoint_shape_tell(e, v->load));
	if (e->train->about.tokenizer)
		MU_TRY(check_tokenizer(e, v->load));
	MU_TRY(load_weights(e->plan, v->load, v->skip_mismatch, other, mu_kv_weights(e->kv)));
	mu_log_info("Loaded parameters of %s", v->load);
out:
	return st;
}
