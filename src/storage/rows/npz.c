/* SPDX-License-Identifier: Apache-2.0 */
/*
 * .npz files: ZIP archives (PKWARE, "APPNOTE.TXT", 4.3 and 4.5.3) of .npy files, stored or
 * deflated. Without a name the input is member x and the targets are y, or as Keras names them.
 */
#include <math.h>
#include <string.h>
#include <zlib.h>

#include <muster/storage.h>

#include "rows.h"
#include "storage/records/record_io.h"

enum {
	END_BYTES = 22,     /* of the end of the directory, without its comment */
	LOCATOR_BYTES = 20, /* zip64: where its end of the directory is */
	END64_BYTES = 56,
	ENTRY_BYTES = 46, /* of the directory, without names */
	LOCAL_BYTES = 30, /* before a member's bytes, without names */
	COMMENT_MAX = 65535,
	RATIO_MAX = 1032, /* largest compression ratio of deflate */
	NAME_BYTES = 256,
	MOST_JOINED = 64, /* arrays of targets */
	STORED = 0,
	DEFLATED = 8,
};

static const char end_magic[] = "PK\5\6", end64_magic[] = "PK\6\6", locator_magic[] = "PK\6\7",
		  entry_magic[] = "PK\1\2", local_magic[] = "PK\3\4";

struct archive {
	const char *path;
	struct mu_file *file;
	uint8_t *directory; /* owned; n bytes */
	size_t n;
};

struct entry {
	char name[NAME_BYTES]; /* without ".npy" */
	unsigned flags, method;
	uint32_t checksum;
	size_t packed, nbytes, at; /* at: of the local header */
};

static unsigned get_u16(const uint8_t *p)
{
	return (unsigned)p[0] | (unsigned)p[1] << 8;
}

static bool is_at(const uint8_t *p, const char *mark)
{
	return memcmp(p, mark, 4) == 0;
}

/* ---- the directory ---- */

/* Size and place of the directory, from the last END_BYTES and more of the file. */
static enum mu_status find_directory(const struct archive *a, size_t *at, size_t *n)
{
	enum mu_status st = MU_OK;
	const size_t most = END_BYTES + COMMENT_MAX;
	const size_t length = a->file->nbytes < most ? a->file->nbytes : most;
	uint8_t *tail = NULL, locator[LOCATOR_BYTES], end64[END64_BYTES];
	size_t end = length, place;

	MU_TRY(MU_ALLOC(tail, length + 1, "end of the archive"));
	MU_TRY(mu_file_read(a->file, a->file->nbytes - length, tail, length));
	for (size_t i = length < END_BYTES ? 0 : length - END_BYTES + 1; i-- > 0 && end == length;)
		if (is_at(tail + i, end_magic))
			end = i;
	if (end == length)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: is no .npz file, or is cut: it has no directory of a ZIP archive",
			a->path);
	*n = mu_get_u32(tail + end + 12);
	*at = mu_get_u32(tail + end + 16);
	place = a->file->nbytes - length + end;
	if (*n != UINT32_MAX && *at != UINT32_MAX)
		goto out;
	if (place < LOCATOR_BYTES)
		MU_FAIL(MU_ERR_FORMAT, "%s: its directory is damaged", a->path);
	MU_TRY(mu_file_read(a->file, place - LOCATOR_BYTES, locator, sizeof locator));
	place = mu_get_u64(locator + 8);
	if (!is_at(locator, locator_magic) || place > a->file->nbytes ||
	    a->file->nbytes - place < END64_BYTES)
		MU_FAIL(MU_ERR_FORMAT, "%s: its directory is damaged", a->path);
	MU_TRY(mu_file_read(a->file, place, end64, sizeof end64));
	if (!is_at(end64, end64_magic))
		MU_FAIL(MU_ERR_FORMAT, "%s: its directory is damaged", a->path);
	*n = mu_get_u64(end64 + 40);
	*at = mu_get_u64(end64 + 48);
