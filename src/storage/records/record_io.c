/* SPDX-License-Identifier: Apache-2.0 */
/* Reads RecordIO files. A record is one read of all its parts, which are consecutive; the parts are
 * joined in place. */
#include "record_io.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_BYTES = 1 << 20, PATH_BYTES = 4096 };

struct mu_recordio {
	struct mu_file file;
	struct mu_recordio_places places;
};

/* A record being read: its bytes start at `at`, and the first `have` of them are in memory. */
struct pending {
	const struct mu_file *f;
	struct mu_record_buffer *buffer;
	size_t at, extent, have;
};

/* X.idx beside X.rec, or beside X; false if there is no such file. */
static bool find_index(char out[PATH_BYTES], const char *path)
{
	size_t n = mu_stem(path, ".rec");

	if (n == 0)
		n = strlen(path);
	return snprintf(out, PATH_BYTES, "%.*s.idx", (int)n, path) < PATH_BYTES &&
	       access(out, F_OK) == 0;
}

enum mu_status mu_recordio_open(struct mu_recordio **out, const char *path, const char *index)
{
	enum mu_status st = MU_OK;
	struct mu_recordio *r = NULL;
	char beside[PATH_BYTES];

	MU_TRY(MU_ALLOC(r, 1, "RecordIO file"));
	MU_TRY(mu_file_open(&r->file, path));
	if (!index && find_index(beside, path))
		index = beside;
	if (index && *index)
		MU_TRY(mu_recordio_load(&r->places, &r->file, index));
	else
		MU_TRY(mu_recordio_scan(&r->places, &r->file));
out:
	if (st != MU_OK) {
		mu_recordio_close(r);
		r = NULL;
	}
	*out = r;
	return st;
}

void mu_recordio_close(struct mu_recordio *r)
{
	if (!r)
		return;
	if (r->file.path)
		mu_file_close(&r->file);
	free(r->places.place);
	mu_free(r);
}

size_t mu_recordio_count(const struct mu_recordio *r)
{
	return r->places.n;
}

uint64_t mu_recordio_key(const struct mu_recordio *r, size_t i)
{
	return r->places.place[i].key;
}

size_t mu_recordio_at(const struct mu_recordio *r, size_t i)
{
	return r->places.place[i].at;
}

/* Sizes of the records, not their places, are the same in one file and in several. */
void mu_recordio_hash_files(const struct mu_recordio *r, uint64_t *listing, uint64_t *times)
{
	for (size_t i = 0; i < r->places.n; i++) {
		const uint64_t size = r->places.place[i + 1].at - r->places.place[i].at;

		*listing = mu_hash_block(*listing, &size, sizeof size);
	}
	mu_file_hash_time(&r->file, times);
}

enum mu_status mu_recordio_unchanged(const struct mu_recordio *r)
{
	return mu_file_unchanged(&r->file);
}

/* Read at least nbytes of the record, or all bytes up to the next one. */
static enum mu_status fetch(struct pending *p, size_t nbytes)
{
	enum mu_status st = MU_OK;

	if (nbytes > p->extent)
		nbytes = p->extent;
	if (nbytes <= p->have)
		goto out;
	MU_TRY(mu_record_buffer_grow(p->buffer, p->have, nbytes));
	MU_TRY(mu_file_read(p->f, p->at + p->have, p->buffer->bytes + p->have, nbytes - p->have));
	p->have = nbytes;
out:
	return st;
}

static enum mu_status next_head(struct pending *p, size_t at, struct mu_recordio_head *head)
{
	enum mu_status st = MU_OK;

	if (p->extent - at < MU_RECORDIO_HEAD)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: the record at byte %zu goes on at byte %zu, where the next record or "
			"the end of the file is%s",
			p->f->path, p->at, p->at + at, mu_file_changed_text(p->f));
	MU_TRY(fetch(p, at + MU_RECORDIO_HEAD));
	MU_TRY(mu_recordio_head(head, p->buffer->bytes + at, p->f, p->at + at, p->at + p->extent,
				at == 0));
	MU_TRY(fetch(p, at + mu_recordio_stored(head->length)));
out:
	return st;
}

/* Join the payload at the start of the buffer, after the first head. No part moves to a later byte,
 * because a magic is shorter than a head. */
static enum mu_status join_parts(struct pending *p, size_t *n)
{
	enum mu_status st = MU_OK;
	struct mu_recordio_head head = {.last = false};
	uint8_t *bytes;
	size_t at = 0, used = MU_RECORDIO_HEAD;

	while (!head.last) {
		MU_TRY(next_head(p, at, &head));
		bytes = p->buffer->bytes;
		if (at > 0) {
			mu_put_u32(bytes + used, MU_RECORDIO_MAGIC);
			used += 4;
			memmove(bytes + used, bytes + at + MU_RECORDIO_HEAD, head.length);
		}
		used += head.length;
		at += mu_recordio_stored(head.length);
	}
	if (at != p->extent)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: the record at byte %zu ends at byte %zu; by the index the next one "
			"begins at byte %zu%s",
			p->f->path, p->at, p->at + at, p->at + p->extent,
			mu_file_changed_text(p->f));
	*n = used - MU_RECORDIO_HEAD;
out:
	return st;
}

enum mu_status mu_recordio_read(const struct mu_recordio *r, size_t i,
				struct mu_record_buffer *buffer, const uint8_t **payload, size_t *n)
{
	enum mu_status st = MU_OK;
	const struct mu_recordio_place *place = r->places.place;
	struct pending p = {.f = &r->file, .buffer = buffer};

	if (i >= r->places.n)
		MU_FAIL(MU_ERR_ARGUMENT, "%s: record %zu was asked for; there are %zu",
			r->file.path, i, r->places.n);
	p.at = place[i].at;
	p.extent = place[i + 1].at - place[i].at;
	MU_TRY(fetch(&p, FIRST_BYTES));
	MU_TRY(join_parts(&p, n));
	*payload = buffer->bytes + MU_RECORDIO_HEAD;
out:
	return st;
}
