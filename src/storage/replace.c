/* SPDX-License-Identifier: Apache-2.0 */
/* Atomic replacement of a file: see storage.h. */
#include <muster/storage.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file.h"

enum { SUFFIX_BYTES = 32 };

/*
 * Create the temporary file, which must be ours: what has its name already is an earlier process's
 * of the same number, or a link that somebody has laid.
 */
static enum mu_status create(struct mu_replace *r)
{
	enum mu_status st = MU_OK;
	const int flags = O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int fd = open(r->temporary, flags, 0666);

	if (fd < 0 && errno == EEXIST && unlink(r->temporary) == 0)
		fd = open(r->temporary, flags, 0666);
	if (fd < 0 && errno == EEXIST)
		MU_FAIL(MU_ERR_IO, "%s: cannot be written: %s is in the way", r->path,
			r->temporary);
	if (fd < 0)
		MU_FAIL(MU_ERR_IO, "%s: cannot be written: %s", r->path, strerror(errno));
	r->fd = fd;
out:
	return st;
}

static bool is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

bool mu_replace_is_among(const char *path, const char *list)
{
	char name[4096];

	for (size_t n;; list += n + 1) {
		n = strcspn(list, ";");
		snprintf(name, sizeof name, "%.*s", (int)n, list);
		if (mu_file_is_same(path, name))
			return true;
		if (!list[n])
			return false;
	}
}

/* A name that opens the file itself, whatever has its temporary name meanwhile. Without a /proc of
 * ours there is none. */
static enum mu_status name_file(struct mu_replace *r)
{
	enum mu_status st = MU_OK;
	const size_t nbytes = strlen(r->temporary) + SUFFIX_BYTES;
	struct stat ours, named;

	MU_TRY(MU_ALLOC(r->written, nbytes, "name of an open file"));
	snprintf(r->written, nbytes, "/proc/self/fd/%d", r->fd);
	if (fstat(r->fd, &ours) != 0 || stat(r->written, &named) != 0 || !is_same(&ours, &named))
		snprintf(r->written, nbytes, "%s", r->temporary);
out:
	return st;
}

/* A device or a pipe must not be replaced by a file. */
static enum mu_status check_target(const char *path)
{
	enum mu_status st = MU_OK;
	struct stat status;

	if (stat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode))
		MU_FAIL(MU_ERR_IO, "%s: cannot be written: it is a device or a pipe, not a file",
			path);
out:
	return st;
}

enum mu_status mu_replace_begin(struct mu_replace *r, const char *path)
{
	enum mu_status st = MU_OK;
	size_t nbytes = strlen(path) + 1;

	*r = (struct mu_replace){0};
	MU_TRY(check_target(path));
	MU_TRY(MU_ALLOC(r->path, nbytes, "file name"));
	memcpy(r->path, path, nbytes);
	MU_TRY(MU_ALLOC(r->temporary, nbytes + SUFFIX_BYTES, "temporary file name"));
	/* The process id separates two jobs that write to the same path. */
	snprintf(r->temporary, nbytes + SUFFIX_BYTES, "%s.tmp-%ld", path, (long)getpid());
	st = create(r);
	if (st != MU_OK) { /* not ours to remove */
		mu_free(r->temporary);
		r->temporary = NULL;
	}
	MU_TRY(st);
	MU_TRY(name_file(r));
out:
	return st;
}

enum mu_status mu_replace_open(struct mu_replace *r, const char *path)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_replace_begin(r, path));
	r->stream = fopen(r->written, "we");
	if (!r->stream)
		MU_FAIL(MU_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
out:
	return st;
}

static enum mu_status close_stream(struct mu_replace *r)
{
	enum mu_status st = MU_OK;
	const bool failed = ferror(r->stream) != 0;
	const bool closed = fclose(r->stream) == 0;

	r->stream = NULL;
	if (!closed)
		MU_FAIL(MU_ERR_IO, "%s: cannot be written: %s", r->path, strerror(errno));
	if (failed) /* errno of the failed write is lost */
		MU_FAIL(MU_ERR_IO, "%s: cannot be written: no room, or an error of the disk",
			r->path);
out:
	return st;
}

static enum mu_status sync_folder(const struct mu_replace *r)
{
	enum mu_status st = MU_OK;
	char folder[MU_FOLDER_BYTES];
	int fd;

	mu_folder_of(folder, r->path);
	fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (fd < 0)
		MU_FAIL(MU_ERR_IO, "%s: %s cannot be opened to bring it to the disk: %s", r->path,
			folder, strerror(errno));
	/* EINVAL: the file system cannot sync folders. */
	if (fsync(fd) != 0 && errno != EINVAL)
		MU_FAIL(MU_ERR_IO, "%s: %s cannot be brought to the disk: %s", r->path, folder,
			strerror(errno));
out:
	if (fd >= 0)
		close(fd);
	return st;
}

/* Has the temporary name become another file's? */
static enum mu_status check_name(const struct mu_replace *r)
{
	enum mu_status st = MU_OK;
	struct stat ours, named;

	if (fstat(r->fd, &ours) != 0)
		MU_FAIL(MU_ERR_IO, "%s: cannot be written: %s", r->path, strerror(errno));
	if (lstat(r->temporary, &named) != 0)
		MU_FAIL(MU_ERR_IO, "%s: cannot be renamed to %s: %s", r->temporary, r->path,
			strerror(errno));
	if (!is_same(&ours, &named))
		MU_FAIL(MU_ERR_IO,
			"%s: cannot be written: somebody put another file in place of %s; write "
			"to a folder that only you may write to",
			r->path, r->temporary);
out:
	return st;
}

/* Network file systems and quotas tell some errors here only. */
static enum mu_status close_file(struct mu_replace *r)
{
	enum mu_status st = MU_OK;
	const int fd = r->fd;

	r->fd = -1;
	if (close(fd) != 0)
		MU_FAIL(MU_ERR_IO, "%s: cannot be written: %s", r->path, strerror(errno));
out:
	return st;
}

enum mu_status mu_replace_commit(struct mu_replace *r)
{
	enum mu_status st = MU_OK;

	if (r->stream)
		MU_TRY(close_stream(r));
	/* Sync the contents first: after a crash the new name must not refer to an incomplete file.
	 * EINVAL: the file system cannot. */
	if (fsync(r->fd) != 0 && errno != EINVAL)
		MU_FAIL(MU_ERR_IO, "%s: cannot be brought to the disk: %s", r->path,
			strerror(errno));
	MU_TRY(check_name(r));
	MU_TRY(close_file(r));
	if (rename(r->temporary, r->path) != 0)
		MU_FAIL(MU_ERR_IO, "%s: cannot be renamed to %s: %s", r->temporary, r->path,
			strerror(errno));
	mu_free(r->temporary);
	r->temporary = NULL;
	MU_TRY(sync_folder(r));
out:
	return st;
}

void mu_replace_release(struct mu_replace *r)
{
	if (r->stream)
		fclose(r->stream);
	if (r->temporary && r->fd >= 0)
		close(r->fd);
	if (r->temporary)
		unlink(r->temporary);
	mu_free(r->temporary);
	mu_free(r->written);
	mu_free(r->path);
	*r = (struct mu_replace){0};
}
