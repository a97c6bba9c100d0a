/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A folder with one folder of images per class, which may have folders of its own, as torchvision's
 * ImageFolder reads it. Labels number the sorted names of the folders; records are sorted by class,
 * folder and file, and their ids are their numbers. Names are sorted by their bytes. What is left
 * out, classes without images among it, is counted.
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
	struct names files; /* "1.jpg", "day/1.jpg" */
	size_t *first; /* number of the first file of each class, and the number of files; owned */
	float *labels; /* of each class; owned */
	struct mu_left_out left_out;
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

/* By folder, then by file, each as a text: as torchvision. */
static int compare_files(const void *a, const void *b)
{
	const char *x = *(char *const *)a, *y = *(char *const *)b;
	const char *x_end = strrchr(x, '/'), *y_end = strrchr(y, '/');
	const size_t n = x_end ? (size_t)(x_end - x) : 0, m = y_end ? (size_t)(y_end - y) : 0;
	int order = memcmp(x, y, n < m ? n : m);

	if (order == 0)
		order = (n > m) - (n < m);
	return order ? order : strcmp(x + n, y + m);
}

static void sort_from(struct names *names, size_t first,
		      int (*compare)(const void *a, const void *b))
{
	if (names->n > first)
		qsort(names->name + first, names->n - first, sizeof *names->name, compare);
}

/* ---- listing ---- */

static enum mu_status join(char out[PATH_BYTES], const char *a, const char *b)
{
	enum mu_status st = MU_OK;

	if (snprintf(out, PATH_BYTES, "%s%s%s", a, *a && *b ? "/" : "", b) >= PATH_BYTES)
		MU_FAIL(MU_ERR_IO, "%.60s...: the path is longer than %d bytes", a, PATH_BYTES - 1);
out:
	return st;
}

/* Without a call of stat where the file system tells the type. */
static bool is_folder(DIR *stream, const struct dirent *entry)
{
	struct stat status;

	if (entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN)
		return entry->d_type == DT_DIR;
	return fstatat(dirfd(stream), entry->d_name, &status, 0) == 0 && S_ISDIR(status.st_mode);
}

/* A folder, and those that it lies in. */
struct level {
	const struct level *above; /* NULL: the set */
	const char *class, *below; /* its class, and its path below that; "": itself */
	dev_t device;
	ino_t inode;
};

static enum mu_status check_loop(struct level *level, DIR *stream, const char *path)
{
	enum mu_status st = MU_OK;
	struct stat status;

	if (fstat(dirfd(stream), &status) != 0)
		MU_FAIL(MU_ERR_IO, "%s: the folder cannot be read: %s", path, strerror(errno));
	level->device = status.st_dev;
	level->inode = status.st_ino;
	for (const struct level *a = level->above; a; a = a->above)
		if (a->device == level->device && a->inode == level->inode)
			MU_FAIL(MU_ERR_FORMAT,
				"%s: is a link to a folder above it, which has no end: remove the "
				"link",
				path);
out:
	return st;
}

/* An entry of a folder: an image, a folder, or left out. */
static enum mu_status take(struct class_folder *f, const struct level *level, DIR *stream,
			   const struct dirent *entry, struct names *folders)
{
	enum mu_status st = MU_OK;
	const char *name = entry->d_name;
	char below[PATH_BYTES], path[PATH_BYTES];

	if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
		goto out;
	MU_TRY(join(below, level->below, name)); /* of the class */
	MU_TRY(join(path, level->class, below));
	if (*name == '.')
		mu_left_out_add(&f->left_out, MU_LEFT_HIDDEN, path);
	else if (is_folder(stream, entry))
		MU_TRY(append(folders, below));
	else if (!mu_record_is_image(name))
		mu_left_out_add(&f->left_out, MU_LEFT_OTHER, path);
	else if (!level->above)
		mu_left_out_add(&f->left_out, MU_LEFT_OUTSIDE, path);
	else
		MU_TRY(append(&f->files, below));
out:
	return st;
}

