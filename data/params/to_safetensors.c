/* SPDX-License-Identifier: Apache-2.0 */
/* HDF5 to safetensors. */
#include "names.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_HEADS = 1000000 };

/* An array of the HDF5 file. */
struct item {
	char name[NAME_BYTES];
	int ndims;
	size_t dims[MU_PARAMS_NDIMS];
};

/* What an array of theirs is made of. */
struct origin {
	const struct item *item;
	enum name_how how;
	size_t part;
};

struct source {
	struct mu_array_file *file;
	const char *path;
	const struct name_family *family;
	bool detect, checkpoint; /* of a checkpoint its parameters alone */
	bool has_head;           /* beside it, transformers expects the prefix in all other names */
	struct part_rows rows;
	struct item *items;
	size_t n;
	struct mu_params_array *arrays; /* what is written, n_arrays of them, and what of */
	struct origin *origins;
	size_t n_arrays, at;
};

/* The shape of theirs. false: ours has another number of dimensions, or no such parts. */
static bool shape_to_theirs(const struct source *s, struct mu_params_array *array,
			    enum name_how how, size_t part)
{
	size_t *d = array->dims, first, n = mu_params_elements(array);

	if (how == NAME_BATCH) {
		if (array->ndims > 2)
			return false;
		d[2] = d[array->ndims - 1];
		d[1] = array->ndims == 2 ? d[0] : 1;
		d[0] = 1;
		array->ndims = 3;
		return true;
	}
	if (how != NAME_KEEP && array->ndims > 1 && n != d[0] * d[1])
		return false;
	if (how == NAME_PART && !name_part_rows(&s->rows, d[0], part, &first, &d[0]))
		return false;
	if (how == NAME_KEEP || (how == NAME_PART && array->ndims == 1))
		return true;
	if (array->ndims < 2)
		return false;
	array->ndims = 2;
	if (how == NAME_TRANSPOSE) {
		const size_t out_units = d[0];

		d[0] = d[1];
		d[1] = out_units;
	}
	return true;
}

/* The arrays of theirs that an item becomes. */
static enum mu_status set_arrays(struct source *s, const struct item *item)
{
	enum mu_status st = MU_OK;
	enum name_how how = NAME_KEEP;

	for (size_t part = 0; part == 0 || (how == NAME_PART && part < NAME_PARTS); part++) {
		struct mu_params_array *array = &s->arrays[s->n_arrays];

		array->ndims = item->ndims;
		memcpy(array->dims, item->dims, sizeof array->dims);
		snprintf(array->name, sizeof array->name, "%s", item->name);
		if (s->family && !name_to_theirs(s->family, item->name, part, array->name, &how))
			MU_FAIL(MU_ERR_UNSUPPORTED,
				"%s: array \"%s\" has no name among those of --names %s; --names "
				"plain keeps names",
				s->path, item->name, name_family_word(s->family));
		if (s->has_head && how != NAME_HEAD)
			name_add_prefix(s->family, array->name);
		if (!shape_to_theirs(s, array, how, part))
			MU_FAIL(MU_ERR_FORMAT, "%s: array \"%s\" has not the shape of its name",
				s->path, item->name);
		s->origins[s->n_arrays++] = (struct origin){item, how, part};
	}
out:
	return st;
}

static enum mu_status add_item(void *context, const char *name, int ndims, const size_t *dims)
{
	enum mu_status st = MU_OK;
	struct source *s = context;

	if (s->checkpoint && strncmp(name, "arg/", 4) != 0 && strncmp(name, "aux/", 4) != 0)
		goto out;
	if (ndims > MU_PARAMS_NDIMS || strlen(name) >= NAME_BYTES)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: array \"%.80s\" has %d dimensions: at most %d, and a name of at most "
			"%d "
			"letters, can be written",
			s->path, name, ndims, MU_PARAMS_NDIMS, NAME_BYTES - 1);
	if (s->items) {
		struct item *item = &s->items[s->n];

		snprintf(item->name, sizeof item->name, "%s", name);
		item->ndims = ndims;
		memcpy(item->dims, dims, (size_t)ndims * sizeof *dims);
	} else if (s->detect && !s->family) {
		s->family = name_family_of_ours(name);
	}
	s->n++;
out:
	return st;
}

/* The arrays are asked for in their order. */
static enum mu_status read_item(void *context, const struct mu_params_array *array, float *data)
{
	enum mu_status st = MU_OK;
	struct source *s = context;
	const struct origin *from = &s->origins[s->at++];
	const struct item *item = from->item;
	const size_t rows = array->dims[0], columns = array->dims[1]; /* of theirs */
	const size_t n = mu_params_elements(array);
	size_t all = 1, first = 0, n_rows;
	float *ours = NULL;

