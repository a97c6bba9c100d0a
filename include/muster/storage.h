/* SPDX-License-Identifier: Apache-2.0 */
/*
 * storage: files. IDX (the MNIST format), HDF5 files of named arrays, atomic replacement. Errors
 * name the file, what was found and what was expected. Not collective.
 */
#ifndef MUSTER_STORAGE_H
#define MUSTER_STORAGE_H

#include <muster/base.h>

/*
 * ---- atomic replacement of a file: write under a temporary name in the same folder, then rename.
 * A reader, or a job that is killed at any time, meets the old file or the new one, never a part.
 * ----
 */

struct mu_replace {
	char *path;      /* owned */
	char *temporary; /* the name to write to; owned; NULL when there is nothing to remove */
};

/* Choose the temporary name; creates nothing. */
enum mu_status mu_replace_begin(struct mu_replace *r, const char *path);
/* The temporary file is complete and closed: bring it to the disk and rename it. */
enum mu_status mu_replace_commit(struct mu_replace *r);
/* Free; without a commit also remove the temporary file. */
void mu_replace_release(struct mu_replace *r);

/* ---- IDX: big-endian magic 0 0 type ndims, ndims sizes, data. Only type 0x08 (unsigned byte).
 * Plain or gzip. ---- */

struct mu_idx {
	int ndims;
	size_t dims[4];
	uint8_t *data; /* dims[0] * dims[1] * ... bytes; owned */
};

/* path as given, or path with ".gz" appended. MU_ERR_IO, MU_ERR_FORMAT. ndims: what it must have.
 */
enum mu_status mu_idx_read(struct mu_idx *idx, const char *path, int ndims);
void mu_idx_release(struct mu_idx *idx);
/* Written to a temporary name and renamed; gzip if path ends in ".gz" (same bytes for the same
 * data: no time stamp). */
enum mu_status mu_idx_write(const char *path, const struct mu_idx *idx);

/* ---- HDF5: a file of named float32 arrays, in order ---- */

struct mu_array_file;

/* true if this build has HDF5; without, the functions below fail with MU_ERR_UNSUPPORTED. */
bool mu_array_file_supported(void);
/* "1.10.8 (parallel)" or "not built in" */
const char *mu_array_file_version(void);
/* Created under a temporary name in the same folder; mu_array_file_close with commit = true syncs
 * and renames it. */
enum mu_status mu_array_file_create(struct mu_array_file **out, const char *path);
enum mu_status mu_array_file_open(struct mu_array_file **out, const char *path);
/* group/name, e.g. "arg/convolution0_weight"; dims as given. Contiguous, float32. */
enum mu_status mu_array_file_write(struct mu_array_file *f, const char *name, int ndims,
				   const size_t *dims, const float *data);
/* dims must be what the file has: MU_ERR_FORMAT names both. */
enum mu_status mu_array_file_read(struct mu_array_file *f, const char *name, int ndims,
				  const size_t *dims, float *data);
enum mu_status mu_array_file_set_text(struct mu_array_file *f, const char *attribute,
				      const char *text);
enum mu_status mu_array_file_get_text(struct mu_array_file *f, const char *attribute, char *text,
				      size_t nbytes);
enum mu_status mu_array_file_close(struct mu_array_file *f, bool commit);

#endif
