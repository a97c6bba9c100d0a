/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MXNet's .params files: see storage.h. All numbers are little-endian. A list of arrays, then their
 * names:
 *
 *	u64 0x112, u64 0, u64 n; n arrays; u64 n; n times: u64 length, bytes
 *
 * An array: u32 magic; from 0xF993FAC9 on i32 kind of storage (0: dense); u32 dimensions; as many
 * i64 sizes; i32 type and i32 number of the device; i32 type of the numbers; these. Before MXNet
 * 0.11 there was no magic, and the dimensions and their sizes, of u32, came first.
 */
#include <muster/storage.h>

#include <stdlib.h>
#include <string.h>

#include "foreign.h"
#include "storage/file.h"

enum {
	HEAD_BYTES = 24,
	ARRAY_BYTES = 12 + 8 * MU_PARAMS_NDIMS + 12, /* most bytes before the numbers */
	BLOCK = 4096,
};

#define LIST_MAGIC 0x112u
#define MAGIC_1 0xF993FAC8u /* 64-bit sizes */
#define MAGIC_2 0xF993FAC9u /* and storage types */
#define MAGIC_3 0xF993FACAu /* and arrays without dimensions that hold one number */

struct mu_params {
	struct mu_file file;
	size_t n, room;
	struct entry {
		struct mu_params_array array;
		int dtype;
		size_t head, at; /* offsets of the array and of its numbers */
	} * of;
};

/* Number types, by their numbers in files. */
static const struct {
	const char *name;
	size_t nbytes;
	bool real;
} dtypes[] = {{"float32", 4, true}, {"float64", 8, true}, {"float16", 2, true}, {"uint8", 1, false},
	      {"int32", 4, false},  {"int8", 1, false},   {"int64", 8, false}};

enum { FLOAT32, FLOAT64, FLOAT16, DTYPES = sizeof dtypes / sizeof *dtypes };

/* ---- bytes ---- */

struct cursor {
	const struct mu_file *file;
	size_t at; /* in the file */
	size_t n, used;
	uint8_t bytes[ARRAY_BYTES];
};

/* Load up to nbytes more, as far as the file has them. */
static enum mu_status load(struct cursor *c, size_t nbytes)
{
	c->at += c->used;
	c->used = 0;
	c->n = c->file->nbytes - c->at < nbytes ? c->file->nbytes - c->at : nbytes;
	return mu_file_read(c->file, c->at, c->bytes, c->n);
}

static size_t place(const struct cursor *c)
{
	return c->at + c->used;
}

static enum mu_status take(struct cursor *c, size_t nbytes, uint64_t *out)
{
	enum mu_status st = MU_OK;

	*out = 0;
	if (c->n - c->used < nbytes)
		MU_FAIL(MU_ERR_FORMAT, "%s: ends at byte %zu, within a number that begins at %zu",
			c->file->path, c->file->nbytes, place(c));
	for (size_t i = nbytes; i-- > 0;)
		*out = *out << 8 | c->bytes[c->used + i];
	c->used += nbytes;
out:
	return st;
}

/* ---- reading: the table ---- */

static enum mu_status check_storage(struct cursor *c, size_t i)
{
	enum mu_status st = MU_OK;
	uint64_t kind;
	const size_t at = place(c);

	MU_TRY(take(c, 4, &kind));
	if (kind != 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s, byte %zu: array %zu has storage of kind %d; only dense arrays (0) can "
			"be read",
			c->file->path, at, i, (int)(uint32_t)kind);
out:
	return st;
}

/* Read the dimensions; *n: elements. */
static enum mu_status read_shape(struct cursor *c, struct entry *e, size_t i, size_t *n)
{
	enum mu_status st = MU_OK;
	const char *path = c->file->path;
	uint64_t ndims, dim, magic;
	bool old;

	*n = 1;
	MU_TRY(take(c, 4, &magic));
	old = magic < MAGIC_1 || magic > MAGIC_3;
	ndims = magic;
	if (magic == MAGIC_2 || magic == MAGIC_3)
		MU_TRY(check_storage(c, i));
	if (!old)
		MU_TRY(take(c, 4, &ndims));
	if ((ndims == 0 && magic != MAGIC_3) || ndims > MU_PARAMS_NDIMS)
		MU_FAIL(MU_ERR_FORMAT, "%s, byte %zu: array %zu has %d dimensions, not 1 to %d",
			path, place(c) - 4, i, (int)(uint32_t)ndims, MU_PARAMS_NDIMS);
	e->array.ndims = (int)ndims;
	for (size_t d = 0; d < ndims; d++) {
		MU_TRY(take(c, old ? 4 : 8, &dim));
		if (dim == 0 || dim > c->file->nbytes / *n)
			MU_FAIL(MU_ERR_FORMAT,
				"%s, byte %zu: dimension %zu of array %zu is %lld, in a file of "
				"%zu bytes",
				path, place(c) - (old ? 4 : 8), d, i, (long long)dim,
				c->file->nbytes);
		e->array.dims[d] = (size_t)dim;
		*n *= (size_t)dim;
	}
out:
	return st;
}

