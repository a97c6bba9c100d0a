/* SPDX-License-Identifier: Apache-2.0 */
/* A file that several threads read by offset. Its size and modification time are stored, so that an
 * error can say whether the file has changed since it was opened. */
#ifndef MUSTER_STORAGE_FILE_H
#define MUSTER_STORAGE_FILE_H

#include <muster/base.h>

#include <time.h>

enum { MU_FOLDER_BYTES = 4096 }; /* PATH_MAX of Linux: no file has a longer path */

struct mu_file {
	int fd;     /* -1: not open */
	char *path; /* owned */
	size_t nbytes;
	struct timespec changed;
};

/* Release f by mu_file_close, also after an error. A folder or a device is an error. */
enum mu_status mu_file_open(struct mu_file *f, const char *path);
/* n files are to be open at once: raise the limit of this process if it is lower. */
void mu_file_allow(size_t n);
/* Set to an empty file, for mu_file_close. */
void mu_file_init(struct mu_file *f);
void mu_file_close(struct mu_file *f);
/* Read bytes [at, at + nbytes); all must exist. Any thread. */
enum mu_status mu_file_read(const struct mu_file *f, size_t at, void *out, size_t nbytes);
/* The whole file, and a zero after its n bytes; the caller's to free (mu_free), NULL on error. */
enum mu_status mu_file_read_whole(char **out, size_t *n, const char *path);
/* The same of a text, without the byte order mark that it may begin with. MU_ERR_FORMAT: it is
 * UTF-16, or one of its bytes is zero. */
enum mu_status mu_file_read_text(char **out, size_t *n, const char *path);
/* MU_ERR_IO if size or modification time have changed since it was opened. */
enum mu_status mu_file_unchanged(const struct mu_file *f);
/* A hash of its bytes. */
enum mu_status mu_file_hash(const char *path, uint64_t *h);
/* Adds the modification time that it had when it was opened. */
void mu_file_hash_time(const struct mu_file *f, uint64_t *h);
/* Write all bytes at an offset of a descriptor; path is for messages. Any thread. */
enum mu_status mu_file_write_at(int fd, const char *path, const void *data, size_t nbytes,
				uint64_t offset);
/* " (the file changed after it was opened)" or "", for messages. */
const char *mu_file_changed_text(const struct mu_file *f);
/* The folder of the file `path`: "." of "file", "/" of "/file". */
void mu_folder_of(char folder[MU_FOLDER_BYTES], const char *path);

#endif
