/* SPDX-License-Identifier: Apache-2.0 */
/* Tar files for the tools of data/, through libarchive. */
#ifndef MUSTER_DATA_TAR_H
#define MUSTER_DATA_TAR_H

#include <muster/base.h>

/* What is done with the entries, in the order of the file. */
struct data_tar_visitor {
	void *context;
	/* Shall take get the contents of this file? folder: it is one, and has none. */
	bool (*wants)(void *context, const char *name, bool folder);
	/* NULL, or called for each name that begins with a dot: these are not wanted. */
	void (*hidden)(void *context, const char *name);
	/* done: the share of the tar file that has been read, from 0 to 1. */
	enum mu_status (*take)(void *context, const char *name, const uint8_t *bytes, size_t nbytes,
			       double done);
};

/* Packed (.gz, .xz, ...) or not. A link or a device that
 * is wanted is an error. MU_ERR_UNSUPPORTED in a build without libarchive. */
enum mu_status data_tar_read(const char *path, const struct data_tar_visitor *visitor);

struct data_tar_writer;

/* Packed if the name ends in gz, xz, bz2 or zst. Times and owners are 0, so that equal contents
 * give equal bytes. */
enum mu_status data_tar_create(struct data_tar_writer **out, const char *path);
/* bytes NULL: a folder. */
enum mu_status data_tar_write(struct data_tar_writer *w, const char *name, const uint8_t *bytes,
			      size_t nbytes);
enum mu_status data_tar_finish(struct data_tar_writer *w, bool commit);

#endif
