/* SPDX-License-Identifier: Apache-2.0 */
/*
 * .npy files (NumPy, "NEP 1: a simple file format for NumPy arrays"), versions 1 to 3: "\x93NUMPY",
 * the version, the length of the header (2 bytes, from version 2 on 4), the header, a literal of
 * Python such as {'descr': '<f8', 'fortran_order': False, 'shape': (6, 3), }, then the numbers.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "rows.h"

static const char magic[] = "\x93NUMPY";

enum { MAGIC = 6, HEADER_MAX = 1 << 20, AXES = 32, DESCR = 64 };

struct header {
	char descr[DESCR]; /* "<f8"; "[": a list of them */
	bool fortran, has_descr, has_order, has_shape;
	int ndims;
	size_t dims[AXES];
};

static enum mu_status read_part(const struct mu_rows_piece *part, size_t at, void *out, size_t n)
{
	if (part->file)
		return mu_file_read(part->file, part->at + at, out, n);
	memcpy(out, part->memory + at, n);
	return MU_OK;
}

/* ---- the header ---- */

static const char *skip_blanks(const char *p)
{
	return p + strspn(p, " \t\r\n");
}

/* 'text'; NULL: something else. */
static const char *read_text(const char *p, char *out, size_t nbytes)
{
	const char quote = *p;
	size_t n;

	if (quote != '\'' && quote != '"')
		return NULL;
	n = strcspn(++p, quote == '"' ? "\"" : "'");
	if (p[n] != quote)
		return NULL;
	snprintf(out, nbytes, "%.*s", (int)n, p);
	return p + n + 1;
}

static const char *read_shape(const char *p, struct header *h)
{
	if (*p++ != '(')
		return NULL;
	for (p = skip_blanks(p); *p != ')'; p = skip_blanks(p)) {
		char *end;

		if (*p < '0' || *p > '9' || h->ndims == AXES)
			return NULL;
		errno = 0;
		h->dims[h->ndims++] = strtoull(p, &end, 10);
		if (errno)
			return NULL;
		p = skip_blanks(end + (*end == 'L')); /* Python 2 */
		if (*p == ',')
			p++;
		else if (*p != ')')
			return NULL;
	}
	return p + 1;
}

static const char *read_bool(const char *p, bool *value)
{
	*value = strncmp(p, "True", 4) == 0;
	return *value ? p + 4 : strncmp(p, "False", 5) == 0 ? p + 5 : NULL;
}

/* The list of a structured type: all up to its end. */
static const char *skip_list(const char *p)
{
	int depth = 0;

	do {
		depth += *p == '[' || *p == '(';
		depth -= *p == ']' || *p == ')';
	} while (*p++ && depth > 0);
	return depth == 0 ? p : NULL;
}

static const char *read_value(const char *p, const char *key, struct header *h)
{
	if (strcmp(key, "descr") == 0 && !h->has_descr) {
		h->has_descr = true;
		if (*p != '[')
			return read_text(p, h->descr, sizeof h->descr);
		snprintf(h->descr, sizeof h->descr, "[");
		return skip_list(p);
	}
	if (strcmp(key, "fortran_order") == 0 && !h->has_order) {
		h->has_order = true;
		return read_bool(p, &h->fortran);
	}
	if (strcmp(key, "shape") == 0 && !h->has_shape) {
		h->has_shape = true;
		return read_shape(p, h);
	}
	return NULL;
}

static bool parse(const char *p, struct header *h)
{
	char key[16];

	p = skip_blanks(p);
	if (*p++ != '{')
		return false;
	for (p = skip_blanks(p); *p != '}'; p = skip_blanks(p)) {
		p = read_text(p, key, sizeof key);
		if (!p || *(p = skip_blanks(p)) != ':')
			return false;
		p = read_value(skip_blanks(p + 1), key, h);
		if (!p)
			return false;
		p = skip_blanks(p);
		if (*p == ',')
			p++;
		else if (*p != '}')
			return false;
	}
	return *skip_blanks(p + 1) == '\0' && h->has_descr && h->has_order && h->has_shape;
}

