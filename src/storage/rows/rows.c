/* SPDX-License-Identifier: Apache-2.0 */
/* Formats of arrays, conversion to float32, checks: see rows.h. */
#include "rows.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include <muster/storage.h>

#include "storage/records/record_io.h"

static const struct mu_rows_format *const formats[] = {&mu_rows_npy, &mu_rows_npz, &mu_rows_csv};

enum { NUM_FORMATS = sizeof formats / sizeof *formats, PATH_BYTES = 4096, POSITION_BYTES = 96 };

static const struct {
	const char *name;
	size_t nbytes;
} cells[MU_CELLS] = {
	[MU_CELL_U1] = {"uint8", 1},   [MU_CELL_I1] = {"int8", 1},    [MU_CELL_U2] = {"uint16", 2},
	[MU_CELL_I2] = {"int16", 2},   [MU_CELL_U4] = {"uint32", 4},  [MU_CELL_I4] = {"int32", 4},
	[MU_CELL_U8] = {"uint64", 8},  [MU_CELL_I8] = {"int64", 8},   [MU_CELL_F2] = {"float16", 2},
	[MU_CELL_F4] = {"float32", 4}, [MU_CELL_F8] = {"float64", 8},
};

size_t mu_cell_bytes(enum mu_cell cell)
{
	return cells[cell].nbytes;
}

const char *mu_cell_name(enum mu_cell cell)
{
	return cells[cell].name;
}

/* ---- which format ---- */

/* The colon before a member, NULL: there is none. */
static const char *find_member(const char *path, const struct mu_rows_format *f)
{
	const char *colon = f->members ? strrchr(path, ':') : NULL;
	char file[PATH_BYTES];

	if (!colon || snprintf(file, sizeof file, "%.*s", (int)(colon - path), path) >= PATH_BYTES)
		return NULL;
	return mu_stem(file, f->ending) ? colon : NULL;
}

static const struct mu_rows_format *find_format(const char *path)
{
	char head[8] = "";

	for (int i = 0; i < NUM_FORMATS; i++)
		if (mu_stem(path, formats[i]->ending) || find_member(path, formats[i]))
			return formats[i];
	if (mu_stream_head(path, head, sizeof head) < sizeof head)
		return NULL;
	for (int i = 0; i < NUM_FORMATS; i++)
		if (formats[i]->magic &&
		    memcmp(head, formats[i]->magic, strlen(formats[i]->magic)) == 0)
			return formats[i];
	return NULL;
}

/* ".npy, .npz or .csv" */
static const char *list_endings(char *text, size_t nbytes)
{
	size_t n = 0;

	text[0] = '\0';
	for (int i = 0; i < NUM_FORMATS && n < nbytes; i++)
		n += (size_t)snprintf(text + n, nbytes - n, "%s%s",
				      i == 0                 ? ""
				      : i == NUM_FORMATS - 1 ? " or "
							     : ", ",
				      formats[i]->ending);
	return text;
}

bool mu_rows_known(const char *path)
{
	return find_format(path) != NULL;
}

/* ---- opening ---- */

enum mu_status mu_rows_set_name(struct mu_rows *rows, const char *path, const char *member)
{
	enum mu_status st = MU_OK;
	const size_t nbytes = strlen(path) + (member ? strlen(member) : 0) + 2;

	MU_TRY(MU_ALLOC(rows->name, nbytes, "file name"));
	snprintf(rows->name, nbytes, "%s%s%s", path, member ? ":" : "", member ? member : "");
out:
	return st;
}

enum mu_status mu_rows_set_shape(struct mu_rows *rows, int ndims, const size_t *dims)
{
	enum mu_status st = MU_OK;
	size_t nbytes = mu_cell_bytes(rows->cell);