static enum mu_status read_array(struct cursor *c, struct entry *e, size_t i)
{
	enum mu_status st = MU_OK;
	const char *path = c->file->path;
	uint64_t device, dtype;
	size_t n, nbytes;

	MU_TRY(load(c, ARRAY_BYTES));
	e->head = place(c);
	MU_TRY(read_shape(c, e, i, &n));
	MU_TRY(take(c, 8, &device));
	MU_TRY(take(c, 4, &dtype));
	if (dtype >= DTYPES || !dtypes[dtype].real)
		MU_FAIL(MU_ERR_FORMAT,
			"%s, byte %zu: array %zu has numbers of type %d%s%s; float32 (0), float64 "
			"(1) and float16 (2) can be read",
			path, place(c) - 4, i, (int)(uint32_t)dtype, dtype < DTYPES ? ", " : "",
			dtype < DTYPES ? dtypes[dtype].name : "");
	e->dtype = (int)dtype;
	e->at = place(c);
	nbytes = n * dtypes[dtype].nbytes; /* n is at most the file's bytes */
	if (nbytes > c->file->nbytes - e->at)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: array %zu at byte %zu has %zu bytes of numbers, and the file ends "
			"after %zu",
			path, i, e->head, nbytes, c->file->nbytes - e->at);
	c->n = c->used = 0;
	c->at = e->at + nbytes;
out:
	return st;
}

/* The table grows with the data that is really there, whatever size the file claims. */
static enum mu_status make_room(struct mu_params *p)
{
	enum mu_status st = MU_OK;
	const size_t room = p->room ? 2 * p->room : 16;
	struct entry *of = NULL;

	if (p->n < p->room)
		goto out;
	MU_TRY(MU_ALLOC(of, room, "table of arrays"));
	if (p->n > 0)
		memcpy(of, p->of, p->n * sizeof *of);
	mu_free(p->of);
	p->of = of;
	p->room = room;
out:
	return st;
}

static enum mu_status read_arrays(struct mu_params *p, struct cursor *c)
{
	enum mu_status st = MU_OK;
	uint64_t magic, reserved, n;

	MU_TRY(load(c, HEAD_BYTES));
	MU_TRY(take(c, 8, &magic));
	if (magic != LIST_MAGIC)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: begins with %#llx, not with %#x: it is no .params file of MXNet%s",
			p->file.path, (unsigned long long)magic, LIST_MAGIC,
			mu_array_file_advice(p->file.path));
	MU_TRY(take(c, 8, &reserved));
	MU_TRY(take(c, 8, &n));
	for (uint64_t i = 0; i < n; i++) {
		MU_TRY(make_room(p));
		MU_TRY(read_array(c, &p->of[p->n], p->n));
		p->n++;
	}
out:
	return st;
}

static bool is_name(const char *name, size_t n)
{
	if (n == 0 || name[0] == '/' || name[n - 1] == '/')
		return false;
	for (size_t i = 0; i < n; i++)
		if ((unsigned char)name[i] < ' ' || name[i] == 127)
			return false;
	return true;
}

static enum mu_status read_name(struct mu_params *p, struct cursor *c, size_t i)
{
	enum mu_status st = MU_OK;
	char *name = p->of[i].array.name;
	size_t at;
	uint64_t n;

	MU_TRY(load(c, 8));
	at = place(c);
	MU_TRY(take(c, 8, &n));
	if (n >= sizeof p->of[i].array.name || n > p->file.nbytes - place(c))
		MU_FAIL(MU_ERR_FORMAT,
			"%s, byte %zu: the name of array %zu has %llu letters; at most %zu, and no "
			"more than the file has, can be read",
			p->file.path, at, i, (unsigned long long)n, sizeof p->of[i].array.name - 1);
	MU_TRY(mu_file_read(&p->file, place(c), name, n));
	name[n] = '\0';
	c->at = place(c) + n;
	c->n = c->used = 0;
	if (!is_name(name, n))
		MU_FAIL(MU_ERR_FORMAT, "%s, byte %zu: the name of array %zu is not a name",
			p->file.path, at + 8, i);
out:
	return st;
}

static int compare(const void *a, const void *b)
{
	const struct mu_params_array *const *x = a, *const *y = b;

	return strcmp((*x)->name, (*y)->name);
}

static enum mu_status check_twice(const struct mu_params *p)
{
	enum mu_status st = MU_OK;
	const struct mu_params_array **sorted = NULL;

	MU_TRY(MU_ALLOC(sorted, p->n + 1, "names of arrays"));
	for (size_t i = 0; i < p->n; i++)
		sorted[i] = &p->of[i].array;
	qsort(sorted, p->n, sizeof *sorted, compare);
	for (size_t i = 1; i < p->n; i++)
		if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
			MU_FAIL(MU_ERR_FORMAT, "%s: two arrays have the name \"%s\"", p->file.path,
				sorted[i]->name);
out:
	mu_free(sorted);
	return st;
}

static enum mu_status read_names(struct mu_params *p, struct cursor *c)
{
	enum mu_status st = MU_OK;
	uint64_t n;

