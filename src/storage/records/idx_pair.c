/* SPDX-License-Identifier: Apache-2.0 */
/* Two IDX files, grey images and their labels, plain or gzip, kept in memory. Ids are record
 * numbers. */
#include <muster/storage.h>

#include <string.h>

#include "records.h"

enum { PATH_BYTES = 4096, NUM_LABELS = 256 };

static const char images_part[] = "images-idx3", labels_part[] = "labels-idx1";

struct idx_pair {
	struct mu_idx images, labels;
	char images_path[PATH_BYTES], labels_path[PATH_BYTES];
	float values[NUM_LABELS];
};

/* The last "images-idx3" of a path. */
static const char *find_name(const char *path)
{
	const char *found = NULL;

	for (const char *c = strstr(path, images_part); c; c = strstr(c + 1, images_part))
		found = c;
	return found;
}

static bool holds(const struct mu_records_probe *probe)
{
	static const uint8_t magic[] = {0, 0, 8, 3};

	return !probe->folder &&
	       ((probe->n >= sizeof magic && memcmp(probe->head, magic, sizeof magic) == 0) ||
		find_name(probe->path));
}

static enum mu_status name_files(struct idx_pair *p, const char *path)
{
	enum mu_status st = MU_OK;
	const char *name = find_name(path);

	if (!name)
		MU_FAIL(MU_ERR_USAGE,
			"%s: is an IDX file of images, whose labels are not known: its name must "
			"hold \"%s\", and that of the labels \"%s\" in the same place",
			path, images_part, labels_part);
	if (snprintf(p->images_path, PATH_BYTES, "%s", path) >= PATH_BYTES ||
	    snprintf(p->labels_path, PATH_BYTES, "%.*s%s%s", (int)(name - path), path, labels_part,
		     name + sizeof images_part - 1) >= PATH_BYTES)
		MU_FAIL(MU_ERR_IO, "%.60s...: the path is longer than %d bytes", path,
			PATH_BYTES - 1);
out:
	return st;
}

static enum mu_status open_pair(struct mu_records *r, const char *path)
{
	enum mu_status st = MU_OK;
	struct idx_pair *p;

	MU_TRY(MU_ALLOC(p, 1, "IDX files"));
	r->impl = p;
	MU_TRY(name_files(p, path));
	MU_TRY(mu_idx_read(&p->images, p->images_path, 3));
	MU_TRY(mu_idx_read(&p->labels, p->labels_path, 1));
	if (p->images.dims[0] != p->labels.dims[0])
		MU_FAIL(MU_ERR_FORMAT, "%s: %zu image%s, but %zu label%s in %s", p->images_path,
			p->images.dims[0], MU_S(p->images.dims[0]), p->labels.dims[0],
			MU_S(p->labels.dims[0]), p->labels_path);
	if (p->images.dims[0] == 0 || p->images.dims[1] == 0 || p->images.dims[2] == 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: %zu images of %zu x %zu pixels; expected some",
			p->images_path, p->images.dims[0], p->images.dims[1], p->images.dims[2]);
	for (size_t i = 0; i < NUM_LABELS; i++)
		p->values[i] = (float)i;
	r->info.n = p->images.dims[0];
	r->info.kind = MU_RECORD_RAW;
	r->info.shape = (struct mu_shape)MU_SAMPLE(1, p->images.dims[1], p->images.dims[2]);
	r->info.label_width = 1;
	r->info.format = "IDX";
	for (size_t i = 0; i < r->info.n; i++)
		MU_TRY(mu_records_check_labels(r, i, &p->values[p->labels.data[i]], 1));
out:
	return st;
}

static void close_pair(struct mu_records *r)
{
	struct idx_pair *p = r->impl;

	mu_idx_release(&p->images);
	mu_idx_release(&p->labels);
	mu_free(p);
}

static enum mu_status read_record(const struct mu_records *r, size_t i,
				  struct mu_record_buffer *buffer, struct mu_record *out)
{
	const struct idx_pair *p = r->impl;
	size_t n = p->images.dims[1] * p->images.dims[2];

	(void)buffer;
	*out = (struct mu_record){
		.data = p->images.data + i * n,
		.n = n,
		.id = i,
		.n_labels = 1,
		.labels = &p->values[p->labels.data[i]],
	};
	return MU_OK;
}

static void where(const struct mu_records *r, size_t i, char *text, size_t nbytes)
{
	const struct idx_pair *p = r->impl;

	snprintf(text, nbytes, "%s, record %zu", p->images_path, i);
}

/* Everything is in memory. */
static enum mu_status unchanged(const struct mu_records *r)
{
	(void)r;
	return MU_OK;
}

const struct mu_records_ops mu_records_idx = {
	.files = "IDX files (...images-idx3...)",
	.holds = holds,
	.open = open_pair,
	.close = close_pair,
	.read = read_record,
	.where = where,
	.unchanged = unchanged,
};