	if (ndims == 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: is a scalar, one number without axes; an array (samples, ...) is "
			"needed",
			rows->name);
	if (ndims > MU_MAX_DIMS)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: has %d axes; at most %d are possible, (samples, c, d, h, w)",
			rows->name, ndims, MU_MAX_DIMS);
	for (int i = 0; i < ndims; i++)
		if (dims[i] > 0 && __builtin_mul_overflow(nbytes, dims[i], &nbytes))
			MU_FAIL(MU_ERR_FORMAT,
				"%s: the header promises more bytes than any file holds",
				rows->name);
	rows->n = dims[0];
	rows->shape = (struct mu_shape)MU_SAMPLE(1);
	if (ndims > 1)
		rows->shape.ndims = ndims;
	for (int i = 1; i < ndims; i++)
		rows->shape.dims[i] = dims[i];
	if (rows->n == 0 || mu_shape_sample(&rows->shape) == 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: %s", rows->name,
			rows->n == 0 ? "there is no sample in it"
				     : "a sample of it has no numbers: one axis is 0");
	rows->stride = mu_rows_row_bytes(rows);
out:
	return st;
}

static void close_rows(struct mu_rows *rows)
{
	if (rows->within)
		goto out;
	if (rows->name) /* else it was never opened */
		mu_file_close(&rows->file);
	mu_free(rows->memory);
	mu_free(rows->columns);
	mu_free(rows->name);
out:
	*rows = (struct mu_rows){.name = NULL};
}

void mu_rows_close(struct mu_rows_pair *pair)
{
	close_rows(&pair->data);
	close_rows(&pair->target);
}

enum mu_status mu_rows_parts_new(struct mu_rows_parts *parts, size_t n)
{
	enum mu_status st = MU_OK;

	*parts = (struct mu_rows_parts){.n = n};
	MU_TRY(MU_ALLOC(parts->of, n, "parts of the data"));
out:
	return st;
}

void mu_rows_parts_close(struct mu_rows_parts *parts)
{
	for (size_t i = 0; parts->of && i < parts->n; i++)
		mu_rows_close(&parts->of[i]);
	mu_free(parts->of);
	*parts = (struct mu_rows_parts){.of = NULL};
}

const struct mu_rows_pair *mu_rows_part(const struct mu_rows_parts *parts, size_t *i)
{
	const struct mu_rows_pair *part = parts->of;

	for (; *i >= part->data.n; part++)
		*i -= part->data.n;
	return part;
}

const uint8_t *mu_rows_pixels(const struct mu_rows_parts *parts, size_t i, uint8_t *label)
{
	const struct mu_rows_pair *part = mu_rows_part(parts, &i);

	*label = part->target.memory[part->target.at + i * part->target.stride];
	return part->data.memory + part->data.at + i * part->data.stride;
}

static enum mu_status open_one(struct mu_rows_pair *pair, const struct mu_rows_config *config,
			       const char *path)
{
	enum mu_status st = MU_OK;
	const struct mu_rows_format *f = find_format(path);
	const char *colon;
	char file[PATH_BYTES], known[128];

	mu_file_init(&pair->data.file);
	mu_file_init(&pair->target.file);
	if (!f)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: is no file of arrays that is known: %s is needed%s", path,
			list_endings(known, sizeof known), mu_rows_advice(path));
	colon = find_member(path, f);
	if (snprintf(file, sizeof file, "%.*s", colon ? (int)(colon - path) : PATH_BYTES, path) >=
	    PATH_BYTES)
		MU_FAIL(MU_ERR_IO, "%.60s...: the path is longer than %d bytes", path,
			PATH_BYTES - 1);
	MU_TRY(f->open(pair, config, file, colon ? colon + 1 : NULL));
out:
	return st;
}

/* Columns are named of the file that has the targets. */
static enum mu_status check_columns(const struct mu_rows_config *config)
{
	enum mu_status st = MU_OK;
	const char *path = config->labels ? config->labels : config->data;
	const struct mu_rows_format *f = find_format(path);

	if (config->columns && strcmp(config->columns, "none") != 0 && f && f != &mu_rows_csv &&
	    f != &mu_rows_npz)
		MU_FAIL(MU_ERR_USAGE,
			"label columns %s: %s, which has the targets, is no table, and no .npz "
			"file",
			config->columns, path);
out:
	return st;
}

enum mu_status mu_rows_open(struct mu_rows_pair *pair, const struct mu_rows_config *config)
{
	enum mu_status st = MU_OK;
	struct mu_rows_config data = *config, alone = *config;
	struct mu_rows_pair labels = {.note = ""};