	MU_TRY(load(c, 8));
	MU_TRY(take(c, 8, &n));
	if (n != p->n)
		MU_FAIL(MU_ERR_FORMAT, "%s, byte %zu: %llu names for %zu arrays%s", p->file.path,
			place(c) - 8, (unsigned long long)n, p->n,
			n == 0 ? ": a list without names has no parameters" : "");
	for (size_t i = 0; i < p->n; i++)
		MU_TRY(read_name(p, c, i));
	if (place(c) != p->file.nbytes)
		MU_FAIL(MU_ERR_FORMAT, "%s: %zu bytes are left behind its end at byte %zu",
			p->file.path, p->file.nbytes - place(c), place(c));
	MU_TRY(check_twice(p));
out:
	return st;
}

enum mu_status mu_params_open(struct mu_params **out, const char *path)
{
	enum mu_status st = MU_OK;
	struct mu_params *p = NULL;
	struct cursor c = {.at = 0};

	*out = NULL;
	MU_TRY(MU_ALLOC(p, 1, "file of parameters"));
	mu_file_init(&p->file);
	MU_TRY(mu_file_open(&p->file, path));
	c.file = &p->file;
	MU_TRY(read_arrays(p, &c));
	MU_TRY(read_names(p, &c));
	*out = p;
	p = NULL;
out:
	mu_params_close(p);
	return st;
}

void mu_params_close(struct mu_params *p)
{
	if (!p)
		return;
	mu_file_close(&p->file);
	mu_free(p->of);
	mu_free(p);
}

size_t mu_params_n(const struct mu_params *p)
{
	return p->n;
}

const struct mu_params_array *mu_params_array(const struct mu_params *p, size_t i)
{
	return &p->of[i].array;
}

/* ---- reading: numbers ---- */

size_t mu_params_elements(const struct mu_params_array *array)
{
	size_t n = 1;

	for (int d = 0; d < array->ndims; d++)
		n *= array->dims[d];
	return n;
}

static void to_floats(int dtype, float *out, const char *in, size_t n)
{
	double value;

	if (dtype == FLOAT16)
		mu_dtype_to_float(MU_FLOAT16, out, in, n);
	else if (dtype == FLOAT32)
		memcpy(out, in, n * sizeof *out);
	for (size_t i = 0; dtype == FLOAT64 && i < n; i++) {
		memcpy(&value, in + i * sizeof value, sizeof value);
		out[i] = (float)value;
	}
}

enum mu_status mu_params_read(const struct mu_params *p, size_t i, float *data)
{
	enum mu_status st = MU_OK;
	const struct entry *e = &p->of[i];
	const size_t n = mu_params_elements(&e->array), nbytes = dtypes[e->dtype].nbytes;
	char block[BLOCK * sizeof(double)];

	for (size_t done = 0, run; done < n; done += run) {
		run = n - done < BLOCK ? n - done : BLOCK;
		MU_TRY(mu_file_read(&p->file, e->at + done * nbytes, block, run * nbytes));
		to_floats(e->dtype, data + done, block, run);
	}
out:
	return st;
}

/* ---- writing ---- */

static void put(FILE *f, uint64_t value, size_t nbytes)
{
	for (size_t i = 0; i < nbytes; i++)
		fputc((int)(value >> 8 * i & 0xff), f);
}

static void put_head(FILE *f, const struct mu_params_array *array)
{
	put(f, MAGIC_2, 4);
	put(f, 0, 4);
	put(f, (uint64_t)array->ndims, 4);
	for (int d = 0; d < array->ndims; d++)
		put(f, array->dims[d], 8);
	put(f, 1, 4); /* the CPU */
	put(f, 0, 4);
	put(f, FLOAT32, 4);
}

static enum mu_status put_arrays(FILE *f, size_t n, const struct mu_params_array *arrays,
				 mu_params_fn *fn, void *context)
{
	enum mu_status st = MU_OK;
	float *data = NULL;

	put(f, LIST_MAGIC, 8);
	put(f, 0, 8);
	put(f, n, 8);
	for (size_t i = 0; i < n; i++) {
		const size_t elements = mu_params_elements(&arrays[i]);

		mu_free(data);
		data = NULL;
		MU_TRY(MU_ALLOC(data, elements + 1, "an array"));
		MU_TRY(fn(context, &arrays[i], data));
		put_head(f, &arrays[i]);
		fwrite(data, sizeof *data, elements, f);
	}
	put(f, n, 8);
	for (size_t i = 0; i < n; i++) {
		put(f, strlen(arrays[i].name), 8);
		fputs(arrays[i].name, f);
	}
out:
	mu_free(data);
	return st;
}

enum mu_status mu_params_write(const char *path, size_t n, const struct mu_params_array *arrays,
			       mu_params_fn *fn, void *context)
{
	enum mu_status st = MU_OK;
	struct mu_replace replace = {0};

	MU_TRY(mu_replace_open(&replace, path));
	MU_TRY(put_arrays(replace.stream, n, arrays, fn, context));
	MU_TRY(mu_replace_commit(&replace));
out:
	mu_replace_release(&replace);
	return st;
}
