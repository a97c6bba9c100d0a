/* SPDX-License-Identifier: Apache-2.0 */
/* Reading by offset: see file.h. By pread instead of a mapping, because truncation of a mapped file
 * causes a signal. */
#include "file.h"

#include <muster/storage.h>

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/utf8.h"

enum { PIECE_BYTES = 1 << 30 }; /* Linux reads at most 2 GiB - 4 KiB at once */

void mu_file_init(struct mu_file *f)
{
	*f = (struct mu_file){.fd = -1};
}

void mu_file_allow(size_t n)
{
	enum { OTHERS = 64 };
	struct rlimit limit;

	if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= n + OTHERS)
		return;
	limit.rlim_cur = limit.rlim_max;
	setrlimit(RLIMIT_NOFILE, &limit);
}

enum mu_status mu_file_open(struct mu_file *f, const char *path)
{
	enum mu_status st = MU_OK;
	struct stat status;
	size_t nbytes = strlen(path) + 1;

	mu_file_init(f);
	MU_TRY(MU_ALLOC(f->path, nbytes, "file name"));
	memcpy(f->path, path, nbytes);
	f->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not block */
	if (f->fd < 0 || fstat(f->fd, &status) != 0)
		MU_FAIL(MU_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
	if (!S_ISREG(status.st_mode))
		MU_FAIL(MU_ERR_IO, "%s: is not a plain file", path);
	f->nbytes = (size_t)status.st_size;
	f->changed = status.st_mtim;
out:
	return st;
}

enum mu_status mu_stream_open(FILE **out, const char *path)
{
	enum mu_status st = MU_OK;
	struct stat status;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a pipe must not block */

	*out = NULL;
	if (fd < 0 || fstat(fd, &status) != 0)
		MU_FAIL(MU_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
	if (!S_ISREG(status.st_mode))
		MU_FAIL(MU_ERR_IO, "%s: cannot be read: it is not a plain file", path);
	*out = fdopen(fd, "r");
	if (!*out)
		MU_FAIL(MU_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
out:
	if (fd >= 0 && !*out)
		close(fd);
	return st;
}

size_t mu_stream_head(const char *path, void *head, size_t nbytes)
{
	struct stat status;
	const int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	const bool plain = fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode);
	const ssize_t n = plain ? read(fd, head, nbytes) : 0;

	if (fd >= 0)
		close(fd);
	return n > 0 ? (size_t)n : 0;
}

bool mu_file_is_same(const char *a, const char *b)
{
	struct stat x, y;

	return stat(a, &x) == 0 && stat(b, &y) == 0 && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
}

enum mu_status mu_stream_append(FILE **out, const char *path, bool keep)
{
	enum mu_status st = MU_OK;
	struct stat status;
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NONBLOCK, 0666);

