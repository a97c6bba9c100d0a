/* SPDX-License-Identifier: Apache-2.0 */
/* The files of a folder of images: train/CLASS/FILE and test/CLASS/FILE. */
#include "cifar_pack.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH_BYTES = 4096 };

/* The paths of the images, listed first so that progress can be reported. */
struct list {
	char **paths; /* owned */
	size_t n, capacity;
};

static enum mu_status append(struct list *list, const char *path)
{
	enum mu_status st = MU_OK;
	size_t capacity = list->capacity ? 2 * list->capacity : 1024;
	char **paths;

	if (list->n == list->capacity) {
		paths = realloc(list->paths, capacity * sizeof *paths);
		if (!paths)
			MU_FAIL(MU_ERR_MEMORY, "no memory for %zu file names", capacity);
		list->paths = paths;
		list->capacity = capacity;
	}
	list->paths[list->n] = strdup(path);
	if (!list->paths[list->n])
		MU_FAIL(MU_ERR_MEMORY, "no memory for file name %zu", list->n);
	list->n++;
out:
	return st;
}

static void release(struct list *list)
{
	for (size_t i = 0; i < list->n; i++)
		free(list->paths[i]);
	free(list->paths);
}

static enum mu_status list_folder(struct pack_job *job, struct list *list, const char *path,
				  int levels);

/* levels: number of folder levels still to descend. */
static enum mu_status list_entry(struct pack_job *job, struct list *list, const char *path,
				 int levels)
{
	enum mu_status st = MU_OK;
	struct stat status;

	if (stat(path, &status) != 0)
		MU_FAIL(MU_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
	if (S_ISDIR(status.st_mode)) {
		if (levels == 0)
			MU_FAIL(MU_ERR_FORMAT,
				"%s: a folder inside that of a class; images must lie in "
				"train/CLASS/ or test/CLASS/",
				path);
		MU_TRY(list_folder(job, list, path, levels - 1));
	} else if (pack_is_image(path)) {
		MU_TRY(append(list, path));
	} else {
		mu_left_out_add(&job->left_out, MU_LEFT_OTHER, path);
	}
out:
	return st;
}

static enum mu_status list_folder(struct pack_job *job, struct list *list, const char *path,
				  int levels)
{
	enum mu_status st = MU_OK;
	char inside[PATH_BYTES];
	DIR *stream = opendir(path);

	if (!stream)
		MU_FAIL(MU_ERR_IO, "%s: the folder cannot be read: %s", path, strerror(errno));
	for (struct dirent *entry = readdir(stream); entry; entry = readdir(stream)) {
		if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
			continue;
		if (snprintf(inside, sizeof inside, "%s/%s", path, entry->d_name) >= PATH_BYTES)
			MU_FAIL(MU_ERR_IO, "%.60s...: the path is longer than %d bytes", path,
				PATH_BYTES - 1);
		if (entry->d_name[0] == '.')
			mu_left_out_add(&job->left_out, MU_LEFT_HIDDEN, inside);
		else
			MU_TRY(list_entry(job, list, inside, levels));
	}
out:
	if (stream)
		closedir(stream);
	return st;
}

enum mu_status pack_read_folder(struct pack_job *job, const char *path)
{
	enum mu_status st = MU_OK;
	struct data_buffer file = {0};
	struct list list = {0};
	char part[PATH_BYTES];
	size_t nbytes;

	for (int i = 0; i < PACK_PARTS; i++) {
		snprintf(part, sizeof part, "%s/%s", path, pack_part_names[i]);
		MU_TRY(list_folder(job, &list, part, 1));
	}
	for (size_t i = 0; i < list.n; i++) {
		MU_TRY(data_buffer_read(&file, list.paths[i], &nbytes));
		MU_TRY(pack_job_add(job, list.paths[i], file.bytes, nbytes,
				    (double)(i + 1) / (double)list.n));
	}
out:
	data_buffer_release(&file);
	release(&list);
	return st;
}
