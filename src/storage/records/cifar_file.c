/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CIFAR's binary files (A. Krizhevsky, "The CIFAR-10 dataset", section "Binary version"), several
 * as one. A record is its labels, one byte each, and (3, 32, 32) pixels. CIFAR-10 has one label;
 * CIFAR-100 has a coarse one, which is not used, and a fine one. Ids are record numbers.
 */
#include <string.h>

#include "storage/file.h"
#include "record_io.h"
#include "records.h"

enum { SIDE = 32, CHANNELS = 3, PLANE = SIDE * SIDE, IMAGE = CHANNELS * PLANE, NUM_LABELS = 256 };

struct part {
	struct mu_file file;
	size_t first, n; /* records */
};

struct cifar {
	struct mu_path_list paths;
	struct part *part; /* paths.n; owned */
	size_t n_labels;   /* bytes before the image */
	float labels[NUM_LABELS];
};

/* Decide by the name, because the bytes may be anything. */
static bool holds(const struct mu_records_probe *probe)
{
	return !probe->folder && mu_stem(probe->path, ".bin");
}

/* If the size fits only one kind, the file is of that kind; else compare its name with those in
 * CIFAR-100's archive. */
static size_t count_labels(const char *path, size_t nbytes)
{
	bool one = nbytes % (1 + IMAGE) == 0, two = nbytes % (2 + IMAGE) == 0;
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	if (one != two)
		return one ? 1 : 2;
	return strcmp(name, "train.bin") == 0 || strcmp(name, "test.bin") == 0 ? 2 : 1;
}

static enum mu_status open_parts(struct mu_records *r, struct cifar *c)
{
	enum mu_status st = MU_OK;

	for (size_t i = 0; i < c->paths.n; i++)
		mu_file_init(&c->part[i].file);
	for (size_t i = 0; i < c->paths.n; i++) {
		struct part *part = &c->part[i];
		size_t record;

		MU_TRY(mu_file_open(&part->file, c->paths.path[i]));
		if (i == 0)
			c->n_labels = count_labels(c->paths.path[0], part->file.nbytes);
		record = c->n_labels + IMAGE;
		if (part->file.nbytes == 0 || part->file.nbytes % record != 0)
			MU_FAIL(MU_ERR_FORMAT,
				"%s: truncated, or no CIFAR file: %zu bytes are not a multiple of "
				"the %zu bytes of a record",
				c->paths.path[i], part->file.nbytes, record);
		part->first = r->info.n;
		part->n = part->file.nbytes / record;
		r->info.n += part->n;
	}
out:
	return st;
}

static size_t find_part(const struct cifar *c, size_t i)
{
	size_t part = 0;

	while (i >= c->part[part].first + c->part[part].n)
		part++;
	return part;
}

static void where(const struct mu_records *r, size_t i, char *text, size_t nbytes)
{
	const struct cifar *c = r->impl;
	size_t part = find_part(c, i), local = i - c->part[part].first;

	snprintf(text, nbytes, "%s, record %zu at byte %zu", c->paths.path[part], local,
		 local * (c->n_labels + IMAGE));
}

static enum mu_status read_record(const struct mu_records *r, size_t i,
				  struct mu_record_buffer *buffer, struct mu_record *out)
{
	enum mu_status st = MU_OK;
	const struct cifar *c = r->impl;
	const struct part *part = &c->part[find_part(c, i)];
	size_t record = c->n_labels + IMAGE;
	uint8_t *pixels;
	const uint8_t *planes;

	MU_TRY(mu_record_buffer_grow(buffer, 0, IMAGE + record));
	pixels = buffer->bytes;
	MU_TRY(mu_file_read(&part->file, (i - part->first) * record, pixels + IMAGE, record));
	planes = pixels + IMAGE + c->n_labels;
	for (size_t j = 0; j < PLANE; j++) {
		for (size_t k = 0; k < CHANNELS; k++)
			pixels[CHANNELS * j + k] = planes[k * PLANE + j];
	}
	*out = (struct mu_record){
		.data = pixels,
		.n = IMAGE,
		.id = i,
		.n_labels = 1,
		.labels = &c->labels[planes[-1]],
	};
out:
	return st;
}

static enum mu_status check_all(const struct mu_records *r)
{
	enum mu_status st = MU_OK;
	struct mu_record_buffer buffer = {0};
	struct mu_record record;

	for (size_t i = 0; r->config.classes && i < r->info.n; i++) {
		MU_TRY(read_record(r, i, &buffer, &record));
		MU_TRY(mu_records_check_labels(r, i, record.labels, record.n_labels));
	}
out:
	mu_record_buffer_release(&buffer);
	return st;
}

static enum mu_status open_files(struct mu_records *r, const char *paths)
{
	enum mu_status st = MU_OK;
	struct cifar *c;

	MU_TRY(MU_ALLOC(c, 1, "CIFAR files"));
	r->impl = c;
	MU_TRY(mu_path_list_split(&c->paths, paths, "the path of a CIFAR file"));
	MU_TRY(MU_ALLOC(c->part, c->paths.n, "CIFAR files"));
	MU_TRY(open_parts(r, c));
	for (size_t i = 0; i < NUM_LABELS; i++)
		c->labels[i] = (float)i;
	r->info.kind = MU_RECORD_RAW;
	r->info.shape = (struct mu_shape)MU_SAMPLE(CHANNELS, SIDE, SIDE);
	r->info.label_width = 1;
	r->info.format = c->n_labels == 1 ? "CIFAR-10" : "CIFAR-100";
	MU_TRY(check_all(r));
out:
	return st;
}

static void close_files(struct mu_records *r)
{
	struct cifar *c = r->impl;

	for (size_t i = 0; c->part && i < c->paths.n; i++)
		mu_file_close(&c->part[i].file);
	mu_free(c->part);
	mu_path_list_release(&c->paths);
	mu_free(c);
}

static enum mu_status unchanged(const struct mu_records *r)
{
	enum mu_status st = MU_OK;
	const struct cifar *c = r->impl;

	for (size_t i = 0; i < c->paths.n; i++)
		MU_TRY(mu_file_unchanged(&c->part[i].file));
out:
	return st;
}

static void hash_files(const struct mu_records *r, uint64_t *listing, uint64_t *times)
{
	const struct cifar *c = r->impl;

	(void)listing;
	for (size_t i = 0; i < c->paths.n; i++)
		mu_file_hash_time(&c->part[i].file, times);
}

const struct mu_records_ops mu_records_cifar = {
	.files = "CIFAR's binary files (.bin)",
	.several = true,
	.holds = holds,
	.open = open_files,
	.close = close_files,
	.read = read_record,
	.where = where,
	.unchanged = unchanged,
	.hash_files = hash_files,
};
