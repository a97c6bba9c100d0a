/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Images without labels: a folder that holds images and no folders, or a list of files, one path a
 * line, whose name ends in .lst. In a list with tabs, as im2rec writes it, the path is the last
 * field. Those of a folder are sorted by the bytes of their names.
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

struct image_files {
	char *text; /* paths, each ended by a zero; owned */
	const char **path;
	size_t n;
};

static int compare(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_image(const struct dirent *entry)
{
	return entry->d_name[0] != '.' && mu_record_is_image(entry->d_name);
}

/* Images, and no folders. */
static bool is_flat(const char *path)
{
	char inside[PATH_BYTES];
	struct stat status;
	bool images = false, folders = false;
	DIR *stream = opendir(path);

	for (struct dirent *entry; stream && !folders && (entry = readdir(stream));) {
		if (entry->d_name[0] == '.')
			continue;
		if (is_image(entry)) {
			images = true;
			continue;
		}
		snprintf(inside, sizeof inside, "%s/%s", path, entry->d_name);
		folders = stat(inside, &status) == 0 && S_ISDIR(status.st_mode);
	}
	if (stream)
		closedir(stream);
	return images && !folders;
}

static bool holds(const struct mu_records_probe *probe)
{
	return probe->folder ? is_flat(probe->path) : mu_stem(probe->path, ".lst") > 0;
}

static int is_entry(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static enum mu_status list_folder(struct image_files *f, const char *folder,
				  struct mu_left_out *left)
{
	enum mu_status st = MU_OK;
	struct dirent **entry = NULL;
	const int n = scandir(folder, &entry, is_entry, compare);
	size_t nbytes = 1;
	char *at;

	if (n < 0)
		MU_FAIL(MU_ERR_IO, "%s: the folder cannot be read: %s", folder, strerror(errno));
	for (int i = 0; i < n; i++)
		nbytes += strlen(folder) + strlen(entry[i]->d_name) + 2;
	MU_TRY(MU_ALLOC(f->text, nbytes, "names of images"));
	MU_TRY(MU_ALLOC(f->path, (size_t)n + 1, "names of images"));
	at = f->text;
	for (int i = 0; i < n; i++) {
		const char *name = entry[i]->d_name;

		if (!is_image(entry[i])) {
			mu_left_out_add(left, *name == '.' ? MU_LEFT_HIDDEN : MU_LEFT_OTHER, name);
			continue;
		}
		f->path[f->n++] = at;
		at += sprintf(at, "%s/%s", folder, name) + 1;
	}
out:
	for (int i = 0; i < n; i++)
		free(entry[i]);
	free(entry);
	return st;
}

static enum mu_status read_list(struct image_files *f, const char *path)
{
	enum mu_status st = MU_OK;
	size_t lines = 1, n;

	MU_TRY(mu_file_read_text(&f->text, &n, path));
	for (const char *p = f->text; *p; p++)
		lines += *p == '\n' || *p == '\r'; /* where lines end below */
	MU_TRY(MU_ALLOC(f->path, lines, path));
	for (char *line = f->text, *end; line; line = end) {
		char *last;

		end = line + strcspn(line, "\r\n");
		end = *end ? end : NULL;
		if (end)
			*end++ = '\0';
		last = strrchr(line, '\t');
		if (last && !last[1])
			MU_FAIL(MU_ERR_FORMAT, "%s: the line \"%.60s\" ends in a tab, with no path",
				path, line);
		if (*line)
			f->path[f->n++] = last ? last + 1 : line;
	}
	if (f->n == 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: holds no lines; expected a path of an image in each",
			path);
out:
	return st;
}

static enum mu_status open_files(struct mu_records *r, const char *path)
{
	enum mu_status st = MU_OK;
	struct image_files *f;

	if (!r->config.unlabelled)
		MU_FAIL(MU_ERR_USAGE,
			"%s: images without labels; expected a folder with a folder of images for "
			"each class",
			path);
	MU_TRY(MU_ALLOC(f, 1, "list of images"));
	r->impl = f;
	MU_TRY(mu_stem(path, ".lst") ? read_list(f, path)
				     : list_folder(f, path, &r->info.left_out));
	r->info.n = f->n;
	r->info.kind = MU_RECORD_ENCODED;
	r->info.label_width = 1;
	r->info.separate = true;
	r->info.format = "images without labels";
	r->info.unlabelled = true;
out:
	return st;
}

static void close_files(struct mu_records *r)
{
	struct image_files *f = r->impl;

	mu_free(f->text);
	mu_free(f->path);
	mu_free(f);
}

static size_t bound(const struct mu_records *r, size_t i)
{
	const struct image_files *f = r->impl;
	struct stat info;

	return stat(f->path[i], &info) == 0 ? (size_t)info.st_size : 0;
}

static void where(const struct mu_records *r, size_t i, char *text, size_t nbytes)
{
	const struct image_files *f = r->impl;

	snprintf(text, nbytes, "%s", f->path[i]);
}

static enum mu_status read_record(const struct mu_records *r, size_t i,
				  struct mu_record_buffer *buffer, struct mu_record *out)
{
	static const float none = 0;
	const struct image_files *f = r->impl;

	*out = (struct mu_record){.id = i, .n_labels = 1, .labels = &none};
	return mu_record_read_image(f->path[i], buffer, out);
}

static void hash_files(const struct mu_records *r, uint64_t *listing, uint64_t *times)
{
	const struct image_files *f = r->impl;
	const size_t step = f->n / MU_RECORD_MOST_STATS + 1;

	for (size_t i = 0; i < f->n; i++) {
		const char *slash = strrchr(f->path[i], '/'), *name = slash ? slash : f->path[i];

		*listing = mu_hash_block(*listing, name, strlen(name));
		if (i % step == 0)
			mu_record_hash_file(f->path[i], listing, times);
	}
}

const struct mu_records_ops mu_records_image_files = {
	.files = "images without labels: a folder of them, or a list of their paths (.lst)",
	.holds = holds,
	.open = open_files,
	.close = close_files,
	.read = read_record,
	.bound = bound,
	.where = where,
	.hash_files = hash_files,
};