	*pair = (struct mu_rows_pair){.note = ""};
	MU_TRY(check_columns(config));
	if (config->labels)
		data.columns = NULL;
	MU_TRY(open_one(pair, &data, config->data));
	if (config->labels) {
		alone.targets_alone = alone.unlabelled = true;
		alone.labels = NULL;
		MU_TRY(open_one(&labels, &alone, config->labels));
		pair->target = labels.data;
		labels.data = (struct mu_rows){.name = NULL};
		if (*labels.note && !*pair->note)
			memcpy(pair->note, labels.note, sizeof pair->note);
	}
	if (pair->target.n == 0 && !config->unlabelled)
		MU_FAIL(MU_ERR_USAGE,
			"%s: its targets are not known: a file of labels (label train, label val) "
			"is needed",
			config->data);
	if (pair->target.n > 0 && pair->target.n != pair->data.n)
		MU_FAIL(MU_ERR_FORMAT,
			"%s has %zu sample%s, and %s has targets of %zu: there must be as many",
			pair->data.name, pair->data.n, MU_S(pair->data.n), pair->target.name,
			pair->target.n);
out:
	mu_rows_close(&labels);
	return st;
}

/* ---- reading ---- */

size_t mu_rows_row_bytes(const struct mu_rows *rows)
{
	return mu_shape_sample(&rows->shape) * mu_cell_bytes(rows->cell);
}

void mu_rows_swap(uint8_t *bytes, size_t n, size_t width)
{
	for (size_t i = 0; i < n; i++, bytes += width) {
		for (size_t j = 0; j < width / 2; j++) {
			const uint8_t byte = bytes[j];

			bytes[j] = bytes[width - 1 - j];
			bytes[width - 1 - j] = byte;
		}
	}
}

enum mu_status mu_rows_bytes(const struct mu_rows *rows, size_t i, struct mu_record_buffer *buffer,
			     const uint8_t **out)
{
	enum mu_status st = MU_OK;
	const size_t nbytes = mu_rows_row_bytes(rows);

	if (rows->memory) {
		*out = rows->memory + rows->at + i * rows->stride;
		return MU_OK;
	}
	MU_TRY(mu_record_buffer_grow(buffer, 0, nbytes));
	MU_TRY(mu_file_read(&rows->file, rows->at + i * rows->stride, buffer->bytes, nbytes));
	if (rows->swapped)
		mu_rows_swap(buffer->bytes, mu_shape_sample(&rows->shape),
			     mu_cell_bytes(rows->cell));
	*out = buffer->bytes;
out:
	return st;
}

/* Convert n numbers; returns the first one that float32 does not hold, n: none. */
#define FROM(name, type, is_good) \
	static size_t from_##name(float *restrict out, const void *in, size_t n) \
	{ \
		const type *x = in; \
		bool good = true; \
\
		for (size_t i = 0; i < n; i++) { \
			out[i] = (float)x[i]; \
			good &= (is_good); \
		} \
		for (size_t i = 0; !good && i < n; i++) \
			if (!(is_good)) \
				return i; \
		return n; \
	}

FROM(u1, uint8_t, true)
FROM(i1, int8_t, true)
FROM(u2, uint16_t, true)
FROM(i2, int16_t, true)
FROM(u4, uint32_t, (double)out[i] == (double)x[i])
FROM(i4, int32_t, (double)out[i] == (double)x[i])
FROM(u8, uint64_t, out[i] < 0x1p64f && (uint64_t)out[i] == x[i])
FROM(i8, int64_t, out[i] < 0x1p63f && (int64_t)out[i] == x[i])
FROM(f4, float, fabsf(out[i]) <= FLT_MAX)

static size_t from_f8(float *restrict out, const void *in, size_t n)
{
	const double *x = in;

	for (size_t i = 0; i < n; i++) {
		if (!(fabs(x[i]) <= (double)FLT_MAX))
			return i;
		out[i] = (float)x[i];
	}
	return n;
}

static size_t from_f2(float *restrict out, const void *in, size_t n)
{
	mu_dtype_to_float(MU_FLOAT16, out, in, n);
	for (size_t i = 0; i < n; i++)
		if (!(fabsf(out[i]) <= FLT_MAX))
			return i;
	return n;
}

