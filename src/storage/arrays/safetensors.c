/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reading safetensors: see storage.h. u64 n, little-endian; n bytes of JSON, an object with a
 * member for each array, {"dtype": "F32", "shape": [2, 3], "data_offsets": [begin, end]}, of bytes
 * behind the header; "__metadata__" is no array. Then the numbers.
 */
#include <muster/json.h>
#include <muster/storage.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "foreign.h"
#include "storage/file.h"

enum { PATH_BYTES = 4096, BLOCK = 4096, HEADER_MAX = 100000000 /* as their own reader has it */ };

struct tensor {
	struct mu_params_array array;
	int dtype;
	size_t file;    /* number of its file */
	size_t at, end; /* bytes of the file */
};

struct mu_safetensors {
	struct mu_file *files; /* n_files of them are open */
	size_t n_files, files_room;
	struct tensor *of;
	size_t n, room;
};

static const struct {
	const char *name;
	size_t nbytes;
} dtypes[] = {{"F32", 4}, {"F16", 2}, {"BF16", 2}, {"F64", 8},     {"I64", 8},
	      {"I32", 4}, {"I16", 2}, {"I8", 1},   {"U64", 8},     {"U32", 4},
	      {"U16", 2}, {"U8", 1},  {"BOOL", 1}, {"F8_E4M3", 1}, {"F8_E5M2", 1}};

enum { F32, F16, BF16, F64, DTYPES = sizeof dtypes / sizeof *dtypes };

/* ---- the header ---- */

static enum mu_status find_dtype(const struct mu_file *file, const struct mu_json_value *v,
				 int *dtype)
{
	enum mu_status st = MU_OK;
	const struct mu_json_value *text = mu_json_member(v, "dtype");

	for (*dtype = 0; *dtype < DTYPES; ++*dtype)
		if (mu_json_is_text(text, dtypes[*dtype].name))
			goto out;
	MU_FAIL(MU_ERR_FORMAT, "%s: array \"%.80s\" has numbers of the unknown type \"%.20s\"",
		file->path, v->name, text && text->type == MU_JSON_TEXT ? text->text : "");
out:
	return st;
}

/* The shape, and the bytes of the numbers. */
static enum mu_status read_shape(const struct mu_file *file, const struct mu_json_value *v,
				 struct tensor *t, size_t *nbytes)
{
	enum mu_status st = MU_OK;
	const struct mu_json_value *shape = mu_json_member(v, "shape"), *dim;
	uint64_t n;

	if (!shape || shape->type != MU_JSON_ARRAY || shape->n > MU_PARAMS_NDIMS)
		MU_FAIL(MU_ERR_FORMAT, "%s: array \"%.80s\" has no shape of at most %d sizes",
			file->path, v->name, MU_PARAMS_NDIMS);
	*nbytes = dtypes[t->dtype].nbytes;
	t->array.ndims = (int)shape->n;
	dim = mu_json_first(shape);
	for (uint32_t i = 0; i < shape->n; i++, dim = mu_json_next(dim)) {
		if (!mu_json_integer(dim, file->nbytes, &n) ||
		    (*nbytes > 0 && n > file->nbytes / *nbytes))
			MU_FAIL(MU_ERR_FORMAT,
				"%s: size %lu of array \"%.80s\" does not fit a file of %zu bytes",
				file->path, (unsigned long)i, v->name, file->nbytes);
		t->array.dims[i] = (size_t)n;
		*nbytes *= (size_t)n;
	}
out:
	return st;
}

/* start: of the numbers. */
static enum mu_status read_place(const struct mu_file *file, const struct mu_json_value *v,
				 size_t start, struct tensor *t)
{
	enum mu_status st = MU_OK;
	const struct mu_json_value *offsets = mu_json_member(v, "data_offsets"), *first;
	const size_t room = file->nbytes - start;
	uint64_t begin = 0, end = 0;
	size_t nbytes = 0;

	if (offsets && offsets->type == MU_JSON_ARRAY && offsets->n == 2) {
		first = mu_json_first(offsets);
		if (!mu_json_integer(first, room, &begin) ||
		    !mu_json_integer(mu_json_next(first), room, &end) || end < begin)
			MU_FAIL(MU_ERR_FORMAT,
				"%s: array \"%.80s\" leaves the file, which has %zu bytes of "
				"numbers",
				file->path, v->name, room);
	} else {
		MU_FAIL(MU_ERR_FORMAT, "%s: array \"%.80s\" has no two data_offsets", file->path,
			v->name);
	}
	MU_TRY(read_shape(file, v, t, &nbytes));
	if (end - begin != nbytes)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: array \"%.80s\" has %lu bytes, and %zu by its shape and type %s",
			file->path, v->name, (unsigned long)(end - begin), nbytes,
			dtypes[t->dtype].name);
	t->at = start + (size_t)begin;
	t->end = start + (size_t)end;
