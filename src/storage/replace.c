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
 * of the same number, or a link that somebody has laid. The caller's open shows another error.
 */
static enum mu_status create(const struct mu_replace *r)
{
	enum mu_status st = MU_OK;
	const int flags = O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC;
	int fd = open(r->temporary, flags, 0666);

	if (fd < 0 && errno == EEXIST && unlink(r->temporary) == 0)
		fd = open(r->temporary, flags, 0666);
	if (fd < 0 && errno == EEXIST)
		MU_FAIL(MU_ERR_IO, "%s: cannot be written: %s is in the way", r->path,
			r->temporary);
out:
	if (fd >= 0)
		close(fd);
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
out:
	return st;
}

enum mu_status mu_replace_open(struct mu_replace *r, const char *path)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_replace_begin(r, path));
	r->stream = fopen(r->temporary, "we");
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

/* Of the file's contents, or of its folder. */
static enum mu_status sync_path(const struct mu_replace *r, const char *path, int flags)
{
	enum mu_status st = MU_OK;
	int fd = open(path, flags | O_CLOEXEC);

	if (fd < 0)
		MU_FAIL(MU_ERR_IO, "%s: %s cannot be opened to bring it to the disk: %s", r->path,
			path, strerror(errno));
	/* EINVAL: the file system cannot sync this kind of file (some cannot sync folders). */
	if (fsync(fd) != 0 && errno != EINVAL)
		MU_FAIL(MU_ERR_IO, "%s: %s cannot be brought to the disk: %s", r->path, path,
			strerror(errno));
out:
	if (fd >= 0)
		close(fd);
	return st;
}

enum mu_status mu_replace_commit(struct mu_replace *r)
{
	enum mu_status st = MU_OK;
	char folder[MU_FOLDER_BYTES];

	if (r->stream)
		MU_TRY(close_stream(r));
	/*
	 * Sync the contents first: after a crash the new name must not refer to an incomplete file.
	 */
	MU_TRY(sync_path(r, r->temporary, O_RDONLY));
	if (rename(r->temporary, r->path) != 0)
		MU_FAIL(MU_ERR_IO, "%s: cannot be renamed to %s: %s", r->temporary, r->path,
			strerror(errno));
	mu_free(r->temporary);
	r->temporary = NULL;
	mu_folder_of(folder, r->path);
	MU_TRY(sync_path(r, folder, O_RDONLY | O_DIRECTORY));
out:
	return st;
}

void mu_replace_release(struct mu_replace *r)
{
	if (r->stream)
		fclose(r->stream);
	if (r->temporary)
		unlink(r->temporary);
	mu_free(r->temporary);
	mu_free(r->path);
	*r = (struct mu_replace){0};
}