static enum mu_status find_cell(struct mu_rows *rows, const struct header *h)
{
	enum mu_status st = MU_OK;
	static const char *const names[MU_CELLS] = {
		[MU_CELL_U1] = "u1", [MU_CELL_I1] = "i1", [MU_CELL_U2] = "u2", [MU_CELL_I2] = "i2",
		[MU_CELL_U4] = "u4", [MU_CELL_I4] = "i4", [MU_CELL_U8] = "u8", [MU_CELL_I8] = "i8",
		[MU_CELL_F2] = "f2", [MU_CELL_F4] = "f4", [MU_CELL_F8] = "f8"};
	static const struct {
		char kind;
		const char *what;
	} others[] = {{'[', "a structured array"},
		      {'O', "an array of Python objects (a pickle)"},
		      {'U', "an array of strings"},
		      {'S', "an array of strings"},
		      {'a', "an array of strings"},
		      {'c', "an array of complex numbers"},
		      {'V', "a structured array, or one of a type that NumPy does not know"},
		      {'M', "an array of dates"},
		      {'m', "an array of durations"},
		      {'f', "an array of long doubles"}};
	const int order = 1;
	const bool little = *(const char *)&order == 1, mark = strchr("<>|=", *h->descr) != NULL;
	const char *type = h->descr + (*h->descr && mark);

	for (int i = 0; i < MU_CELLS; i++)
		if (strcmp(type, names[i]) == 0 || (i == MU_CELL_U1 && strcmp(type, "b1") == 0)) {
			rows->cell = (enum mu_cell)i;
			rows->integers = i < MU_CELL_F2;
			rows->swapped =
				mu_cell_bytes(rows->cell) > 1 && *h->descr == (little ? '>' : '<');
			return MU_OK;
		}
	for (size_t i = 0; i < sizeof others / sizeof *others; i++)
		if (*type == others[i].kind)
			MU_FAIL(MU_ERR_FORMAT,
				"%s: is %s (type '%s'); real numbers are needed: uint8 to int64, "
				"float16, float32, float64 or bool",
				rows->name, others[i].what, h->descr);
	MU_FAIL(MU_ERR_FORMAT, "%s: has numbers of type '%s', which is not known", rows->name,
		h->descr);
out:
	return st;
}

/* *data: bytes before the numbers. */
static enum mu_status read_header(struct mu_rows *rows, const struct mu_rows_piece *part,
				  struct header *h, size_t *data)
{
	enum mu_status st = MU_OK;
	uint8_t head[12] = {0};
	const size_t got = part->n < sizeof head ? part->n : sizeof head;
	size_t before, length;
	char *text = NULL;

	MU_TRY(read_part(part, 0, head, got));
	if (got < MAGIC || memcmp(head, magic, MAGIC) != 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: is no .npy file: it begins with %02x %02x %02x %02x, not with \\x93 "
			"and NUMPY",
			rows->name, head[0], head[1], head[2], head[3]);
	if (head[6] < 1 || head[6] > 3)
		MU_FAIL(MU_ERR_FORMAT, "%s: has version %d.%d of the format; 1 to 3 are known",
			rows->name, head[6], head[7]);
	before = head[6] == 1 ? 10 : 12;
	length = (size_t)head[8] | (size_t)head[9] << 8;
	if (head[6] > 1)
		length |= (size_t)head[10] << 16 | (size_t)head[11] << 24;
	if (got < before || length > part->n - before)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: a header of %zu bytes is promised, and the file has %zu: it is "
			"damaged or cut",
			rows->name, length, part->n);
	if (length > HEADER_MAX)
		MU_FAIL(MU_ERR_FORMAT, "%s: a header of %zu bytes; at most %d are possible",
			rows->name, length, HEADER_MAX);
	MU_TRY(MU_ALLOC(text, length + 1, "header"));
	MU_TRY(read_part(part, before, text, length));
	if (strlen(text) != length || !parse(text, h))
		MU_FAIL(MU_ERR_FORMAT, "%s: its header cannot be read: %.60s", rows->name,
			mu_shown(text));
	*data = before + length;
out:
	mu_free(text);
	return st;
}

/* ---- the numbers ---- */

/* From Fortran's order, first axis fastest, to C's. */
static enum mu_status transpose(struct mu_rows *rows)
{
	enum mu_status st = MU_OK;
	const size_t width = mu_cell_bytes(rows->cell), sample = mu_shape_sample(&rows->shape);
	size_t at[MU_MAX_DIMS] = {0}, step[MU_MAX_DIMS], from = 0;
	uint8_t *out = NULL;
	const int ndims = rows->shape.ndims;

	MU_TRY(MU_ALLOC(out, rows->n * sample * width, rows->name));
	for (int axis = 0; axis < ndims; axis++)
		step[axis] = axis == 0   ? 1
			     : axis == 1 ? rows->n
					 : step[axis - 1] * rows->shape.dims[axis - 1];
	for (size_t i = 0; i < rows->n * sample; i++) {
		memcpy(out + i * width, rows->memory + from * width, width);
		for (int axis = ndims - 1; axis >= 0; axis--) {
			from += step[axis];
			if (++at[axis] < (axis ? rows->shape.dims[axis] : rows->n))
				break;
			from -= at[axis] * step[axis];
			at[axis] = 0;
		}
	}
	mu_free(rows->memory);
	rows->memory = out;
out:
	return st;
}

