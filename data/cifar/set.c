/* SPDX-License-Identifier: Apache-2.0 */
/* The images with their classes, in memory and as files: see cifar_pack.h. */
#include "cifar_pack.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <muster/storage.h>

enum { PATH_BYTES = 4096 };

const char *const pack_part_names[PACK_PARTS] = {[PACK_TRAIN] = "train", [PACK_TEST] = "test"};

/* ---- memory that grows ---- */

static struct pack_record *records_of(const struct pack_set *set)
{
	return (void *)set->records.bytes;
}

void pack_set_release(struct pack_set *set)
{
	for (size_t i = 0; i < set->n; i++)
		mu_free(records_of(set)[i].file);
	for (size_t i = 0; i < set->n_classes; i++)
		mu_free(set->classes[i]);
	data_buffer_release(&set->records);
	data_buffer_release(&set->pixels);
}

/* ---- taking up images ---- */

static enum mu_status copy_text(char **out, const char *text, size_t n)
{
	enum mu_status st = MU_OK;

	MU_TRY(MU_ALLOC(*out, n + 1, "name"));
	memcpy(*out, text, n);
out:
	return st;
}

/* Where the last part of path[0..n) begins. */
static size_t last_part(const char *path, size_t n)
{
	while (n > 0 && path[n - 1] != '/')
		n--;
	return n;
}

static bool equals(const char *name, const char *text, size_t n)
{
	return strlen(name) == n && memcmp(name, text, n) == 0;
}

static enum mu_status find_class(struct pack_set *set, const char *name, size_t n, size_t *label)
{
	enum mu_status st = MU_OK;

	for (*label = 0; *label < set->n_classes; (*label)++) {
		if (equals(set->classes[*label], name, n))
			goto out;
	}
	if (set->n_classes == PACK_CLASSES_MAX)
		MU_FAIL(MU_ERR_FORMAT,
			"%.*s: class number %d; labels are bytes, at most %d classes "
			"are possible",
			(int)n, name, PACK_CLASSES_MAX + 1, PACK_CLASSES_MAX);
	MU_TRY(copy_text(&set->classes[*label], name, n));
	set->n_classes++;
out:
	return st;
}

/* Part, class and file from the end of a path. */
static enum mu_status name_record(struct pack_set *set, const char *path, struct pack_record *r)
{
	enum mu_status st = MU_OK;
	size_t n = strlen(path), file = last_part(path, n);
	size_t class = file ? last_part(path, file - 1) : 0;
	size_t part = class ? last_part(path, class - 1) : 0;
	size_t part_length = class ? class - 1 - part : 0;

	for (r->part = 0; r->part < PACK_PARTS; r->part++) {
		if (equals(pack_part_names[r->part], path + part, part_length))
			break;
	}
	if (r->part == PACK_PARTS || class + 1 == file)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: images must lie in train/CLASS/ or test/CLASS/ of the data set", path);
	MU_TRY(find_class(set, path + class, file - 1 - class, &r->label));
	MU_TRY(copy_text(&r->file, path + file, n - file));
out:
	return st;
}

enum mu_status pack_set_add(struct pack_set *set, const char *path, uint8_t **pixels)
{
	enum mu_status st = MU_OK;
	struct pack_record *r;

	MU_TRY(data_buffer_grow(&set->records, set->n * sizeof *r, (set->n + 1) * sizeof *r));
	MU_TRY(data_buffer_grow(&set->pixels, set->n * set->sample, (set->n + 1) * set->sample));
	r = records_of(set) + set->n;
	MU_TRY(name_record(set, path, r));
	r->at = set->n;
	*pixels = set->pixels.bytes + set->n * set->sample;
	set->n++;
out:
	return st;
}

/* ---- sorting ---- */

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static int compare_records(const void *a, const void *b)
{
	const struct pack_record *x = a, *y = b;

	if (x->part != y->part)
		return x->part < y->part ? -1 : 1;
	if (x->label != y->label)
		return x->label < y->label ? -1 : 1;
	return strcmp(x->file, y->file);
}

/* Renumber labels from order of arrival to alphabetical order. */
static void sort_classes(struct pack_set *set)
{
	char *arrived[PACK_CLASSES_MAX];
	size_t label[PACK_CLASSES_MAX];

	memcpy(arrived, set->classes, sizeof arrived);
	qsort(set->classes, set->n_classes, sizeof *set->classes, compare_names);
	for (size_t i = 0; i < set->n_classes; i++) {
		for (size_t j = 0; j < set->n_classes; j++)
			if (set->classes[j] == arrived[i])
				label[i] = j;
	}
	for (size_t i = 0; i < set->n; i++)
		records_of(set)[i].label = label[records_of(set)[i].label];
}

enum mu_status pack_set_sort(struct pack_set *set)
{
	enum mu_status st = MU_OK;
	struct pack_record *r = records_of(set);

	sort_classes(set);
	for (size_t i = 0; i < set->n; i++) {
		set->counts[r[i].part]++;
		set->class_counts[r[i].label][r[i].part]++;
	}
	for (int part = 0; part < PACK_PARTS; part++) {
		if (set->counts[part] == 0)
			MU_FAIL(MU_ERR_FORMAT,
				"there is no image %s/CLASS/*.jpg; both train and test are needed",
				pack_part_names[part]);
	}
	qsort(r, set->n, sizeof *r, compare_records);
	for (size_t i = 1; i < set->n; i++) {
		if (compare_records(r + i - 1, r + i) == 0)
			MU_FAIL(MU_ERR_FORMAT, "%s/%s/%s: the image is there twice",
				pack_part_names[r[i].part], set->classes[r[i].label], r[i].file);
	}
out:
	return st;
}