out:
	return st;
}

static enum mu_status add_tensor(struct mu_safetensors *s, const struct mu_json_value *v,
				 size_t start)
{
	enum mu_status st = MU_OK;
	const struct mu_file *file = &s->files[s->n_files - 1];
	struct tensor *t, *larger;

	if (s->n == s->room) {
		MU_TRY(MU_ALLOC(larger, 2 * s->n + 16, "table of arrays"));
		if (s->n > 0)
			memcpy(larger, s->of, s->n * sizeof *larger);
		mu_free(s->of);
		s->of = larger;
		s->room = 2 * s->n + 16;
	}
	t = &s->of[s->n];
	*t = (struct tensor){.file = s->n_files - 1};
	if (v->name_bytes == 0 || v->name_bytes >= sizeof t->array.name ||
	    memchr(v->name, 0, v->name_bytes))
		MU_FAIL(MU_ERR_FORMAT,
			"%s: the name of an array has %lu letters; 1 to %zu are possible",
			file->path, (unsigned long)v->name_bytes, sizeof t->array.name - 1);
	memcpy(t->array.name, v->name, v->name_bytes);
	MU_TRY(find_dtype(file, v, &t->dtype));
	MU_TRY(read_place(file, v, start, t));
	s->n++;
out:
	return st;
}

/* ---- arrays follow one another ---- */

static int by_place(const void *a, const void *b)
{
	const struct tensor *x = a, *y = b;

	if (x->at != y->at)
		return x->at < y->at ? -1 : 1;
	return x->end < y->end ? -1 : x->end > y->end;
}

/* Of the arrays from `first` on, those of the last file. Sorts them. */
static enum mu_status check_places(struct mu_safetensors *s, size_t first, size_t start)
{
	enum mu_status st = MU_OK;
	const struct mu_file *file = &s->files[s->n_files - 1];
	size_t end = start;

	if (s->n > first)
		qsort(s->of + first, s->n - first, sizeof *s->of, by_place);
	for (size_t i = first; i < s->n; end = s->of[i++].end)
		if (s->of[i].at != end)
			MU_FAIL(MU_ERR_FORMAT,
				"%s: array \"%s\" begins at byte %zu, and the one before it ends "
				"at "
				"%zu: %s",
				file->path, s->of[i].array.name, s->of[i].at, end,
				s->of[i].at < end ? "they overlap" : "there is a hole");
	if (end != file->nbytes)
		MU_FAIL(MU_ERR_FORMAT, "%s: %zu bytes are behind its last array", file->path,
			file->nbytes - end);
out:
	return st;
}

static int by_name(const void *a, const void *b)
{
	const struct tensor *const *x = a, *const *y = b;

	return strcmp((*x)->array.name, (*y)->array.name);
}

/* *sorted: to be freed. */
static enum mu_status sort_names(const struct mu_safetensors *s, const struct tensor ***sorted)
{
	enum mu_status st = MU_OK;

	MU_TRY(MU_ALLOC(*sorted, s->n + 1, "names of arrays"));
	for (size_t i = 0; i < s->n; i++)
		(*sorted)[i] = &s->of[i];
	if (s->n > 0)
		qsort(*sorted, s->n, sizeof **sorted, by_name);
out:
	return st;
}

static enum mu_status check_names(const struct mu_safetensors *s, const char *path)
{
	enum mu_status st = MU_OK;
	const struct tensor **sorted = NULL;

	if (s->n == 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: holds no arrays", path);
	MU_TRY(sort_names(s, &sorted));
	for (size_t i = 1; i < s->n; i++)
		if (strcmp(sorted[i]->array.name, sorted[i - 1]->array.name) == 0)
			MU_FAIL(MU_ERR_FORMAT, "%s: two arrays have the name \"%s\"", path,
				sorted[i]->array.name);
out:
	mu_free(sorted);
	return st;
}

/* ---- files ---- */

static enum mu_status read_header(const struct mu_file *file, char **text, size_t *n)
{
	enum mu_status st = MU_OK;
	unsigned char head[8];
	uint64_t length = 0;