static size_t convert(enum mu_cell cell, float *out, const void *in, size_t n)
{
	static size_t (*const of[MU_CELLS])(float *restrict, const void *, size_t) = {
		[MU_CELL_U1] = from_u1, [MU_CELL_I1] = from_i1, [MU_CELL_U2] = from_u2,
		[MU_CELL_I2] = from_i2, [MU_CELL_U4] = from_u4, [MU_CELL_I4] = from_i4,
		[MU_CELL_U8] = from_u8, [MU_CELL_I8] = from_i8, [MU_CELL_F2] = from_f2,
		[MU_CELL_F4] = from_f4, [MU_CELL_F8] = from_f8,
	};

	return of[cell](out, in, n);
}

/* "16777217", "NaN" */
static void print_cell(const struct mu_rows *rows, const uint8_t *cell, char *text, size_t nbytes)
{
	uint64_t u = 0;
	int64_t i = 0;
	int32_t small = 0;
	uint32_t large = 0;
	double d = 0;
	float f = 0;

	switch (rows->cell) {
	case MU_CELL_U8: memcpy(&u, cell, 8); break;
	case MU_CELL_U4:
		memcpy(&large, cell, 4);
		u = large;
		break;
	case MU_CELL_I8: memcpy(&i, cell, 8); break;
	case MU_CELL_I4:
		memcpy(&small, cell, 4);
		i = small;
		break;
	case MU_CELL_F8: memcpy(&d, cell, 8); break;
	case MU_CELL_F4:
		memcpy(&f, cell, 4);
		d = (double)f;
		break;
	case MU_CELL_F2:
		mu_dtype_to_float(MU_FLOAT16, &f, cell, 1);
		d = (double)f;
		break;
	default: break;
	}
	if (rows->cell == MU_CELL_U8 || rows->cell == MU_CELL_U4)
		snprintf(text, nbytes, "%llu", (unsigned long long)u);
	else if (rows->cell == MU_CELL_I8 || rows->cell == MU_CELL_I4)
		snprintf(text, nbytes, "%lld", (long long)i);
	else if (isnan(d))
		snprintf(text, nbytes, "NaN");
	else
		snprintf(text, nbytes, "%s%.9g", isinf(d) && d > 0 ? "+" : "", d);
}

/* "element 2,3", "column price" */
static void print_position(const struct mu_rows *rows, size_t k, char *text, size_t nbytes)
{
	const struct mu_shape *s = &rows->shape;
	const char *column = rows->columns;
	size_t left = mu_shape_sample(s);
	int used;

	for (size_t i = 0; column && i < k; i++)
		column = strchr(column, ',') ? strchr(column, ',') + 1 : NULL;
	if (column) {
		snprintf(text, nbytes, "column %.*s", (int)strcspn(column, ","), column);
		return;
	}
	used = snprintf(text, nbytes, "element ");
	for (int axis = 1; axis < s->ndims && (size_t)used < nbytes; axis++) {
		left /= s->dims[axis];
		used += snprintf(text + used, nbytes - (size_t)used, "%s%zu", axis > 1 ? "," : "",
				 k / left);
		k %= left;
	}
}

const char *mu_rows_where(const struct mu_rows *rows, size_t i, char *text, size_t nbytes)
{
	snprintf(text, nbytes, "%s, sample %zu", rows->name, i);
	return text;
}

enum mu_status mu_rows_read(const struct mu_rows *rows, size_t i, struct mu_record_buffer *buffer,
			    float *out)
{
	enum mu_status st = MU_OK;
	const size_t n = mu_shape_sample(&rows->shape);
	const bool real = rows->cell >= MU_CELL_F2;
	char value[40], position[POSITION_BYTES];
	const uint8_t *bytes;
	size_t bad;

	MU_TRY(mu_rows_bytes(rows, i, buffer, &bytes));
	bad = convert(rows->cell, out, bytes, n);
	if (bad == n)
		goto out;
	print_cell(rows, bytes + bad * mu_cell_bytes(rows->cell), value, sizeof value);
	print_position(rows, bad, position, sizeof position);
	MU_FAIL(MU_ERR_FORMAT,
		real ? "%s: sample %zu, %s is %s; all numbers must be finite in float32: remove "
		       "the sample, or skip bad records"
		     : "%s: sample %zu, %s is %s, an integer that float32 does not hold: convert "
		       "the array to floats, which are rounded, or scale it",
		rows->name, i, position, value);
out:
	return st;
}