out:
	mu_free(tail);
	return st;
}

static enum mu_status read_directory(struct archive *a)
{
	enum mu_status st = MU_OK;
	size_t at = 0, n = 0;

	MU_TRY(find_directory(a, &at, &n));
	if (at > a->file->nbytes || n > a->file->nbytes - at)
		MU_FAIL(MU_ERR_FORMAT, "%s: is cut: its directory would end at byte %zu of %zu",
			a->path, at + n, a->file->nbytes);
	MU_TRY(MU_ALLOC(a->directory, n + 1, "directory of the archive"));
	MU_TRY(mu_file_read(a->file, at, a->directory, n));
	a->n = n;
out:
	return st;
}

/* Sizes that 4 bytes do not hold are in the extra fields, in order. */
static void read_extra(struct entry *e, const uint8_t *p, size_t n)
{
	size_t *const sizes[] = {&e->nbytes, &e->packed, &e->at};

	for (size_t length; n >= 4; p += length, n -= length) {
		length = 4 + (size_t)get_u16(p + 2);
		if (length > n)
			return;
		if (get_u16(p) != 1)
			continue;
		for (size_t k = 0, from = 4; k < 3; k++)
			if (*sizes[k] == UINT32_MAX && from + 8 <= length) {
				*sizes[k] = mu_get_u64(p + from);
				from += 8;
			}
		return;
	}
}

/* The entry at byte *at of the directory; *at: of the next one. False: there is none. */
static bool next_entry(const struct archive *a, size_t *at, struct entry *e)
{
	const uint8_t *p = a->directory + *at;
	size_t name, extra, n;

	if (a->n - *at < ENTRY_BYTES || !is_at(p, entry_magic))
		return false;
	name = get_u16(p + 28);
	extra = get_u16(p + 30);
	n = ENTRY_BYTES + name + extra + get_u16(p + 32);
	if (n > a->n - *at)
		return false;
	*e = (struct entry){.flags = get_u16(p + 8),
			    .method = get_u16(p + 10),
			    .checksum = mu_get_u32(p + 16),
			    .packed = mu_get_u32(p + 20),
			    .nbytes = mu_get_u32(p + 24),
			    .at = mu_get_u32(p + 42)};
	snprintf(e->name, sizeof e->name, "%.*s", (int)name, (const char *)p + ENTRY_BYTES);
	e->name[mu_stem(e->name, ".npy") ? mu_stem(e->name, ".npy") : strlen(e->name)] = '\0';
	read_extra(e, p + ENTRY_BYTES + name, extra);
	*at += n;
	return true;
}

static bool find_entry(const struct archive *a, const char *name, struct entry *e)
{
	for (size_t at = 0; next_entry(a, &at, e);)
		if (strcmp(e->name, name) == 0)
			return true;
	return false;
}

static const char *list_entries(const struct archive *a, char *text, size_t nbytes)
{
	struct entry e;
	size_t used = 0;

	snprintf(text, nbytes, "nothing");
	for (size_t at = 0; next_entry(a, &at, &e) && used < nbytes;)
		used += (size_t)snprintf(text + used, nbytes - used, "%s%s", used ? ", " : "",
					 e.name);
	return text;
}

/* ---- a member ---- */

static enum mu_status inflate_all(const char *name, const struct entry *e, uint8_t *in,
				  uint8_t *out)
{
	enum mu_status st = MU_OK;
	z_stream z = {.next_in = in};
	size_t left_in = e->packed, left_out = e->nbytes;
	uint8_t extra;
	int error = inflateInit2(&z, -MAX_WBITS);

	if (error != Z_OK)
		MU_FAIL(MU_ERR_MEMORY, "%s: zlib cannot start", name);
	z.next_out = out;
	while (error == Z_OK) {
		if (z.avail_in == 0) {
			z.avail_in = left_in < 1 << 30 ? (uInt)left_in : 1 << 30;
			left_in -= z.avail_in;
		}
		if (z.avail_out == 0 && left_out > 0) {
			z.avail_out = left_out < 1 << 30 ? (uInt)left_out : 1 << 30;
			left_out -= z.avail_out;
		} else if (z.avail_out == 0) { /* none may come, but the end may */
			z.next_out = &extra;
			z.avail_out = 1;
		}
		error = inflate(&z, Z_NO_FLUSH);
	}
	inflateEnd(&z);
	if (error != Z_STREAM_END || z.total_out != e->nbytes)
		MU_FAIL(MU_ERR_FORMAT, "%s: its deflated data are damaged", name);
out:
	return st;
}

