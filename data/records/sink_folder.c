/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Records as a folder of images per class, also inside a tar file. Images are named by their ids.
 * Every class up to the largest label has a folder, so that labels stay what they are when the
 * folder is read.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <muster/storage.h>

#include "../lib/folder.h"
#include "sink.h"
#include "../lib/tar.h"

enum { PATH_BYTES = 4096, CLASSES_MAX = 100000 };

#define NEW_IDS "--renumber gives all records new ones"

/* What names an image. */
struct key {
	size_t label;
	uint64_t id;
};

struct tree {
	struct data_tar_writer *tar; /* NULL: a folder */
	char *path, *temporary;      /* of the folder; owned */
	int fd;                      /* of the temporary folder */
	bool made[CLASSES_MAX];      /* the folders that there are */
	size_t classes;
	struct data_buffer keys; /* of the images in a tar file */
	size_t n_keys;
};

/* ---- one entry, in either ---- */

/* name: in the temporary folder, whatever has that folder's name meanwhile; path: for messages. */
static enum mu_status write_file(const struct tree *tree, const char *name, const char *path,
				 const uint8_t *bytes, size_t n)
{
	enum mu_status st = MU_OK;
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC; /* an id that came twice */
	const int fd = openat(tree->fd, name, flags, 0666);
	FILE *f = fd < 0 ? NULL : fdopen(fd, "wb");

	if (fd < 0 && errno == EEXIST)
		MU_FAIL(MU_ERR_FORMAT, "%s: two records of a class have this id; " NEW_IDS, path);
	if (!f || fwrite(bytes, 1, n, f) != n)
		MU_FAIL(MU_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
out:
	if (fd >= 0 && !f)
		close(fd);
	if (f && fclose(f) != 0 && st == MU_OK)
		st = mu_trace_start(MU_ERR_IO, __FILE__, __LINE__, "%s: cannot be written: %s",
				    path, strerror(errno));
	return st;
}

/* bytes NULL: a folder. */
static enum mu_status put(struct tree *tree, const char *name, const uint8_t *bytes, size_t n)
{
	enum mu_status st = MU_OK;
	char path[PATH_BYTES];

	if (tree->tar) {
		MU_TRY(data_tar_write(tree->tar, name, bytes, n));
		goto out;
	}
	if (snprintf(path, sizeof path, "%s/%s", tree->temporary, name) >= PATH_BYTES)
		MU_FAIL(MU_ERR_IO, "%.60s...: the path is longer than %d bytes", path,
			PATH_BYTES - 1);
	if (bytes)
		MU_TRY(write_file(tree, name, path, bytes, n));
	else if (mkdirat(tree->fd, name, 0777) != 0)
		MU_FAIL(MU_ERR_IO, "%s: the folder cannot be made: %s", path, strerror(errno));
out:
	return st;
}

static enum mu_status put_class(struct data_sink *sink, struct tree *tree, size_t label)
{
	enum mu_status st = MU_OK;
	char text[16];
	const char *name = data_class_name(sink, label, text);

	if (tree->made[label])
		goto out;
	if (!*name || *name == '.' || strchr(name, '/'))
		MU_FAIL(MU_ERR_FORMAT, "class %zu is named \"%s\", which cannot be a folder's name",
			label, name);
	MU_TRY(put(tree, name, NULL, 0));
	tree->made[label] = true;
	if (label >= tree->classes)
		tree->classes = label + 1;
out:
	return st;
}

static enum mu_status add(struct data_sink *sink, const struct data_sample *s)
{
	enum mu_status st = MU_OK;
	char text[16], name[PATH_BYTES];
	size_t label = (size_t)s->label;

	MU_TRY(put_class(sink, sink->impl, label));
	if (snprintf(name, sizeof name, "%s/%09llu%s", data_class_name(sink, label, text),
		     (unsigned long long)s->record->id,
		     data_image_end(s->bytes, s->n)) >= PATH_BYTES)
		MU_FAIL(MU_ERR_IO, "%.60s...: the name is longer than %d bytes", name,
			PATH_BYTES - 1);
	MU_TRY(put(sink->impl, name, s->bytes, s->n));
out:
	return st;
}

/* The folders of classes without images. */
static enum mu_status put_classes(struct data_sink *sink, struct tree *tree)
{
	enum mu_status st = MU_OK;
	const struct mu_records_info *source = &sink->config.source;

	if (source->class_names && source->classes > tree->classes &&
	    source->classes <= CLASSES_MAX)
		tree->classes = source->classes;
	for (size_t i = 0; i < tree->classes; i++)
		MU_TRY(put_class(sink, tree, i));
out:
	return st;
}

/* ---- the folder ---- */

/* A new one: what has its name is a killed process's, or somebody has laid it there. */
static enum mu_status make_temporary(struct tree *tree)
{
	enum mu_status st = MU_OK;
	struct stat status;

	if (mkdir(tree->temporary, 0777) != 0)
		MU_FAIL(MU_ERR_IO, "%s: the folder cannot be made: %s", tree->temporary,
			strerror(errno));
	tree->fd = open(tree->temporary, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (tree->fd < 0 || fstat(tree->fd, &status) != 0 || status.st_uid != geteuid())
		MU_FAIL(MU_ERR_IO, "%s: somebody put another folder in place of it",
			tree->temporary);
out:
	return st;
}

static enum mu_status open_folder(struct data_sink *sink, const char *path)
{
	enum mu_status st = MU_OK;
	struct tree *tree;
	size_t n = strlen(path);

	MU_TRY(MU_ALLOC(tree, 1, "folder of images"));
	sink->impl = tree;
	tree->fd = -1;
	while (n > 1 && path[n - 1] == '/')
		n--;
	tree->path = strndup(path, n);
	MU_TRY(mu_alloc((void **)&tree->temporary, n + 32, "folder name"));
	if (!tree->path)
		MU_FAIL(MU_ERR_MEMORY, "no memory for a path");
	/* A folder that is there must be empty: it is replaced by the new one. */
	MU_TRY(mu_folder_make(tree->path));
	if (rmdir(tree->path) != 0)
		MU_FAIL(MU_ERR_IO, "%s: cannot be replaced by a new folder: %s", tree->path,
			strerror(errno));
	snprintf(tree->temporary, n + 32, "%s.tmp-%ld", tree->path, (long)getpid());
	MU_TRY(make_temporary(tree));
out:
	return st;
}

/* Is the folder of the temporary name the one that was made? */
static bool is_ours(const struct tree *tree)
{
	struct stat ours, named;

	return fstat(tree->fd, &ours) == 0 && lstat(tree->temporary, &named) == 0 &&
	       ours.st_dev == named.st_dev && ours.st_ino == named.st_ino;
}

static enum mu_status finish_folder(struct data_sink *sink, bool commit)
{
	enum mu_status st = MU_OK;
	struct tree *tree = sink->impl;

	if (!commit)
		goto out;
	MU_TRY(put_classes(sink, tree));
	if (!is_ours(tree))
		MU_FAIL(MU_ERR_IO, "%s: somebody put another folder in place of it",
			tree->temporary);
	if (rename(tree->temporary, tree->path) != 0)
		MU_FAIL(MU_ERR_IO, "%s: cannot be renamed to %s: %s", tree->temporary, tree->path,
			strerror(errno));
	*tree->temporary = '\0';
out:
	if (tree->temporary && *tree->temporary && tree->fd >= 0 && is_ours(tree))
		data_folder_remove(tree->temporary);
	if (tree->fd >= 0)
		close(tree->fd);
	free(tree->path);
	mu_free(tree->temporary);
	mu_free(tree);
	return st;
}

const struct data_sink_ops data_sink_folder = {
	.names = DATA_NAMES_SORTED,
	.classes = true,
	.open = open_folder,
	.add = add,
	.finish = finish_folder,
};

/* ---- the tar file ---- */

static enum mu_status open_tar(struct data_sink *sink, const char *path)
{
	enum mu_status st = MU_OK;
	struct tree *tree;

	MU_TRY(MU_ALLOC(tree, 1, "tar file of images"));
	sink->impl = tree;
	MU_TRY(data_tar_create(&tree->tar, path));
out:
	return st;
}

static enum mu_status add_tar(struct data_sink *sink, const struct data_sample *s)
{
	enum mu_status st = MU_OK;
	struct tree *tree = sink->impl;
	size_t n = tree->n_keys * sizeof(struct key);

	MU_TRY(data_buffer_grow(&tree->keys, n, n + sizeof(struct key)));
	((struct key *)(void *)tree->keys.bytes)[tree->n_keys++] =
		(struct key){(size_t)s->label, s->record->id};
	MU_TRY(add(sink, s));
out:
	return st;
}

static int compare_keys(const void *a, const void *b)
{
	const struct key *x = a, *y = b;

	if (x->label != y->label)
		return x->label < y->label ? -1 : 1;
	return (x->id > y->id) - (x->id < y->id);
}

/* A tar file takes a name twice, and who unpacks it keeps the last one. */
static enum mu_status check_keys(const struct data_sink *sink, const struct tree *tree)
{
	enum mu_status st = MU_OK;
	struct key *keys = (void *)tree->keys.bytes;

	qsort(keys, tree->n_keys, sizeof *keys, compare_keys);
	for (size_t i = 1; i < tree->n_keys; i++)
		if (compare_keys(&keys[i - 1], &keys[i]) == 0)
			MU_FAIL(MU_ERR_FORMAT,
				"%s: two records of class %zu have the id %llu, which names their "
				"images; " NEW_IDS,
				sink->path, keys[i].label, (unsigned long long)keys[i].id);
out:
	return st;
}

static enum mu_status finish_tar(struct data_sink *sink, bool commit)
{
	enum mu_status st = MU_OK;
	struct tree *tree = sink->impl;

	if (commit) {
		MU_TRY(check_keys(sink, tree));
		MU_TRY(put_classes(sink, tree));
	}
	st = data_tar_finish(tree->tar, commit);
	tree->tar = NULL;
out:
	data_tar_finish(tree->tar, false);
	data_buffer_release(&tree->keys);
	mu_free(tree);
	return st;
}

const struct data_sink_ops data_sink_tar = {
	.names = DATA_NAMES_SORTED,
	.classes = true,
	.open = open_tar,
	.add = add_tar,
	.finish = finish_tar,
};
