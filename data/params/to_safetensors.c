/* SPDX-License-Identifier: Apache-2.0 */
/* HDF5 to safetensors. */
#include "names.h"

#include <string.h>

/* An array of the HDF5 file. */
struct item {
	char name[NAME_BYTES];
	int ndims;
	size_t dims[MU_PARAMS_NDIMS];
	enum name_how how;
};

struct source {
	struct mu_array_file *file;
	const char *path;
	const struct name_family *family;
	bool detect, checkpoint; /* of a checkpoint its parameters alone */
	struct item *items;
	struct mu_params_array *arrays; /* what is written; NULL: only counted */
	size_t n, at;
};

static enum mu_status set_array(const struct source *s, struct item *item,
				struct mu_params_array *array)
{
	enum mu_status st = MU_OK;

	array->ndims = item->ndims;
	memcpy(array->dims, item->dims, sizeof array->dims);
	snprintf(array->name, sizeof array->name, "%s", item->name);
	item->how = NAME_KEEP;
	if (s->family && !name_to_theirs(s->family, item->name, array->name, &item->how))
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"%s: array \"%s\" has no name among those of --names %s; --names plain "
			"keeps "
			"names",
			s->path, item->name, name_family_word(s->family));
	if (item->how != NAME_TRANSPOSE)
		goto out;
	if (item->ndims < 2 || mu_params_elements(array) != item->dims[0] * item->dims[1])
		MU_FAIL(MU_ERR_FORMAT, "%s: array \"%s\" is no product of (out, in)", s->path,
			item->name);
	array->ndims = 2;
	array->dims[0] = item->dims[1];
	array->dims[1] = item->dims[0];
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
	const struct item *item = &s->items[s->at++];
	const size_t rows = array->dims[0], columns = array->dims[1]; /* of theirs */
	float *ours = NULL;

	if (item->how != NAME_TRANSPOSE)
		return mu_array_file_read(s->file, item->name, item->ndims, item->dims, data);
	MU_TRY(MU_ALLOC(ours, rows * columns + 1, "an array"));
	MU_TRY(mu_array_file_read(s->file, item->name, item->ndims, item->dims, ours));
	for (size_t i = 0; i < rows; i++)
		for (size_t j = 0; j < columns; j++)
			data[i * columns + j] = ours[j * rows + i];
out:
	mu_free(ours);
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
	*n = s.n;
	MU_TRY(MU_ALLOC(s.items, s.n, "table of arrays"));
	MU_TRY(MU_ALLOC(s.arrays, s.n, "table of arrays"));
	s.n = 0;
	MU_TRY(mu_array_file_each(s.file, add_item, &s));
	for (size_t i = 0; i < s.n; i++)
		MU_TRY(set_array(&s, &s.items[i], &s.arrays[i]));
	MU_TRY(mu_safetensors_write(to, s.n, s.arrays, read_item, &s));
out:
	mu_free(s.items);
	mu_free(s.arrays);
	mu_array_file_close(s.file, false);
	return st;
}