/* All bytes of a member, at `data` of the file, in memory. */
static enum mu_status load(const struct archive *a, const char *name, const struct entry *e,
			   size_t data, uint8_t **out)
{
	enum mu_status st = MU_OK;
	uint8_t *packed = NULL;

	*out = NULL;
	if (e->nbytes / RATIO_MAX > e->packed)
		MU_FAIL(MU_ERR_FORMAT, "%s: %zu deflated bytes cannot be %zu", name, e->packed,
			e->nbytes);
	MU_TRY(MU_ALLOC(*out, e->nbytes + 1, name));
	if (e->method == STORED) {
		MU_TRY(mu_file_read(a->file, data, *out, e->nbytes));
	} else {
		MU_TRY(MU_ALLOC(packed, e->packed + 1, name));
		MU_TRY(mu_file_read(a->file, data, packed, e->packed));
		MU_TRY(inflate_all(name, e, packed, *out));
	}
	if (mu_checksum(0, *out, e->nbytes) != e->checksum)
		MU_FAIL(MU_ERR_FORMAT, "%s: is damaged: its checksum is another one", name);
out:
	mu_free(packed);
	if (st != MU_OK) {
		mu_free(*out);
		*out = NULL;
	}
	return st;
}

/* *data: where its bytes are. */
static enum mu_status find_data(const struct archive *a, const char *name, const struct entry *e,
				size_t *data)
{
	enum mu_status st = MU_OK;
	const size_t all = a->file->nbytes;
	uint8_t local[LOCAL_BYTES];

	if (e->flags & 1)
		MU_FAIL(MU_ERR_FORMAT, "%s: is encrypted, which is not read", name);
	if (e->method != STORED && e->method != DEFLATED)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: is packed by method %u of ZIP; stored and deflated are read: "
			"numpy.savez and numpy.savez_compressed write these",
			name, e->method);
	if (e->method == STORED && e->packed != e->nbytes)
		MU_FAIL(MU_ERR_FORMAT, "%s: is damaged: it has two sizes", name);
	if (e->at > all || all - e->at < LOCAL_BYTES)
		MU_FAIL(MU_ERR_FORMAT, "%s: is cut or damaged", name);
	MU_TRY(mu_file_read(a->file, e->at, local, sizeof local));
	*data = e->at + LOCAL_BYTES + get_u16(local + 26) + get_u16(local + 28);
	if (!is_at(local, local_magic) || *data > all || e->packed > all - *data)
		MU_FAIL(MU_ERR_FORMAT, "%s: is cut or damaged", name);
out:
	return st;
}

static enum mu_status open_member(struct mu_rows *rows, const struct archive *a,
				  const struct entry *e)
{
	enum mu_status st = MU_OK;
	struct mu_rows_piece part = {.n = e->nbytes};
	struct mu_file own;

	mu_file_init(&own);
	MU_TRY(mu_rows_set_name(rows, a->path, e->name));
	MU_TRY(find_data(a, rows->name, e, &part.at));
	if (e->method == STORED && e->nbytes > MU_ROWS_KEPT) {
		MU_TRY(mu_file_open(&own, a->path));
		part.file = &own;
	} else {
		MU_TRY(load(a, rows->name, e, part.at, &part.memory));
	}
	MU_TRY(mu_rows_from_npy(rows, &part));
out:
	mu_free(part.memory);
	mu_file_close(&own);
	return st;
}

