/* SPDX-License-Identifier: Apache-2.0 */
/* Writes RecordIO files and their indexes. */
#include <muster/storage.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "record_io.h"

/* A text or binary file that replaces another one when it is complete. */
struct output {
	struct mu_replace replace;
	FILE *stream;
};

struct mu_recordio_writer {
	struct output records, index;
	size_t at; /* bytes written */
};

static enum mu_status begin(struct output *o, const char *path)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_replace_begin(&o->replace, path));
	o->stream = fopen(o->replace.written, "wbe");
	if (!o->stream)
		MU_FAIL(MU_ERR_IO, "%s: cannot be created: %s", path,
			strerror(errno));
out:
	return st;
}

static enum mu_status put(struct output *o, const void *data, size_t nbytes)
{
	enum mu_status st = MU_OK;

	if (nbytes && fwrite(data, 1, nbytes, o->stream) != nbytes)
		MU_FAIL(MU_ERR_IO, "%s: cannot be written: %s", o->replace.path, strerror(errno));
out:
	return st;
}

/* All data is in the file, which still has its temporary name. */
static enum mu_status end(struct output *o)
{
	enum mu_status st = MU_OK;
	FILE *stream = o->stream;

	o->stream = NULL;
	if (stream && fclose(stream) != 0)
		MU_FAIL(MU_ERR_IO, "%s: cannot be written: %s", o->replace.path, strerror(errno));
out:
	return st;
}

static void release(struct output *o)
{
	if (o->stream)
		fclose(o->stream);
	mu_replace_release(&o->replace);
}

static enum mu_status put_place(struct output *o, uint64_t key, size_t at)
{
	char line[64];
	int n = snprintf(line, sizeof line, "%llu\t%zu\n", (unsigned long long)key, at);

	return put(o, line, (size_t)n);
}

enum mu_status mu_recordio_create(struct mu_recordio_writer **out, const char *path,
				  const char *index)
{
	enum mu_status st = MU_OK;
	struct mu_recordio_writer *w = NULL;

	MU_TRY(MU_ALLOC(w, 1, "RecordIO writer"));
	MU_TRY(begin(&w->records, path));
	if (index)
		MU_TRY(begin(&w->index, index));
out:
	if (st != MU_OK) {
		mu_recordio_finish(w, false);
		w = NULL;
	}
	*out = w;
	return st;
}

static enum mu_status put_part(struct mu_recordio_writer *w, enum mu_recordio_part part,
			       const uint8_t *data, size_t n)
{
	static const uint8_t zeros[3];
	enum mu_status st = MU_OK;
	uint8_t head[MU_RECORDIO_HEAD];

	mu_put_u32(head, MU_RECORDIO_MAGIC);
	mu_put_u32(head + 4, (uint32_t)part << 29 | (uint32_t)n);
	MU_TRY(put(&w->records, head, sizeof head));
	MU_TRY(put(&w->records, data, n));
	MU_TRY(put(&w->records, zeros, (4 - n % 4) % 4));
	w->at += mu_recordio_stored(n);
out:
	return st;
}

enum mu_status mu_recordio_write(struct mu_recordio_writer *w, uint64_t key, const uint8_t *payload,
				 size_t n)
{
	enum mu_status st = MU_OK;
	size_t from = 0;

	if (n > MU_RECORDIO_PAYLOAD_MAX)
		MU_FAIL(MU_ERR_ARGUMENT,
			"%s: record of key %llu has %zu bytes; a record holds at most %d",
			w->records.replace.path, (unsigned long long)key, n,
			MU_RECORDIO_PAYLOAD_MAX);
	if (w->index.stream)
		MU_TRY(put_place(&w->index, key, w->at));
	for (size_t i = 0; i + 4 <= n; i += 4) {
		if (mu_get_u32(payload + i) != MU_RECORDIO_MAGIC)
			continue;
		MU_TRY(put_part(w, from ? MU_RECORDIO_MIDDLE : MU_RECORDIO_FIRST, payload + from,
				i - from));
		from = i + 4;
	}
	MU_TRY(put_part(w, from ? MU_RECORDIO_LAST : MU_RECORDIO_WHOLE, payload + from, n - from));
out:
	return st;
}

enum mu_status mu_recordio_finish(struct mu_recordio_writer *w, bool commit)
{
	enum mu_status st = MU_OK;

	if (!w || !commit)
		goto out;
	MU_TRY(end(&w->records));
	MU_TRY(end(&w->index));
	/* The reader detects an index that does not match its file, if this is interrupted between
	 * the two. */
	MU_TRY(mu_replace_commit(&w->records.replace));
	if (w->index.replace.path)
		MU_TRY(mu_replace_commit(&w->index.replace));
out:
	if (w) {
		release(&w->records);
		release(&w->index);
		mu_free(w);
	}
	return st;
}

enum mu_status mu_recordio_index(const char *path, const char *index, size_t *n)
{
	enum mu_status st = MU_OK;
	struct mu_file file;
	struct mu_recordio_places places = {0};
	struct output output = {0};

	mu_file_init(&file);
	MU_TRY(mu_file_open(&file, path));
	if (mu_file_is_same(path, index))
		MU_FAIL(MU_ERR_USAGE,
			"%s: is the file of the records itself; its index needs another name",
			index);
	MU_TRY(mu_recordio_scan(&places, &file));
	MU_TRY(begin(&output, index));
	for (size_t i = 0; i < places.n; i++)
		MU_TRY(put_place(&output, places.place[i].key, places.place[i].at));
	MU_TRY(end(&output));
	MU_TRY(mu_replace_commit(&output.replace));
	*n = places.n;
out:
	release(&output);
	free(places.place);
	mu_file_close(&file);
	return st;
}