/* ---- writing ---- */

/* The files of a set, until all are complete. */
struct writer {
	const struct pack_set *set;
	const char *folder;
	struct mu_replace *replace; /* one for each file; owned */
	size_t n;                   /* that were begun */
};

static enum mu_status create(struct writer *w, const char *name, FILE **f)
{
	enum mu_status st = MU_OK;
	struct mu_replace *replace = w->replace + w->n++;
	char path[PATH_BYTES];

	if (snprintf(path, sizeof path, "%s/%s", w->folder, name) >= PATH_BYTES)
		MU_FAIL(MU_ERR_IO, "%.60s...: the path is longer than %d bytes", w->folder,
			PATH_BYTES - 1);
	MU_TRY(mu_replace_begin(replace, path));
	*f = fopen(replace->written, "wbe");
	if (!*f)
		MU_FAIL(MU_ERR_IO, "%s: cannot be created: %s", path,
			strerror(errno));
out:
	return st;
}

/* Errors of buffered writes appear here at the latest. */
static enum mu_status finish(struct writer *w, FILE *f)
{
	enum mu_status st = MU_OK;
	bool bad = ferror(f);

	errno = 0;
	if (fclose(f) != 0 || bad)
		MU_FAIL(MU_ERR_IO, "%s: cannot be written: %s", w->replace[w->n - 1].path,
			errno ? strerror(errno) : "no room, or an error of the disk");
out:
	return st;
}

/* Records first[order[0]], first[order[1]], ... as one file. */
static enum mu_status write_records(struct writer *w, const char *name,
				    const struct pack_record *first, const uint32_t *order,
				    size_t n)
{
	enum mu_status st = MU_OK;
	size_t sample = w->set->sample;
	FILE *f;

	MU_TRY(create(w, name, &f));
	for (size_t i = 0; i < n && !ferror(f); i++) {
		const struct pack_record *r = first + order[i];

		putc((int)r->label, f);
		fwrite(w->set->pixels.bytes + r->at * sample, 1, sample, f);
	}
	MU_TRY(finish(w, f));
out:
	return st;
}

static enum mu_status write_part(struct writer *w, enum pack_part part, size_t per_file,
				 long shuffle)
{
	enum mu_status st = MU_OK;
	const struct pack_set *set = w->set;
	const struct pack_record *first = records_of(set);
	size_t n = set->counts[part];
	/* Sample 0 is the trainer's own order. */
	struct mu_random key = {.seed = (uint64_t)shuffle,
				.purpose = MU_RANDOM_SHUFFLE,
				.sample = 1 + (uint64_t)part};
	uint32_t *order = NULL;
	char name[48];

	if (part == PACK_TEST)
		first += set->counts[PACK_TRAIN];
	MU_TRY(MU_ALLOC(order, n, "order of the images"));
	for (size_t i = 0; i < n; i++)
		order[i] = (uint32_t)i;
	if (shuffle >= 0)
		mu_random_permutation(&key, order, n);
	for (size_t i = 0; i < n; i += per_file) {
		if (part == PACK_TEST)
			snprintf(name, sizeof name, "test_batch.bin");
		else
			snprintf(name, sizeof name, "data_batch_%zu.bin", i / per_file + 1);
		MU_TRY(write_records(w, name, first, order + i,
				     n - i < per_file ? n - i : per_file));
	}
out:
	mu_free(order);
	return st;
}

static enum mu_status write_classes(struct writer *w)
{
	enum mu_status st = MU_OK;
	FILE *f;

	MU_TRY(create(w, "batches.meta.txt", &f));
	for (size_t i = 0; i < w->set->n_classes; i++)
		fprintf(f, "%s\n", w->set->classes[i]);
	MU_TRY(finish(w, f));
out:
	return st;
}

/* Remove files data_batch_N.bin with N > n, because readers use all that are numbered from 1 on. */
static enum mu_status remove_others(const char *folder, size_t n)
{
	enum mu_status st = MU_OK;
	char path[PATH_BYTES];

	do {
		n++;
		snprintf(path, sizeof path, "%s/data_batch_%zu.bin", folder, n);
	} while (unlink(path) == 0);
	if (errno != ENOENT)
		MU_FAIL(MU_ERR_IO, "%s: of an earlier set, cannot be removed: %s", path,
			strerror(errno));
out:
	return st;
}

enum mu_status pack_set_write(const struct pack_set *set, const char *folder, size_t per_file,
			      long shuffle, size_t *n_files)
{
	enum mu_status st = MU_OK;
	struct writer w = {.set = set, .folder = folder};

	*n_files = (set->counts[PACK_TRAIN] + per_file - 1) / per_file;
	MU_TRY(MU_ALLOC(w.replace, *n_files + 2, "files"));
	MU_TRY(write_part(&w, PACK_TRAIN, per_file, shuffle));
	MU_TRY(write_part(&w, PACK_TEST, set->counts[PACK_TEST], shuffle));
	MU_TRY(write_classes(&w));
	for (size_t i = 0; i < w.n; i++)
		MU_TRY(mu_replace_commit(&w.replace[i]));
	MU_TRY(remove_others(folder, *n_files));
out:
	for (size_t i = 0; i < w.n; i++)
		mu_replace_release(&w.replace[i]);
	mu_free(w.replace);
	return st;
}
