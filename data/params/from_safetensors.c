/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors to HDF5. */
#include "names.h"

#include <string.h>

/* The numbers of (rows, columns) become those of (columns, rows). */
static enum mu_status transpose(float **data, size_t rows, size_t columns)
{
	enum mu_status st = MU_OK;
	float *turned = NULL;

	MU_TRY(MU_ALLOC(turned, rows * columns + 1, "an array"));
	for (size_t i = 0; i < rows; i++)
		for (size_t j = 0; j < columns; j++)
			turned[j * rows + i] = (*data)[i * columns + j];
	mu_free(*data);
	*data = turned;
out:
	return st;
}

/* An array of ours of which parts are still missing. */
struct whole {
	struct whole *next;
	struct mu_params_array parts[NAME_PARTS]; /* those that are there have a dimension */
	float *data[NAME_PARTS];
	char name[NAME_BYTES];
};

static bool has_shape_of(const struct mu_params_array *a, const struct mu_params_array *b)
{
	return a->ndims == b->ndims &&
	       memcmp(a->dims, b->dims, (size_t)a->ndims * sizeof *a->dims) == 0;
}

/* The shape of ours; a part's is that of the whole already. false: theirs has another number of
 * dimensions. */
static bool shape_to_ours(struct mu_params_array *array, enum name_how how)
{
	if (how == NAME_BATCH) {
		if (array->ndims != 3 || array->dims[0] != 1)
			return false;
		array->ndims = array->dims[1] == 1 ? 1 : 2;
		array->dims[0] = array->dims[array->ndims == 1 ? 2 : 1];
		array->dims[1] = array->dims[2];
		return true;
	}
	if (how == NAME_KEEP || (how == NAME_PART && array->ndims == 1))
		return true;
	if (array->ndims != 2)
		return false;
	if (how == NAME_TRANSPOSE) {
		const size_t in_units = array->dims[0];

		array->dims[0] = array->dims[1];
		array->dims[1] = in_units;
	}
	array->ndims = 4;
	array->dims[2] = array->dims[3] = 1;
	return true;
}

static enum mu_status write_array(const struct mu_params_array *theirs, enum name_how how,
				  const char *name, const float *data, struct mu_array_file *out)
{
	enum mu_status st = MU_OK;
	struct mu_params_array array = *theirs;

	if (!shape_to_ours(&array, how))
		MU_FAIL(MU_ERR_FORMAT, "array \"%s\" has %d dimensions; %s", theirs->name,
			theirs->ndims,
			how == NAME_BATCH ? "3 are needed, the first of 1" : "2 are needed");
	MU_TRY(mu_array_file_write(out, name, array.ndims, array.dims, data));
out:
	return st;
}

static enum mu_status copy_array(const struct mu_safetensors *in, size_t i, const char *name,
				 enum name_how how, struct mu_array_file *out)
{
	enum mu_status st = MU_OK;
	const struct mu_params_array *array = mu_safetensors_array(in, i);
	float *data = NULL;

	MU_TRY(MU_ALLOC(data, mu_params_elements(array) + 1, "an array"));
	MU_TRY(mu_safetensors_read(in, i, data));
	if (how == NAME_TRANSPOSE && array->ndims == 2)
		MU_TRY(transpose(&data, array->dims[0], array->dims[1]));
	MU_TRY(write_array(array, how, name, data, out));
out:
	mu_free(data);
	return st;
}

static void forget(struct whole **at)
{
	struct whole *w = *at;

	*at = w->next;
	for (int k = 0; k < NAME_PARTS; k++)
		mu_free(w->data[k]);
	mu_free(w);
}

/* Its place in the list, where it is added if it is new. */
static enum mu_status find_whole(struct whole **list, const char *name, struct whole ***found)
{
	enum mu_status st = MU_OK;
	struct whole **at = list;

	while (*at && strcmp((*at)->name, name) != 0)
		at = &(*at)->next;
	*found = at;
	if (*at)
		goto out;
	MU_TRY(MU_ALLOC(*at, 1, "an array"));
	snprintf((*at)->name, sizeof(*at)->name, "%s", name);
out:
	return st;
}

/* All parts, one after another. Keys and values have one shape; with `grouped` queries may have
 * more rows. */
static enum mu_status put_together(const struct whole *w, bool grouped, struct mu_array_file *out)
{
	enum mu_status st = MU_OK;
	const struct mu_params_array *query = &w->parts[0], *key = &w->parts[1];
	struct mu_params_array whole = *query, alike = *query;
	size_t at = 0;
	float *data = NULL;