	if (file->nbytes < sizeof head)
		MU_FAIL(MU_ERR_FORMAT, "%s: has %zu bytes: it is not a safetensors file",
			file->path, file->nbytes);
	MU_TRY(mu_file_read(file, 0, head, sizeof head));
	for (int i = 8; i-- > 0;)
		length = length << 8 | head[i];
	if (length > file->nbytes - sizeof head || length > HEADER_MAX)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: begins with a header of %llu bytes, in a file of %zu: it is not a "
			"safetensors file, or was cut short",
			file->path, (unsigned long long)length, file->nbytes);
	*n = (size_t)length;
	MU_TRY(MU_ALLOC(*text, *n + 1, "header of a safetensors file"));
	MU_TRY(mu_file_read(file, sizeof head, *text, *n));
out:
	return st;
}

static enum mu_status add_file(struct mu_safetensors *s, const char *path)
{
	enum mu_status st = MU_OK;
	struct mu_json_document json = {0};
	const struct mu_json_value *v;
	const size_t first = s->n;
	struct mu_file *larger;
	char *text = NULL;
	size_t n = 0;

	if (s->n_files == s->files_room) {
		MU_TRY(MU_ALLOC(larger, 2 * s->n_files + 4, "safetensors files"));
		if (s->n_files > 0)
			memcpy(larger, s->files, s->n_files * sizeof *larger);
		mu_free(s->files);
		s->files = larger;
		s->files_room = 2 * s->n_files + 4;
	}
	mu_file_init(&s->files[s->n_files]);
	MU_TRY(mu_file_open(&s->files[s->n_files++], path));
	MU_TRY(read_header(&s->files[s->n_files - 1], &text, &n));
	MU_TRY(mu_json_read(&json, path, text, n));
	if (json.values->type != MU_JSON_OBJECT)
		MU_FAIL(MU_ERR_FORMAT, "%s: its header is no object of arrays", path);
	v = mu_json_first(json.values);
	for (uint32_t i = 0; i < json.values->n; i++, v = mu_json_next(v))
		if (strcmp(v->name, "__metadata__") != 0)
			MU_TRY(add_tensor(s, v, n + 8));
	MU_TRY(check_places(s, first, n + 8));
out:
	mu_json_release(&json);
	mu_free(text);
	return st;
}

/* The file of an index, unless it is there already. */
static enum mu_status add_indexed(struct mu_safetensors *s, const char *index, int folder,
				  const struct mu_json_value *v)
{
	enum mu_status st = MU_OK;
	char path[PATH_BYTES];

	if (v->type != MU_JSON_TEXT || v->text_bytes == 0 || strchr(v->text, '/') ||
	    snprintf(path, sizeof path, "%.*s%s", folder, index, v->text) >= PATH_BYTES)
		MU_FAIL(MU_ERR_FORMAT, "%s: array \"%.80s\" names no file beside it", index,
			v->name);
	for (size_t i = 0; i < s->n_files; i++)
		if (strcmp(s->files[i].path, path) == 0)
			goto out;
	MU_TRY(add_file(s, path));
out:
	return st;
}

static bool ends_with(const char *path, const char *file)
{
	const size_t n = strlen(file), m = strlen(path);

	return m >= n && strcmp(path + m - n, file) == 0;
}

/* sorted: the arrays, by name. */
static enum mu_status check_map(const struct mu_safetensors *s, const char *path,
				const struct mu_json_value *map, const struct tensor **sorted)
{
	enum mu_status st = MU_OK;
	const struct mu_json_value *v = mu_json_first(map);

	for (uint32_t i = 0; i < map->n; i++, v = mu_json_next(v)) {
		struct tensor key = {.dtype = 0};
		const struct tensor *wanted = &key, **found = NULL;

		if (v->name_bytes < sizeof key.array.name) {
			snprintf(key.array.name, sizeof key.array.name, "%s", v->name);
			found = bsearch(&wanted, sorted, s->n, sizeof *sorted, by_name);
		}
		if (!found || !ends_with(s->files[(*found)->file].path, v->text))
			MU_FAIL(MU_ERR_FORMAT, "%s: array \"%.80s\" is not in %s", path, v->name,
				v->text);
	}
out:
	return st;
}

static enum mu_status read_index(struct mu_safetensors *s, const char *path)
{
	enum mu_status st = MU_OK;
	const char *slash = strrchr(path, '/');
	const int folder = slash ? (int)(slash - path) + 1 : 0;
	struct mu_json_document json = {0};
	const struct mu_json_value *map, *v;
	const struct tensor **sorted = NULL;
	char *text = NULL;
	size_t n;