/* Members where no name is given: inputs, then targets; a pair belongs together. For training,
 * then for validation. */
static const char *const usual[2][5][2] = {
	{{"x", "y"}, {"X", "Y"}, {"x_train", "y_train"}, {"x_val", "y_val"}, {"x_test", "y_test"}},
	{{"x_val", "y_val"}, {"x_test", "y_test"}, {"x", "y"}, {"X", "Y"}, {"x_train", "y_train"}}};

/* The input, or of targets alone the targets; and targets beside the input (NULL: none). A file of
 * one array has that. */
static bool find_usual(const struct archive *a, const struct mu_rows_config *config,
		       struct entry *e, const char **target)
{
	const char *const(*pair)[2] = usual[config->validate];
	size_t at = 0;
	struct entry other;

	*target = NULL;
	for (int i = 0; i < 5; i++)
		if (find_entry(a, pair[i][config->targets_alone], e)) {
			*target = pair[i][1];
			return true;
		}
	return (config->labels || config->targets_alone || config->unlabelled) &&
	       next_entry(a, &at, e) && !next_entry(a, &at, &other);
}

/* ---- several arrays of targets ---- */

/* Opens the arrays of the names "a,b", *n of them. */
static enum mu_status open_named(struct mu_rows_pair *parts, size_t *n, const struct archive *a,
				 const char *names)
{
	enum mu_status st = MU_OK;
	struct entry e;
	char list[512], name[NAME_BYTES];

	for (const char *p = names; p; p = strchr(p, ',') ? strchr(p, ',') + 1 : NULL) {
		snprintf(name, sizeof name, "%.*s", (int)strcspn(p, ","), p);
		if (*n == MOST_JOINED)
			MU_FAIL(MU_ERR_USAGE, "label columns %s: more than %d arrays", names,
				MOST_JOINED);
		if (!find_entry(a, name, &e))
			MU_FAIL(MU_ERR_USAGE,
				"%s: has no array \"%s\" for targets (label columns); it has %s",
				a->path, name, list_entries(a, list, sizeof list));
		mu_file_init(&parts[*n].data.file);
		mu_file_init(&parts[*n].target.file);
		MU_TRY(open_member(&parts[(*n)++].data, a, &e));
		if (parts[*n - 1].data.n != parts[0].data.n)
			MU_FAIL(MU_ERR_FORMAT,
				"%s has %zu sample%s, and %s has %zu: there must be as many",
				parts[0].data.name, parts[0].data.n, MU_S(parts[0].data.n),
				parts[*n - 1].data.name, parts[*n - 1].data.n);
		for (size_t k = 0; k + 1 < *n; k++)
			if (strcmp(parts[k].data.name, parts[*n - 1].data.name) == 0)
				MU_FAIL(MU_ERR_USAGE, "label columns %s: \"%s\" is there twice",
					names, name);
	}
out:
	return st;
}

/* Row i of all parts, one after another. Where bad records are left out, one with a number that is
 * none is not finite. */
static enum mu_status join_row(float *out, const struct mu_rows_pair *parts, size_t n, size_t i,
			       struct mu_record_buffer *buffer, bool skip)
{
	enum mu_status st = MU_OK;

	for (size_t k = 0; k < n; k++) {
		const enum mu_status read = mu_rows_read(&parts[k].data, i, buffer, out);
		const size_t numbers = mu_shape_sample(&parts[k].data.shape);

		if (read == MU_ERR_FORMAT && skip) {
			mu_trace_clear();
			for (size_t j = 0; j < numbers; j++)
				out[j] = NAN;
		} else {
			MU_TRY(read);
		}
		out += numbers;
	}
out:
	return st;
}