	if (grouped && key->dims[0] > 0 && query->dims[0] % key->dims[0] == 0)
		alike.dims[0] = key->dims[0];
	for (int k = 1; k < NAME_PARTS; k++) {
		if (!has_shape_of(&alike, &w->parts[k]))
			MU_FAIL(MU_ERR_FORMAT, "arrays \"%s\" and \"%s\" have different shapes",
				k == 2 && has_shape_of(&alike, key) ? key->name : query->name,
				w->parts[k].name);
		whole.dims[0] += w->parts[k].dims[0];
	}
	MU_TRY(MU_ALLOC(data, mu_params_elements(&whole) + 1, "an array"));
	for (int k = 0; k < NAME_PARTS; k++) {
		const size_t n = mu_params_elements(&w->parts[k]);

		memcpy(data + at, w->data[k], n * sizeof *data);
		at += n;
	}
	MU_TRY(write_array(&whole, NAME_PART, w->name, data, out));
out:
	mu_free(data);
	return st;
}

/* Is array i, a head, the embedding once more? */
static enum mu_status is_tied(const struct mu_safetensors *in, size_t i,
			      const struct name_family *family, bool *tied)
{
	enum mu_status st = MU_OK;
	const struct mu_params_array *head = mu_safetensors_array(in, i);
	const size_t n = mu_params_elements(head);
	float *data[2] = {NULL, NULL};
	char name[NAME_BYTES];
	enum name_how how;
	size_t part, t = 0;

	*tied = false;
	while (t < mu_safetensors_n(in) &&
	       (!name_to_ours(family, mu_safetensors_array(in, t)->name, name, &how, &part) ||
		strcmp(name, name_of_embedding(family)) != 0))
		t++;
	if (t == mu_safetensors_n(in))
		goto out;
	if (!has_shape_of(head, mu_safetensors_array(in, t)))
		goto out;
	MU_TRY(MU_ALLOC(data[0], n + 1, "an array"));
	MU_TRY(MU_ALLOC(data[1], n + 1, "an array"));
	MU_TRY(mu_safetensors_read(in, i, data[0]));
	MU_TRY(mu_safetensors_read(in, t, data[1]));
	*tied = memcmp(data[0], data[1], n * sizeof *data[0]) == 0;
out:
	mu_free(data[0]);
	mu_free(data[1]);
	return st;
}

/* ---- all arrays ---- */

struct copying {
	const char *from;
	struct mu_safetensors *in;
	struct mu_array_file *out;
	const struct name_family *family;
	struct model_sizes sizes;
	struct model_config config;
	struct whole *list;
	size_t n;
};

static enum mu_status copy_part(struct copying *c, size_t i, const char *name, size_t part)
{
	enum mu_status st = MU_OK;
	const struct mu_params_array *array = mu_safetensors_array(c->in, i);
	struct whole **at;

	MU_TRY(find_whole(&c->list, name, &at));
	if ((*at)->data[part])
		MU_FAIL(MU_ERR_FORMAT, "two arrays become \"%s\"; \"%s\" is one", name,
			array->name);
	(*at)->parts[part] = *array;
	MU_TRY(MU_ALLOC((*at)->data[part], mu_params_elements(array) + 1, "an array"));
	MU_TRY(mu_safetensors_read(c->in, i, (*at)->data[part]));
	for (size_t k = 0; k < NAME_PARTS; k++)
		if (!(*at)->data[k])
			goto out;
	MU_TRY(put_together(*at, name_family_facts(c->family)->grouped, c->out));
	forget(at);
out:
	return st;
}

/* Of a whole that lacks a part. */
static const char *present_part(const struct whole *w)
{
	for (int k = 0; k < NAME_PARTS; k++)
		if (w->data[k])
			return w->parts[k].name;
	return w->name;
}

static enum mu_status find_sizes(struct copying *c)
{
	enum mu_status st = MU_OK;
	char name[NAME_BYTES];
	enum name_how how;
	size_t part;

	for (size_t i = 0; i < mu_safetensors_n(c->in); i++) {
		const struct mu_params_array *array = mu_safetensors_array(c->in, i);

		model_sizes_add(&c->sizes, c->family, array);
		if (name_to_ours(c->family, array->name, name, &how, &part) && how == NAME_HEAD)
			MU_TRY(is_tied(c->in, i, c->family, &c->sizes.head_tied));
	}
out:
	return st;
}

