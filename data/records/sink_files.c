/* SPDX-License-Identifier: Apache-2.0 */
/* Records as RecordIO, HDF5, CIFAR's and IDX files. */
#include <muster/storage.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "sink.h"

/* ---- RecordIO ---- */

struct rec {
	struct mu_recordio_writer *writer;
	struct mu_record_buffer buffer;
};

static enum mu_status open_rec(struct data_sink *sink, const char *path)
{
	enum mu_status st = MU_OK;
	struct rec *rec;
	size_t n = strlen(path);
	char *index = NULL;

	MU_TRY(MU_ALLOC(rec, 1, "RecordIO output"));
	sink->impl = rec;
	MU_TRY(MU_ALLOC(index, n + 1, "file name"));
	snprintf(index, n + 1, "%.*s.idx", (int)n - 4, path);
	MU_TRY(mu_recordio_create(&rec->writer, path, index));
out:
	mu_free(index);
	return st;
}

static enum mu_status add_rec(struct data_sink *sink, const struct data_sample *s)
{
	enum mu_status st = MU_OK;
	struct rec *rec = sink->impl;
	struct mu_record record = *s->record;
	const uint8_t *payload;
	size_t n;

	record.data = s->bytes;
	record.n = s->n;
	MU_TRY(mu_record_pack(&record, &rec->buffer, &payload, &n));
	MU_TRY(mu_recordio_write(rec->writer, record.id, payload, n));
out:
	return st;
}

static enum mu_status finish_rec(struct data_sink *sink, bool commit)
{
	struct rec *rec = sink->impl;
	const struct mu_records_info *source = &sink->config.source;
	enum mu_status st = mu_recordio_finish(rec->writer, commit);

	if (commit && st == MU_OK)
		st = mu_class_names_write(sink->path, source->class_names,
					  source->class_names ? source->classes : 0);
	mu_record_buffer_release(&rec->buffer);
	mu_free(rec);
	return st;
}

const struct data_sink_ops data_sink_rec = {
	.names = DATA_NAMES_ANY,
	.open = open_rec,
	.add = add_rec,
	.finish = finish_rec,
};

/* ---- HDF5 ---- */

/* The writer is made when the first sample shows the shape. */
struct h5 {
	struct mu_data_writer *writer;
	size_t h, w, c;
};

static enum mu_status open_h5(struct data_sink *sink, const char *path)
{
	struct h5 *h5;
	enum mu_status st = MU_ALLOC(h5, 1, "HDF5 output");

	(void)path;
	sink->impl = h5;
	return st;
}

static enum mu_status create_h5(struct data_sink *sink, struct h5 *h5, const struct data_sample *s)
{
	const struct mu_records_info *source = &sink->config.source;
	struct mu_data_file_config config = {
		.kind = sink->ops->pixels ? MU_RECORD_RAW : MU_RECORD_ENCODED,
		.shape = MU_SAMPLE(s->c, s->h, s->w),
		.class_names = source->class_names,
		.classes = source->class_names ? source->classes : 0,
		.creator = sink->config.creator,
	};

	*h5 = (struct h5){NULL, s->h, s->w, s->c};
	return mu_data_file_create(&h5->writer, sink->path, &config);
}

static enum mu_status add_h5(struct data_sink *sink, const struct data_sample *s)
{
	enum mu_status st = MU_OK;
	struct h5 *h5 = sink->impl;
	struct mu_record record = *s->record;

	if (!h5->writer)
		MU_TRY(create_h5(sink, h5, s));
	if (sink->ops->pixels && (s->h != h5->h || s->w != h5->w || s->c != h5->c))
		MU_FAIL(MU_ERR_FORMAT,
			"%s: the image has %zu x %zu pixels, the first one %zu x %zu; raw images "
			"must all have as many",
			s->where, s->w, s->h, h5->w, h5->h);
	record.data = s->bytes;
	record.n = s->n;
	MU_TRY(mu_data_file_write(h5->writer, &record));
out:
	return st;
}

static enum mu_status finish_h5(struct data_sink *sink, bool commit)
{
	struct h5 *h5 = sink->impl;
	enum mu_status st = mu_data_file_finish(h5->writer, commit);

	mu_free(h5);
	return st;
}

const struct data_sink_ops data_sink_h5 = {
	.names = DATA_NAMES_ANY,
	.open = open_h5,
	.add = add_h5,
	.finish = finish_h5,
};

const struct data_sink_ops data_sink_h5_raw = {
	.names = DATA_NAMES_ANY,
	.pixels = true,
	.open = open_h5,
	.add = add_h5,
	.finish = finish_h5,
};

/* ---- CIFAR ---- */

enum { SIDE = 32, PLANE = SIDE * SIDE, CIFAR_RECORD = 1 + 3 * PLANE, LABEL_MAX = 255 };

struct cifar {
	struct mu_replace replace;
	FILE *stream;
};

static enum mu_status open_cifar(struct data_sink *sink, const char *path)
{
	enum mu_status st = MU_OK;
	struct cifar *cifar;

