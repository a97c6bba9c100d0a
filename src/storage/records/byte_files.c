/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records of files of bytes, in memory (storage/rows): IDX files, grey images and their labels, and
 * CIFAR's binary files, several as one. Ids are record numbers.
 */
#include <muster/storage.h>

#include <string.h>

#include "record_io.h"
#include "records.h"
#include "storage/rows/rows.h"

enum { PATH_BYTES = 4096, NUM_LABELS = 256 };

static const char images_part[] = "images-idx3", labels_part[] = "labels-idx1";

struct byte_files {
	struct mu_rows_parts parts;
	float labels[NUM_LABELS]; /* each as a number */
};

/* The last "images-idx3" of a path. */
static const char *find_name(const char *path)
{
	const char *found = NULL;

	for (const char *c = strstr(path, images_part); c; c = strstr(c + 1, images_part))
		found = c;
	return found;
}

static bool holds_idx(const struct mu_records_probe *probe)
{
	static const uint8_t magic[] = {0, 0, 8, 3};

	return !probe->folder &&
	       ((probe->n >= sizeof magic && memcmp(probe->head, magic, sizeof magic) == 0) ||
		find_name(probe->path));
}

/* Decide by the name, because the bytes may be anything. */
static bool holds_cifar(const struct mu_records_probe *probe)
{
	return !probe->folder && mu_stem(probe->path, ".bin");
}

/* What the parts have, and all labels. */
static enum mu_status finish(struct mu_records *r, const char *format)
{
	enum mu_status st = MU_OK;
	struct byte_files *b = r->impl;
	uint8_t label;

	for (size_t i = 0; i < NUM_LABELS; i++)
		b->labels[i] = (float)i;
	r->info.n = b->parts.rows;
	r->info.kind = MU_RECORD_RAW;
	r->info.shape = b->parts.of->data.shape;
	r->info.label_width = 1;
	r->info.format = format;
	for (size_t i = 0; i < r->info.n; i++) {
		mu_rows_pixels(&b->parts, i, &label);
		MU_TRY(mu_records_check_labels(r, i, &b->labels[label], 1));
	}
out:
	return st;
}

static enum mu_status open_idx(struct mu_records *r, const char *path)
{
	enum mu_status st = MU_OK;
	const char *name = find_name(path);
	const struct mu_rows *images, *labels;
	struct byte_files *b;
	struct mu_picture p;
	char other[PATH_BYTES];

	MU_TRY(MU_ALLOC(b, 1, "IDX files"));
	r->impl = b;
	if (!name)
		MU_FAIL(MU_ERR_USAGE,
			"%s: is an IDX file of images, whose labels are not known: its name must "
			"hold \"%s\", and that of the labels \"%s\" in the same place",
			path, images_part, labels_part);
	if (strlen(path) >= PATH_BYTES ||
	    snprintf(other, PATH_BYTES, "%.*s%s%s", (int)(name - path), path, labels_part,
		     name + sizeof images_part - 1) >= PATH_BYTES)
		MU_FAIL(MU_ERR_IO, "%.60s...: the path is longer than %d bytes", path,
			PATH_BYTES - 1);
	MU_TRY(mu_rows_parts_new(&b->parts, 1));
	MU_TRY(mu_rows_open_idx(b->parts.of, path, other));
	images = &b->parts.of->data;
	labels = &b->parts.of->target;
	p = mu_sample_picture(&images->shape);
	if (images->n != labels->n)
		MU_FAIL(MU_ERR_FORMAT, "%s: %zu image%s, but %zu label%s in %s", path, images->n,
			MU_S(images->n), labels->n, MU_S(labels->n), other);
	if (images->n == 0 || p.h == 0 || p.w == 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: %zu images of %zu x %zu pixels; expected some", path,
			images->n, p.h, p.w);
	b->parts.rows = images->n;
	MU_TRY(finish(r, "IDX"));
out:
	return st;
}

static enum mu_status open_cifar(struct mu_records *r, const char *paths)
{
	enum mu_status st = MU_OK;
	struct mu_path_list list = {0};
	struct byte_files *b;
	size_t labels = 0;

	MU_TRY(MU_ALLOC(b, 1, "CIFAR files"));
	r->impl = b;
	MU_TRY(mu_path_list_split(&list, paths, "the path of a CIFAR file"));
	MU_TRY(mu_rows_parts_new(&b->parts, list.n));
	for (size_t i = 0; i < list.n; i++) {
		MU_TRY(mu_rows_open_cifar(&b->parts.of[i], list.path[i], "CIFAR", &labels));
		b->parts.rows += b->parts.of[i].data.n;
	}
	MU_TRY(finish(r, labels == 1 ? "CIFAR-10" : "CIFAR-100"));
out:
	mu_path_list_release(&list);
	return st;
}

static void close_files(struct mu_records *r)
{
	struct byte_files *b = r->impl;

	mu_rows_parts_close(&b->parts);
	mu_free(b);
}

/* Colours are stored one after another; a record has them pixel by pixel. */
static enum mu_status read_record(const struct mu_records *r, size_t i,
				  struct mu_record_buffer *buffer, struct mu_record *out)
{
	enum mu_status st = MU_OK;
	const struct byte_files *b = r->impl;
	const size_t n = mu_shape_sample(&r->info.shape);
	const size_t channels = mu_shape_channels(&r->info.shape), plane = n / channels;
	uint8_t label;
	const uint8_t *pixels = mu_rows_pixels(&b->parts, i, &label);

	if (channels > 1) {
		MU_TRY(mu_record_buffer_grow(buffer, 0, n));
		for (size_t j = 0; j < plane; j++)
			for (size_t k = 0; k < channels; k++)
				buffer->bytes[channels * j + k] = pixels[k * plane + j];
		pixels = buffer->bytes;
	}
	*out = (struct mu_record){
		.data = pixels, .n = n, .id = i, .n_labels = 1, .labels = &b->labels[label]};
out:
	return st;
}

static void where(const struct mu_records *r, size_t i, char *text, size_t nbytes)
{
	const struct byte_files *b = r->impl;
	const struct mu_rows *data = &mu_rows_part(&b->parts, &i)->data;
	const int n = snprintf(text, nbytes, "%s, record %zu", data->name, i);

	if (data->at > 0 && (size_t)n < nbytes)
		snprintf(text + n, nbytes - (size_t)n, " at byte %zu", i * data->stride);
}

static enum mu_status unchanged(const struct mu_records *r)
{
	enum mu_status st = MU_OK;
	const struct byte_files *b = r->impl;

	for (size_t i = 0; i < b->parts.n; i++)
		if (b->parts.of[i].data.file.fd >= 0)
			MU_TRY(mu_file_unchanged(&b->parts.of[i].data.file));
out:
	return st;
}

static void hash_files(const struct mu_records *r, uint64_t *listing, uint64_t *times)
{
	const struct byte_files *b = r->impl;

	(void)listing;
	for (size_t i = 0; i < b->parts.n; i++)
		if (b->parts.of[i].data.file.fd >= 0)
			mu_file_hash_time(&b->parts.of[i].data.file, times);
}

#define SHARED \
	.close = close_files, .read = read_record, .where = where, .unchanged = unchanged, \
	.hash_files = hash_files

const struct mu_records_ops mu_records_idx = {
	.files = "IDX files (...images-idx3...)",
	.holds = holds_idx,
	.open = open_idx,
	SHARED,
};

const struct mu_records_ops mu_records_cifar = {
	.files = "CIFAR's binary files (.bin)",
	.several = true,
	.holds = holds_cifar,
	.open = open_cifar,
	SHARED,
};