static enum mu_status copy_named(struct copying *c, size_t i)
{
	enum mu_status st = MU_OK;
	const struct mu_params_array *array = mu_safetensors_array(c->in, i);
	enum name_how how = NAME_KEEP;
	char name[NAME_BYTES];
	size_t part = 0;
	bool twice;

	snprintf(name, sizeof name, "%s", array->name);
	if (c->family && !name_to_ours(c->family, array->name, name, &how, &part))
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"array \"%s\" has no place in the networks of --names %s; --names plain "
			"keeps "
			"names",
			array->name, name_family_word(c->family));
	if (how == NAME_SKIP || (how == NAME_HEAD && c->sizes.head_tied && c->config.tied != 0))
		goto out;
	if (array->ndims == 0 || mu_params_elements(array) == 0)
		MU_FAIL(MU_ERR_FORMAT, "array \"%s\" %s, which the HDF5 file cannot hold",
			array->name, array->ndims == 0 ? "has no dimensions" : "is empty");
	if (c->family) {
		MU_TRY(mu_array_file_has(c->out, name, &twice));
		if (twice)
			MU_FAIL(MU_ERR_FORMAT, "two arrays become \"%s\"; \"%s\" is one", name,
				array->name);
	}
	if (how == NAME_PART)
		MU_TRY(copy_part(c, i, name, part));
	else
		MU_TRY(copy_array(c->in, i, name, how, c->out));
	c->n++;
out:
	return st;
}

/* No network knows the model. */
static void note_plain(struct copying *c, const char *to)
{
	const size_t n = mu_safetensors_n(c->in);
	size_t i = 0;

	while (i < n && strncmp(mu_safetensors_array(c->in, i)->name, "arg/", 4) != 0 &&
	       strncmp(mu_safetensors_array(c->in, i)->name, "aux/", 4) != 0)
		i++;
	if (*c->config.type)
		model_note(&c->config,
			   "config.json has model type %s: no network of Muster's computes it, and "
			   "%s holds plain arrays",
			   c->config.type, to);
	else if (i == n)
		model_note(
			&c->config,
			"no network of Muster's has arrays of these names: %s holds plain arrays",
			to);
}

/* The message of an error names no file. */
static enum mu_status copy_all(struct copying *c, const char *to)
{
	enum mu_status st = MU_OK;
	const bool text = c->family && name_family_facts(c->family)->text;

	if (c->family)
		MU_TRY(find_sizes(c));
	MU_TRY(model_config_read(&c->config, c->from, c->family, &c->sizes));
	if (c->family && !text)
		MU_TRY(model_images_read(&c->config, c->from));
	MU_TRY(mu_array_file_create(&c->out, to));
	for (size_t i = 0; i < mu_safetensors_n(c->in); i++)
		MU_TRY(copy_named(c, i));
	if (c->n == 0)
		MU_FAIL(MU_ERR_FORMAT, "holds no parameters");
	if (c->list)
		MU_FAIL(MU_ERR_FORMAT, "array \"%s\" is there, but not all of query, key and value",
			present_part(c->list));
	if (c->family)
		MU_TRY(model_complete_check(&c->config, c->family, &c->sizes, c->out));
	if (text)
		MU_TRY(model_tokenizer_keep(&c->config, c->from, c->sizes.vocabulary, c->out));
	if (c->family)
		MU_TRY(convert_settings(&c->config, c->family, &c->sizes, c->out));
	else
		note_plain(c, to);
out:
	return st;
}

enum mu_status convert_from_safetensors(const char *from, const char *to, struct name_choice names,
					size_t *n)
{
	enum mu_status st = MU_OK;
	struct copying c = {.from = from, .family = names.family};

	if (names.detect || names.family)
		MU_TRY(model_adapter_check(from));
	MU_TRY(mu_safetensors_open(&c.in, from));
	if (names.detect)
		st = model_family_find(from, c.in, &c.family);
	if (st == MU_OK)
		st = copy_all(&c, to);
	if (st != MU_OK)
		mu_trace_prefix("%s: ", from);
	MU_TRY(st);
	st = mu_array_file_close(c.out, true);
	c.out = NULL;
	MU_TRY(st);
	for (char *p = c.config.notes, *end; (end = strchr(p, '\n')); p = end + 1)
		printf("muconvert: %s: %.*s\n", mu_shown(from), (int)(end - p), p);
	*n = c.n;
out:
	while (c.list)
		forget(&c.list);
	model_config_release(&c.config);
	mu_array_file_close(c.out, false);
	mu_safetensors_close(c.in);
	return st;
}