	MU_TRY(MU_ALLOC(cifar, 1, "CIFAR output"));
	sink->impl = cifar;
	MU_TRY(mu_replace_begin(&cifar->replace, path));
	cifar->stream = fopen(cifar->replace.written, "wbe");
	if (!cifar->stream)
		MU_FAIL(MU_ERR_IO, "%s: cannot be created: %s", path, strerror(errno));
out:
	return st;
}

static enum mu_status add_cifar(struct data_sink *sink, const struct data_sample *s)
{
	enum mu_status st = MU_OK;
	struct cifar *cifar = sink->impl;
	uint8_t record[CIFAR_RECORD];

	if (s->h != SIDE || s->w != SIDE || s->c != 3 || s->label > LABEL_MAX)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: %zu x %zu pixels of %zu channels, label %ld; CIFAR's files hold "
			"32 x 32 of 3, labels up to 255",
			s->where, s->w, s->h, s->c, s->label);
	record[0] = (uint8_t)s->label;
	for (size_t i = 0; i < 3 * PLANE; i++)
		record[1 + i] = s->bytes[i % PLANE * 3 + i / PLANE];
	if (fwrite(record, 1, sizeof record, cifar->stream) != sizeof record)
		MU_FAIL(MU_ERR_IO, "%s: cannot be written: %s", sink->path, strerror(errno));
out:
	return st;
}

static enum mu_status finish_cifar(struct data_sink *sink, bool commit)
{
	enum mu_status st = MU_OK;
	struct cifar *cifar = sink->impl;
	bool closed = cifar->stream && fclose(cifar->stream) == 0;

	if (!commit)
		goto out;
	if (!closed)
		MU_FAIL(MU_ERR_IO, "%s: cannot be written: %s", sink->path, strerror(errno));
	MU_TRY(mu_replace_commit(&cifar->replace));
out:
	mu_replace_release(&cifar->replace);
	mu_free(cifar);
	return st;
}

const struct data_sink_ops data_sink_cifar = {
	.pixels = true,
	.classes = true,
	.open = open_cifar,
	.add = add_cifar,
	.finish = finish_cifar,
};

/* ---- IDX ---- */

struct idx {
	char *labels_path; /* owned */
	struct data_buffer pixels, labels;
	size_t n, h, w;
};

static const char images_part[] = "images-idx3", labels_part[] = "labels-idx1";

static enum mu_status open_idx(struct data_sink *sink, const char *path)
{
	enum mu_status st = MU_OK;
	struct idx *idx;
	const char *name = strstr(path, images_part);
	size_t n = strlen(path) + 1;

	MU_TRY(MU_ALLOC(idx, 1, "IDX output"));
	sink->impl = idx;
	for (const char *c = name; c; c = strstr(c + 1, images_part))
		name = c;
	MU_TRY(MU_ALLOC(idx->labels_path, n, "file name"));
	snprintf(idx->labels_path, n, "%.*s%s%s", (int)(name - path), path, labels_part,
		 name + sizeof images_part - 1);
out:
	return st;
}

static enum mu_status add_idx(struct data_sink *sink, const struct data_sample *s)
{
	enum mu_status st = MU_OK;
	struct idx *idx = sink->impl;
	size_t plane = s->h * s->w;
	struct data_pixels pixels = {s->bytes, s->w, s->h};

	if (idx->n == 0) {
		idx->h = s->h;
		idx->w = s->w;
	}
	if (s->h != idx->h || s->w != idx->w || s->label > LABEL_MAX)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: %zu x %zu pixels, label %ld; the first image has %zu x %zu, and "
			"labels go up to 255",
			s->where, s->w, s->h, s->label, idx->w, idx->h);
	if (s->c != 1 && (s->c != 3 || !data_is_grey(&pixels)))
		MU_FAIL(MU_ERR_FORMAT, "%s: a colour image; IDX files hold grey ones", s->where);
	MU_TRY(data_buffer_grow(&idx->pixels, idx->n * plane, (idx->n + 1) * plane));
	MU_TRY(data_buffer_grow(&idx->labels, idx->n, idx->n + 1));
	for (size_t i = 0; i < plane; i++)
		idx->pixels.bytes[idx->n * plane + i] = s->bytes[i * s->c];
	idx->labels.bytes[idx->n++] = (uint8_t)s->label;
out:
	return st;
}

static enum mu_status finish_idx(struct data_sink *sink, bool commit)
{
	enum mu_status st = MU_OK;
	struct idx *idx = sink->impl;
	struct mu_idx images = {.ndims = 3, .dims = {idx->n, idx->h, idx->w}};
	struct mu_idx labels = {.ndims = 1, .dims = {idx->n}};

	images.data = idx->pixels.bytes;
	labels.data = idx->labels.bytes;
	if (!commit)
		goto out;
	MU_TRY(mu_idx_write(sink->path, &images));
	MU_TRY(mu_idx_write(idx->labels_path, &labels));
out:
	data_buffer_release(&idx->pixels);
	data_buffer_release(&idx->labels);
	mu_free(idx->labels_path);
	mu_free(idx);
	return st;
}

const struct data_sink_ops data_sink_idx = {
	.grey = true,
	.pixels = true,
	.classes = true,
	.open = open_idx,
	.add = add_idx,
	.finish = finish_idx,
};