/* Each number of a row has the name of its array: "box,box,class". */
static enum mu_status name_numbers(struct mu_rows *rows, const struct mu_rows_pair *parts, size_t n,
				   const char *names)
{
	enum mu_status st = MU_OK;
	const size_t room = mu_shape_sample(&rows->shape) * (strlen(names) + 1) + 1;
	size_t used = 0;

	MU_TRY(MU_ALLOC(rows->columns, room, "names of columns"));
	for (size_t k = 0; k < n; k++) {
		for (size_t i = 0; i < mu_shape_sample(&parts[k].data.shape); i++)
			used += (size_t)snprintf(rows->columns + used, room - used, "%s%.*s",
						 used > 0 ? "," : "", (int)strcspn(names, ","),
						 names);
		names += strcspn(names, ",") + 1;
	}
out:
	return st;
}

/* The arrays of the names side by side: a row is what each of them has of the sample. */
static enum mu_status join(struct mu_rows *rows, const struct archive *a,
			   const struct mu_rows_config *config)
{
	enum mu_status st = MU_OK;
	struct mu_rows_pair parts[MOST_JOINED] = {{.note = ""}};
	struct mu_record_buffer buffer = {.bytes = NULL};
	size_t n = 0, dims[2] = {0};
	float *out = NULL;

	MU_TRY(open_named(parts, &n, a, config->columns));
	rows->cell = MU_CELL_F4;
	rows->integers = true;
	dims[0] = parts[0].data.n;
	for (size_t k = 0; k < n; k++) {
		dims[1] += mu_shape_sample(&parts[k].data.shape);
		rows->integers &= parts[k].data.integers;
	}
	MU_TRY(mu_rows_set_name(rows, a->path, config->columns));
	MU_TRY(mu_rows_set_shape(rows, 2, dims));
	MU_TRY(mu_alloc((void **)&out, rows->n * rows->stride, rows->name));
	rows->memory = (uint8_t *)out;
	for (size_t i = 0; i < rows->n; i++)
		MU_TRY(join_row(out + i * dims[1], parts, n, i, &buffer, config->skip));
	if (dims[1] <= MOST_JOINED)
		MU_TRY(name_numbers(rows, parts, n, config->columns));
out:
	for (size_t k = 0; k < n; k++)
		mu_rows_close(&parts[k]);
	mu_record_buffer_release(&buffer);
	return st;
}

static bool is_joined(const struct mu_rows_config *config)
{
	return !config->labels && config->columns && strcmp(config->columns, "none") != 0;
}

static enum mu_status open_npz(struct mu_rows_pair *pair, const struct mu_rows_config *config,
			       const char *path, const char *member)
{
	enum mu_status st = MU_OK;
	struct mu_file file;
	struct archive a = {.path = path, .file = &file};
	struct entry e, target;
	const char *beside = NULL;
	char list[512];

	mu_file_init(&file);
	MU_TRY(mu_file_open(&file, path));
	MU_TRY(read_directory(&a));
	if (is_joined(config) && config->targets_alone && member)
		MU_FAIL(MU_ERR_USAGE, "label columns %s: %s:%s is one array: name the file alone",
			config->columns, path, member);
	if (is_joined(config) && config->targets_alone) {
		MU_TRY(join(&pair->data, &a, config));
		goto out;
	}
	if (member ? !find_entry(&a, member, &e) : !find_usual(&a, config, &e, &beside))
		MU_FAIL(MU_ERR_FORMAT, "%s: has no array %s; it has %s: write %s:NAME", path,
			member                  ? member
			: config->targets_alone ? "y"
						: "x",
			list_entries(&a, list, sizeof list), path);
	MU_TRY(open_member(&pair->data, &a, &e));
	if (is_joined(config))
		MU_TRY(join(&pair->target, &a, config));
	else if (beside && !config->labels && !config->targets_alone &&
		 find_entry(&a, beside, &target))
		MU_TRY(open_member(&pair->target, &a, &target));
out:
	mu_free(a.directory);
	mu_file_close(&file);
	return st;
}

const struct mu_rows_format mu_rows_npz = {
	.ending = ".npz",
	.members = true,
	.open = open_npz,
};