	MU_TRY(mu_file_read_whole(&text, &n, path));
	MU_TRY(mu_json_read(&json, path, text, n));
	map = mu_json_member(json.values, "weight_map");
	if (!map || map->type != MU_JSON_OBJECT)
		MU_FAIL(MU_ERR_FORMAT, "%s: has no weight_map: it is no index of safetensors files",
			path);
	v = mu_json_first(map);
	for (uint32_t i = 0; i < map->n; i++, v = mu_json_next(v))
		MU_TRY(add_indexed(s, path, folder, v));
	if (s->n != map->n)
		MU_FAIL(MU_ERR_FORMAT, "%s: names %lu arrays, and its files hold %zu", path,
			(unsigned long)map->n, s->n);
	MU_TRY(sort_names(s, &sorted));
	MU_TRY(check_map(s, path, map, sorted));
out:
	mu_free(sorted);
	mu_json_release(&json);
	mu_free(text);
	return st;
}

static enum mu_status refuse_folder(const char *path)
{
	enum mu_status st = MU_OK;
	char other[PATH_BYTES];

	snprintf(other, sizeof other, "%.4000s/pytorch_model.bin", path);
	MU_FAIL(MU_ERR_FORMAT,
		"%s: has neither model.safetensors nor model.safetensors.index.json%s", path,
		mu_array_file_advice(other));
out:
	return st;
}

enum mu_status mu_safetensors_open(struct mu_safetensors **out, const char *path)
{
	enum mu_status st = MU_OK;
	static const char *const names[] = {"", "/model.safetensors",
					    "/model.safetensors.index.json"};
	char file[PATH_BYTES];
	struct stat status;
	size_t n = 0;

	*out = NULL;
	for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
		n = (size_t)snprintf(file, sizeof file, "%s%s", path, names[i]);
		if (n < sizeof file && stat(file, &status) == 0 && S_ISREG(status.st_mode))
			break;
		snprintf(file, sizeof file, "%.4000s", path); /* whose error is told */
	}
	if (stat(file, &status) == 0 && S_ISDIR(status.st_mode))
		MU_TRY(refuse_folder(file));
	MU_TRY(MU_ALLOC(*out, 1, "a safetensors file"));
	if (mu_stem(file, ".json"))
		MU_TRY(read_index(*out, file));
	else
		MU_TRY(add_file(*out, file));
	MU_TRY(check_names(*out, file));
out:
	if (st != MU_OK) {
		mu_safetensors_close(*out);
		*out = NULL;
	}
	return st;
}

void mu_safetensors_close(struct mu_safetensors *s)
{
	if (!s)
		return;
	for (size_t i = 0; i < s->n_files; i++)
		mu_file_close(&s->files[i]);
	mu_free(s->files);
	mu_free(s->of);
	mu_free(s);
}

/* ---- arrays ---- */

size_t mu_safetensors_n(const struct mu_safetensors *s)
{
	return s->n;
}

const struct mu_params_array *mu_safetensors_array(const struct mu_safetensors *s, size_t i)
{
	return &s->of[i].array;
}

/* false: a number is too large for float32. */
static bool to_floats(int dtype, float *out, const char *in, size_t n)
{
	bool fits = true;
	double value;

	if (dtype != F64)
		mu_dtype_to_float(dtype == F16    ? MU_FLOAT16
				  : dtype == BF16 ? MU_BFLOAT16
						  : MU_FLOAT32,
				  out, in, n);
	for (size_t i = 0; dtype == F64 && i < n; i++) {
		memcpy(&value, in + i * sizeof value, sizeof value);
		out[i] = (float)value;
		fits = fits && (isfinite(out[i]) || !isfinite(value));
	}
	return fits;
}

enum mu_status mu_safetensors_read(const struct mu_safetensors *s, size_t i, float *data)
{
	enum mu_status st = MU_OK;
	const struct tensor *t = &s->of[i];
	const size_t nbytes = dtypes[t->dtype].nbytes, n = (t->end - t->at) / nbytes;
	_Alignas(8) char block[BLOCK * sizeof(double)];

	if (t->dtype > F64)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"%s: array \"%s\" has numbers of type %s; F32, F16, BF16 and F64 can be "
			"read",
			s->files[t->file].path, t->array.name, dtypes[t->dtype].name);
	for (size_t done = 0, run; done < n; done += run) {
		run = n - done < BLOCK ? n - done : BLOCK;
		MU_TRY(mu_file_read(&s->files[t->file], t->at + done * nbytes, block,
				    run * nbytes));
		if (!to_floats(t->dtype, data + done, block, run))
			MU_FAIL(MU_ERR_FORMAT,
				"%s: array \"%s\" has numbers that are too large for float32",
				s->files[t->file].path, t->array.name);
	}
out:
	return st;
}