	if (from->how != NAME_TRANSPOSE && from->how != NAME_PART)
		return mu_array_file_read(s->file, item->name, item->ndims, item->dims, data);
	for (int i = 0; i < item->ndims; i++)
		all *= item->dims[i];
	MU_TRY(MU_ALLOC(ours, all + 1, "an array"));
	MU_TRY(mu_array_file_read(s->file, item->name, item->ndims, item->dims, ours));
	if (from->how == NAME_PART) {
		name_part_rows(&s->rows, item->dims[0], from->part, &first, &n_rows);
		memcpy(data, ours + first * (all / item->dims[0]), n * sizeof *data);
		goto out;
	}
	for (size_t i = 0; i < rows; i++)
		for (size_t j = 0; j < columns; j++)
			data[i * columns + j] = ours[j * rows + i];
out:
	mu_free(ours);
	return st;
}

/* By this name transformers looks for a model in a folder. */
static bool is_model_file(const char *path)
{
	const char *slash = strrchr(path, '/');

	return strcmp(slash ? slash + 1 : path, "model.safetensors") == 0;
}

static enum mu_status describe(struct source *s, const char *to, bool write)
{
	struct model_sizes sizes = {0};

	if (!is_model_file(to) || !s->family || !name_family_facts(s->family)->model)
		return MU_OK;
	for (size_t i = 0; i < s->n_arrays; i++)
		model_sizes_add(&sizes, s->family, &s->arrays[i]);
	return convert_describe(s->file, s->family, &sizes, to, write);
}

/* How queries, keys and values share their rows: thirds, or by the attributes of the model. */
static enum mu_status find_rows(struct source *s)
{
	enum mu_status st = MU_OK;
	char heads[32] = "", kv_heads[32] = "";

	s->rows = (struct part_rows){1, 1};
	if (!s->family || !name_family_facts(s->family)->grouped)
		goto out;
	MU_TRY(mu_array_file_find_text(s->file, "num-heads", heads, sizeof heads));
	MU_TRY(mu_array_file_find_text(s->file, "num-kv-heads", kv_heads, sizeof kv_heads));
	s->rows = (struct part_rows){strtoul(heads, NULL, 10), strtoul(kv_heads, NULL, 10)};
	if (s->rows.heads == 0 || s->rows.heads > MOST_HEADS || s->rows.kv_heads > MOST_HEADS)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: does not say how many heads of attention its model has (num-heads), "
			"and queries, keys and values cannot be told apart; --names plain keeps "
			"them together",
			s->path);
	if (s->rows.kv_heads == 0)
		s->rows.kv_heads = s->rows.heads;
out:
	return st;
}

enum mu_status convert_to_safetensors(const char *from, const char *to, struct name_choice names,
				      size_t *n)
{
	enum mu_status st = MU_OK;
	struct source s = {.path = from, .family = names.family, .detect = names.detect};

	MU_TRY(mu_array_file_open_checked(&s.file, from));
	MU_TRY(mu_array_file_has_text(s.file, "format", &s.checkpoint));
	MU_TRY(mu_array_file_each(s.file, add_item, &s));
	if (s.n == 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: holds no arrays of float32", from);
	if (!s.checkpoint)
		MU_TRY(convert_tell_others(s.file, from));
	*n = s.n;
	MU_TRY(MU_ALLOC(s.items, s.n, "table of arrays"));
	MU_TRY(MU_ALLOC(s.arrays, NAME_PARTS * s.n, "table of arrays"));
	MU_TRY(MU_ALLOC(s.origins, NAME_PARTS * s.n, "table of arrays"));
	s.n = 0;
	MU_TRY(mu_array_file_each(s.file, add_item, &s));
	for (size_t i = 0; s.family && i < s.n; i++) {
		char theirs[NAME_BYTES];
		enum name_how how;

		s.has_head |= name_to_theirs(s.family, s.items[i].name, 0, theirs, &how) &&
			      how == NAME_HEAD;
	}
	MU_TRY(find_rows(&s));
	for (size_t i = 0; i < s.n; i++)
		MU_TRY(set_arrays(&s, &s.items[i]));
	MU_TRY(describe(&s, to, false));
	MU_TRY(mu_safetensors_write(to, s.n_arrays, s.arrays, read_item, &s));
	MU_TRY(describe(&s, to, true));
out:
	mu_free(s.items);
	mu_free(s.arrays);
	mu_free(s.origins);
	mu_array_file_close(s.file, false);
	return st;
}