	*out = NULL;
	if (fd < 0 && errno != ENXIO) /* a pipe that nobody reads */
		MU_FAIL(MU_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
	if (fd < 0 || fstat(fd, &status) != 0 || !S_ISREG(status.st_mode))
		MU_FAIL(MU_ERR_IO, "%s: cannot be written: it is a device or a pipe", path);
	if (!keep && ftruncate(fd, 0) != 0)
		MU_FAIL(MU_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
	*out = fdopen(fd, "a");
	if (!*out)
		MU_FAIL(MU_ERR_IO, "%s: cannot be written: %s", path, strerror(errno));
out:
	if (fd >= 0 && !*out)
		close(fd);
	return st;
}

void mu_file_close(struct mu_file *f)
{
	if (f->fd >= 0)
		close(f->fd);
	mu_free(f->path);
	mu_file_init(f);
}

static bool is_changed(const struct mu_file *f)
{
	struct stat status;

	return fstat(f->fd, &status) != 0 || (size_t)status.st_size != f->nbytes ||
	       status.st_mtim.tv_sec != f->changed.tv_sec ||
	       status.st_mtim.tv_nsec != f->changed.tv_nsec;
}

const char *mu_file_changed_text(const struct mu_file *f)
{
	return is_changed(f) ? " (the file changed after it was opened)" : "";
}

enum mu_status mu_file_unchanged(const struct mu_file *f)
{
	enum mu_status st = MU_OK;

	if (is_changed(f))
		MU_FAIL(MU_ERR_IO,
			"%s: the file changed after it was opened; it must stay as it is while it "
			"is read",
			f->path);
out:
	return st;
}

void mu_file_hash_time(const struct mu_file *f, uint64_t *h)
{
	const int64_t time[2] = {f->changed.tv_sec, f->changed.tv_nsec};

	*h = mu_hash_block(*h, time, sizeof time);
}

enum mu_status mu_file_read(const struct mu_file *f, size_t at, void *out, size_t nbytes)
{
	enum mu_status st = MU_OK;

	for (size_t done = 0; done < nbytes;) {
		size_t piece = nbytes - done < PIECE_BYTES ? nbytes - done : PIECE_BYTES;
		ssize_t n = pread(f->fd, (char *)out + done, piece, (off_t)(at + done));

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			MU_FAIL(MU_ERR_IO, "%s: cannot be read at byte %zu: %s", f->path, at + done,
				strerror(errno));
		if (n == 0)
			MU_FAIL(MU_ERR_IO, "%s: ends at byte %zu, where %zu more were expected%s",
				f->path, at + done, nbytes - done, mu_file_changed_text(f));
		done += (size_t)n;
	}
out:
	return st;
}

enum mu_status mu_file_read_whole(char **out, size_t *n, const char *path)
{
	enum mu_status st = MU_OK;
	struct mu_file file;

	*out = NULL;
	mu_file_init(&file);
	MU_TRY(mu_file_open(&file, path));
	MU_TRY(MU_ALLOC(*out, file.nbytes + 1, path));
	MU_TRY(mu_file_read(&file, 0, *out, file.nbytes));
	*n = file.nbytes;
out:
	mu_file_close(&file);
	if (st != MU_OK) {
		mu_free(*out);
		*out = NULL;
	}
	return st;
}

enum mu_status mu_file_hash(const char *path, uint64_t *h)
{
	enum mu_status st = MU_OK;
	const size_t room = 1 << 20;
	struct mu_file file;
	unsigned char *piece = NULL;

	*h = MU_HASH_START;
	mu_file_init(&file);
	MU_TRY(mu_file_open(&file, path));
	MU_TRY(MU_ALLOC(piece, room, path));
	for (size_t at = 0, n; at < file.nbytes; at += n) {
		n = file.nbytes - at < room ? file.nbytes - at : room;
		MU_TRY(mu_file_read(&file, at, piece, n));
		*h = mu_hash_block(*h, piece, n);
	}
out:
	mu_free(piece);
	mu_file_close(&file);
	return st;
}

enum mu_status mu_file_read_text(char **out, size_t *n, const char *path)
{
	enum mu_status st = MU_OK;
	size_t mark;

	MU_TRY(mu_file_read_whole(out, n, path));
	MU_TRY(mu_text_begin(path, *out, *n, &mark));
	if (memchr(*out, '\0', *n))
		MU_FAIL(MU_ERR_FORMAT, "%s: is no text: byte %zu is zero", path, strlen(*out));
	*n -= mark;
	memmove(*out, *out + mark, *n + 1);
out:
	if (st != MU_OK) {
		mu_free(*out);
		*out = NULL;
	}
	return st;
}

/* A call may write less than asked: large data, a full disk. */
enum mu_status mu_file_write_at(int fd, const char *path, const void *data, size_t nbytes,
				uint64_t offset)
{
	enum mu_status st = MU_OK;
	const char *p = data;
	const size_t limit = (size_t)1 << 24;

	while (nbytes > 0) {
		ssize_t n = pwrite(fd, p, nbytes < limit ? nbytes : limit, (off_t)offset);

		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			MU_FAIL(MU_ERR_IO, "%s: cannot be written: %s", path,
				n < 0 ? strerror(errno) : "nothing was written");
		mu_progress_made();
		p += n;
		nbytes -= (size_t)n;
		offset += (uint64_t)n;
	}
out:
	return st;
}
