/* SPDX-License-Identifier: Apache-2.0 */
/* Images in RecordIO files, several as one. */

#include "record_io.h"
#include "records.h"

enum { WHERE_BYTES = 600 };

struct part {
	struct mu_recordio *file;
	size_t first; /* its first record in the whole */
};

struct record_files {
	struct mu_path_list paths, indexes;
	struct part *part; /* paths.n; owned */
	struct mu_class_names names;
};

static bool holds(const struct mu_records_probe *probe)
{
	/* A file with a damaged start must be reported as a damaged file. */
	return (probe->n >= 4 && mu_get_u32(probe->head) == MU_RECORDIO_MAGIC) ||
	       (!probe->folder && mu_stem(probe->path, ".rec"));
}

/* The file of record i; *local is its number there. */
static size_t find_part(const struct mu_records *r, size_t i, size_t *local)
{
	const struct record_files *f = r->impl;
	size_t low = 0, high = f->paths.n;

	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (f->part[middle].first <= i)
			low = middle;
		else
			high = middle;
	}
	*local = i - f->part[low].first;
	return low;
}

static void where(const struct mu_records *r, size_t i, char *text, size_t nbytes)
{
	const struct record_files *f = r->impl;
	size_t local, part = find_part(r, i, &local);
	const struct mu_recordio *file = f->part[part].file;

	snprintf(text, nbytes, "%s, record %zu (key %llu) at byte %zu", f->paths.path[part], local,
		 (unsigned long long)mu_recordio_key(file, local), mu_recordio_at(file, local));
}

static enum mu_status read_record(const struct mu_records *r, size_t i,
				  struct mu_record_buffer *buffer, struct mu_record *out)
{
	enum mu_status st = MU_OK;
	const struct record_files *f = r->impl;
	char text[WHERE_BYTES];
	size_t local, part = find_part(r, i, &local), n;
	const uint8_t *payload;

	MU_TRY(mu_recordio_read(f->part[part].file, local, buffer, &payload, &n));
	st = mu_record_unpack(payload, n, buffer, out, f->paths.path[part]);
	if (st == MU_ERR_FORMAT) {
		/* Unpack again for the error, with the record's place, whose text costs time. */
		where(r, i, text, sizeof text);
		MU_TRY(mu_record_unpack(payload, n, buffer, out, text));
	}
out:
	return st;
}

static size_t bound(const struct mu_records *r, size_t i)
{
	const struct record_files *f = r->impl;
	size_t local, part = find_part(r, i, &local);

	return mu_recordio_at(f->part[part].file, local + 1) -
	       mu_recordio_at(f->part[part].file, local);
}

static enum mu_status open_parts(struct mu_records *r, struct record_files *f)
{
	enum mu_status st = MU_OK;
	const char *indexes = r->config.indexes;
	bool searched = indexes && !*indexes;

	for (size_t i = 0; i < f->paths.n; i++) {
		struct part *part = &f->part[i];
		const char *index = f->indexes.n ? f->indexes.path[i] : searched ? "" : NULL;

		MU_TRY(mu_recordio_open(&part->file, f->paths.path[i], index));
		part->first = r->info.n;
		r->info.n += mu_recordio_count(part->file);
	}
out:
	return st;
}

static enum mu_status open_files(struct mu_records *r, const char *paths)
{
	enum mu_status st = MU_OK;
	struct record_files *f;
	struct mu_record_buffer buffer = {0};
	struct mu_record record;
	const char *indexes = r->config.indexes;

	MU_TRY(MU_ALLOC(f, 1, "RecordIO files"));
	r->impl = f;
	MU_TRY(mu_path_list_split(&f->paths, paths, "the path of a .rec file"));
	if (indexes && *indexes)
		MU_TRY(mu_path_list_split(&f->indexes, indexes, "the path of an .idx file"));
	if (f->indexes.n && f->indexes.n != f->paths.n)
		MU_FAIL(MU_ERR_USAGE, "%zu .idx files for %zu .rec files: %s and %s", f->indexes.n,
			f->paths.n, indexes, paths);
	MU_TRY(MU_ALLOC(f->part, f->paths.n, "RecordIO files"));
	MU_TRY(open_parts(r, f));
	r->info.kind = MU_RECORD_ENCODED;
	r->info.format = "RecordIO";
	MU_TRY(mu_class_names_read(&f->names, f->paths.path[0]));
	r->info.class_names = f->names.name;
	r->info.classes = f->names.n;
	/* The first record shows whether the records are images. */
	MU_TRY(read_record(r, 0, &buffer, &record));
	r->info.label_width = record.n_labels;
	MU_TRY(mu_records_check_labels(r, 0, record.labels, record.n_labels));
out:
	mu_record_buffer_release(&buffer);
	return st;
}

static void close_files(struct mu_records *r)
{
	struct record_files *f = r->impl;

	for (size_t i = 0; f->part && i < f->paths.n; i++)
		mu_recordio_close(f->part[i].file);
	mu_free(f->part);
	mu_class_names_release(&f->names);
	mu_path_list_release(&f->paths);
	mu_path_list_release(&f->indexes);
	mu_free(f);
}

static enum mu_status unchanged(const struct mu_records *r)
{
	enum mu_status st = MU_OK;
	const struct record_files *f = r->impl;

	for (size_t i = 0; i < f->paths.n; i++)
		MU_TRY(mu_recordio_unchanged(f->part[i].file));
out:
	return st;
}

static void hash_files(const struct mu_records *r, uint64_t *listing, uint64_t *times)
{
	const struct record_files *f = r->impl;

	for (size_t i = 0; i < f->paths.n; i++)
		mu_recordio_hash_files(f->part[i].file, listing, times);
}

const struct mu_records_ops mu_records_recordio = {
	.files = ".rec files (RecordIO)",
	.several = true,
	.holds = holds,
	.open = open_files,
	.close = close_files,
	.read = read_record,
	.bound = bound,
	.where = where,
	.unchanged = unchanged,
	.hash_files = hash_files,
};
