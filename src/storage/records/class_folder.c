/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A folder with one folder of images per class. Labels number the sorted names of the folders;
 * records are sorted by class and file name, and their ids are their numbers. Names are sorted by
 * their bytes.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "storage/file.h"
#include "record_io.h"
#include "records.h"

enum { PATH_BYTES = 4096 };

/* Names, each owned separately. */
struct names {
	char **name;
	size_t n, capacity;
};

struct class_folder {
	char *path; /* owned */
	struct names classes;
	struct names files;
	size_t *first; /* number of the first file of each class, and the number of files; owned */
	float *labels; /* of each class; owned */
};

/* ---- names ---- */

static enum mu_status append(struct names *names, const char *name)
{
	enum mu_status st = MU_OK;
	size_t capacity = names->capacity ? 2 * names->capacity : 64;
	char **grown;

	if (names->n == names->capacity) {
		grown = realloc(names->name, capacity * sizeof *grown);
		if (!grown)
			MU_FAIL(MU_ERR_MEMORY, "no memory for %zu file names", capacity);
		names->name = grown;
		names->capacity = capacity;
	}
	names->name[names->n] = strdup(name);
	if (!names->name[names->n])
		MU_FAIL(MU_ERR_MEMORY, "no memory for file name %zu", names->n);
	names->n++;
out:
	return st;
}

static void release(struct names *names)
{
	for (size_t i = 0; i < names->n; i++)
		free(names->name[i]);
	free(names->name);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void sort_from(struct names *names, size_t first)
{
	if (names->n > first)
		qsort(names->name + first, names->n - first, sizeof *names->name, compare_names);
}

/* ---- listing ---- */

static enum mu_status join(char out[PATH_BYTES], const char *a, const char *b)
{
	enum mu_status st = MU_OK;

	if (snprintf(out, PATH_BYTES, "%s/%s", a, b) >= PATH_BYTES)
		MU_FAIL(MU_ERR_IO, "%.60s...: the path is longer than %d bytes", a, PATH_BYTES - 1);
out:
	return st;
}

/* The folders or the images in a folder, sorted. Names that begin with a dot are omitted. */
static enum mu_status list(struct names *names, const char *path, bool folders)
{
	enum mu_status st = MU_OK;
	size_t first = names->n;
	char inside[PATH_BYTES];
	struct stat status;
	DIR *stream = opendir(path);

	if (!stream)
		MU_FAIL(MU_ERR_IO, "%s: the folder cannot be read: %s", path, strerror(errno));
	for (struct dirent *entry = readdir(stream); entry; entry = readdir(stream)) {
		if (entry->d_name[0] == '.' || (!folders && !mu_record_is_image(entry->d_name)))
			continue;
		if (folders) {
			MU_TRY(join(inside, path, entry->d_name));
			if (stat(inside, &status) != 0 || !S_ISDIR(status.st_mode))
				continue;
		}
		MU_TRY(append(names, entry->d_name));
	}
	sort_from(names, first);
out:
	if (stream)
		closedir(stream);
	return st;
}

static enum mu_status list_classes(struct class_folder *f)
{
	enum mu_status st = MU_OK;
	char path[PATH_BYTES];

	MU_TRY(list(&f->classes, f->path, true));
	MU_TRY(MU_ALLOC(f->first, f->classes.n + 1, "classes"));
	MU_TRY(MU_ALLOC(f->labels, f->classes.n, "classes"));
	for (size_t i = 0; i < f->classes.n; i++) {
		f->first[i] = f->files.n;
		f->labels[i] = (float)i;
		MU_TRY(join(path, f->path, f->classes.name[i]));
		MU_TRY(list(&f->files, path, false));
	}
	f->first[f->classes.n] = f->files.n;
	if (f->files.n == 0)
		MU_FAIL(MU_ERR_IO,
			"%s: no images: there are %zu folders in it, and none holds .jpg, .jpeg or "
			".png files; expected a folder of images per class (files of MNIST or "
			"CIFAR are a data folder, a setting of its own)",
			f->path, f->classes.n);
out:
	return st;
}

/* ---- the kind of file ---- */

static bool holds(const struct mu_records_probe *probe)
{
	return probe->folder;
}

static size_t class_of(const struct class_folder *f, size_t i)
{
	size_t low = 0, high = f->classes.n;

	/* Classes without images start at the same file as the next class: find the last one. */
	while (high - low > 1) {
		size_t middle = low + (high - low) / 2;

		if (f->first[middle] <= i)
			low = middle;
		else
			high = middle;
	}
	return low;
}

static void where(const struct mu_records *r, size_t i, char *text, size_t nbytes)
{
	const struct class_folder *f = r->impl;

	snprintf(text, nbytes, "%s/%s/%s, record %zu", f->path, f->classes.name[class_of(f, i)],
		 f->files.name[i], i);
}

static enum mu_status open_folder(struct mu_records *r, const char *path)
{
	enum mu_status st = MU_OK;
	struct class_folder *f;
	size_t nbytes = strlen(path) + 1;

	MU_TRY(MU_ALLOC(f, 1, "folder of images"));
	r->impl = f;
	MU_TRY(MU_ALLOC(f->path, nbytes, "path"));
	memcpy(f->path, path, nbytes);
	MU_TRY(list_classes(f));
	r->info.n = f->files.n;
	r->info.kind = MU_RECORD_ENCODED;
	r->info.classes = f->classes.n;
	r->info.class_names = (const char *const *)f->classes.name;
	r->info.label_width = 1;
	r->info.format = "folder";
	for (size_t i = 0; i < f->classes.n; i++)
		if (f->first[i + 1] > f->first[i])
			MU_TRY(mu_records_check_labels(r, f->first[i], &f->labels[i], 1));
out:
	return st;
}

static void close_folder(struct mu_records *r)
{
	struct class_folder *f = r->impl;

	release(&f->classes);
	release(&f->files);
	mu_free(f->first);
	mu_free(f->labels);
	mu_free(f->path);
	mu_free(f);
}

/* The path of image i; false if it is too long. */
static bool path_of(const struct class_folder *f, size_t i, char path[PATH_BYTES])
{
	return snprintf(path, PATH_BYTES, "%s/%s/%s", f->path, f->classes.name[class_of(f, i)],
			f->files.name[i]) < PATH_BYTES;
}

static size_t bound(const struct mu_records *r, size_t i)
{
	char path[PATH_BYTES];
	struct stat info;

	return path_of(r->impl, i, path) && stat(path, &info) == 0 ? (size_t)info.st_size : 0;
}

static enum mu_status read_record(const struct mu_records *r, size_t i,
				  struct mu_record_buffer *buffer, struct mu_record *out)
{
	enum mu_status st = MU_OK;
	const struct class_folder *f = r->impl;
	char path[PATH_BYTES];

	if (!path_of(f, i, path))
		MU_FAIL(MU_ERR_IO, "%.60s...: the path is longer than %d bytes", path,
			PATH_BYTES - 1);
	*out = (struct mu_record){.id = i, .n_labels = 1, .labels = &f->labels[class_of(f, i)]};
	MU_TRY(mu_record_read_image(path, buffer, out));
out:
	return st;
}

/* Files are opened for each read, whatever they hold by then. */
static enum mu_status unchanged(const struct mu_records *r)
{
	(void)r;
	return MU_OK;
}

const struct mu_records_ops mu_records_folder = {
	.files = "a folder of images per class",
	.holds = holds,
	.open = open_folder,
	.close = close_folder,
	.read = read_record,
	.bound = bound,
	.where = where,
	.unchanged = unchanged,
};