/* Memory, or the file. */
static enum mu_status place(struct mu_rows *rows, struct mu_rows_piece *part, size_t data,
			    size_t nbytes, bool fortran)
{
	enum mu_status st = MU_OK;
	const size_t width = mu_cell_bytes(rows->cell);

	if (part->count)
		return MU_OK;
	if (!part->file) {
		memmove(part->memory, part->memory + data, nbytes);
		rows->memory = part->memory;
		part->memory = NULL;
	} else if (nbytes <= MU_ROWS_KEPT || fortran) {
		MU_TRY(MU_ALLOC(rows->memory, nbytes, rows->name));
		MU_TRY(mu_file_read(part->file, part->at + data, rows->memory, nbytes));
	} else {
		rows->at = part->at + data;
		rows->file = *part->file;
		mu_file_init(part->file);
	}
	if (rows->memory && rows->swapped) {
		mu_rows_swap(rows->memory, nbytes / width, width);
		rows->swapped = false;
	}
	if (fortran)
		MU_TRY(transpose(rows));
out:
	return st;
}

enum mu_status mu_rows_from_npy(struct mu_rows *rows, struct mu_rows_piece *part)
{
	enum mu_status st = MU_OK;
	struct header h = {.ndims = 0};
	size_t data = 0, nbytes, there;

	MU_TRY(read_header(rows, part, &h, &data));
	MU_TRY(find_cell(rows, &h));
	MU_TRY(mu_rows_set_shape(rows, h.ndims, h.dims));
	nbytes = rows->n * rows->stride;
	there = part->n - data;
	if (there != nbytes)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: is too %s: %zu bytes of numbers, and its header promises %zu",
			rows->name, there < nbytes ? "short" : "long", there, nbytes);
	MU_TRY(place(rows, part, data, nbytes, h.fortran && h.ndims > 1));
out:
	return st;
}

static enum mu_status open_npy(struct mu_rows_pair *pair, const struct mu_rows_config *config,
			       const char *path, const char *member)
{
	enum mu_status st = MU_OK;
	struct mu_file file;
	struct mu_rows_piece part = {.file = &file, .count = config->count};

	(void)member;
	mu_file_init(&file);
	MU_TRY(mu_rows_set_name(&pair->data, path, NULL));
	MU_TRY(mu_file_open(&file, path));
	part.n = file.nbytes;
	MU_TRY(mu_rows_from_npy(&pair->data, &part));
out:
	mu_file_close(&file);
	return st;
}

/* Version 1.0 and the length of the header: 64 bytes of spaces more than NumPy writes, by which
 * such a file is known again. */
enum { OURS = 182 };
static const char ours[4] = {1, 0, (char)OURS, 0};

bool mu_rows_is_written_npy(const char *path)
{
	char begin[MAGIC + sizeof ours];
	FILE *stream = fopen(path, "rbe");
	const bool whole = stream && fread(begin, 1, sizeof begin, stream) == sizeof begin;

	if (stream)
		fclose(stream);
	return whole && memcmp(begin, magic, MAGIC) == 0 &&
	       memcmp(begin + MAGIC, ours, sizeof ours) == 0;
}

bool mu_rows_begin_npy(FILE *stream, const struct mu_shape *shape)
{
	const int order = 1;
	char sizes[128], header[OURS + 1]; /* with what is before it a multiple of 64 */
	int used = snprintf(header, sizeof header,
			    "{'descr': '%cf4', 'fortran_order': False, 'shape': %s, }",
			    *(const char *)&order == 1 ? '<' : '>',
			    mu_shape_text(shape, sizes, sizeof sizes));

	if (used > (int)sizeof header - 2) {
		errno = EOVERFLOW;
		return false;
	}
	memset(header + used, ' ', sizeof header - 1 - (size_t)used);
	header[sizeof header - 2] = '\n';
	return fwrite(magic, 1, MAGIC, stream) == MAGIC &&
	       fwrite(ours, 1, sizeof ours, stream) == sizeof ours &&
	       fwrite(header, 1, sizeof header - 1, stream) == sizeof header - 1;
}

const struct mu_rows_format mu_rows_npy = {
	.ending = ".npy",
	.magic = magic,
	.open = open_npy,
};