/* The images of a class in a folder, and the folders in it. */
static enum mu_status list(struct class_folder *f, struct level *level, struct names *folders)
{
	enum mu_status st = MU_OK;
	char class[PATH_BYTES], path[PATH_BYTES];
	DIR *stream = NULL;

	MU_TRY(join(class, f->path, level->class));
	MU_TRY(join(path, class, level->below));
	stream = opendir(path);
	if (!stream)
		MU_FAIL(MU_ERR_IO, "%s: the folder cannot be read: %s", path, strerror(errno));
	MU_TRY(check_loop(level, stream, path));
	for (struct dirent *entry = readdir(stream); entry; entry = readdir(stream))
		MU_TRY(take(f, level, stream, entry, folders));
out:
	if (stream)
		closedir(stream);
	return st;
}

/* The same for all folders below. */
static enum mu_status walk(struct class_folder *f, struct level *level)
{
	enum mu_status st = MU_OK;
	struct names folders = {0};

	MU_TRY(list(f, level, &folders));
	for (size_t i = 0; i < folders.n; i++)
		MU_TRY(walk(f, &(struct level){.above = level,
					       .class = level->class,
					       .below = folders.name[i]}));
out:
	release(&folders);
	return st;
}

static enum mu_status list_classes(struct class_folder *f)
{
	enum mu_status st = MU_OK;
	struct level top = {.class = "", .below = ""};

	MU_TRY(list(f, &top, &f->classes));
	sort_from(&f->classes, 0, compare_names);
	MU_TRY(MU_ALLOC(f->first, f->classes.n + 1, "classes"));
	MU_TRY(MU_ALLOC(f->labels, f->classes.n, "classes"));
	for (size_t i = 0; i < f->classes.n; i++) {
		struct level class = {.above = &top, .class = f->classes.name[i], .below = ""};

		f->first[i] = f->files.n;
		f->labels[i] = (float)i;
		MU_TRY(walk(f, &class));
		sort_from(&f->files, f->first[i], compare_files);
		if (f->files.n == f->first[i])
			mu_left_out_add(&f->left_out, MU_LEFT_EMPTY, f->classes.name[i]);
	}
	f->first[f->classes.n] = f->files.n;
out:
	return st;
}

static enum mu_status check_images(const struct class_folder *f)
{
	enum mu_status st = MU_OK;
	char text[MU_LEFT_OUT_BYTES];

	if (f->files.n == 0)
		MU_FAIL(MU_ERR_IO,
			"%s: no images: there are %zu folders in it, and none holds .jpg, .jpeg or "
			".png files; expected a folder of images per class (files of MNIST or "
			"CIFAR are a data folder, a setting of its own); left out: %s",
			f->path, f->classes.n,
			*mu_left_out_text(&f->left_out, text, sizeof text) ? text : "nothing");
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
	MU_TRY(check_images(f));
	r->info.left_out = f->left_out;
	r->info.n = f->files.n;
	r->info.kind = MU_RECORD_ENCODED;
	r->info.classes = f->classes.n;
	r->info.class_names = (const char *const *)f->classes.name;
	r->info.label_width = 1;
	r->info.separate = true;
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

static void hash_files(const struct mu_records *r, uint64_t *listing, uint64_t *times)
{
	const struct class_folder *f = r->impl;
	const size_t n = f->files.n, step = n / MU_RECORD_MOST_STATS + 1;
	char path[PATH_BYTES];

	for (size_t i = 0; i < n; i++) {
		const char *name = f->files.name[i];

		*listing = mu_hash_block(*listing, name, strlen(name));
		if (i % step == 0 && path_of(f, i, path))
			mu_record_hash_file(path, listing, times);
	}
	*listing = mu_hash_block(*listing, f->first, (f->classes.n + 1) * sizeof *f->first);
}

const struct mu_records_ops mu_records_folder = {
	.files = "a folder of images per class",
	.holds = holds,
	.open = open_folder,
	.close = close_folder,
	.read = read_record,
	.bound = bound,
	.where = where,
	.hash_files = hash_files,
};
