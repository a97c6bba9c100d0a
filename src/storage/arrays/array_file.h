/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the files that read and write files of named arrays. See storage.h. */
#ifndef MUSTER_STORAGE_ARRAY_FILE_H
#define MUSTER_STORAGE_ARRAY_FILE_H

#include <muster/storage.h>

#include "h5.h"

enum { MU_ARRAY_NDIMS = 8, MU_ARRAY_NAME_BYTES = 256 };

struct mu_array_file {
	hid_t file;
	bool writing;
	struct mu_replace replace; /* when writing */
	char *path;                /* as the user gave it; owned */
	uint32_t n_defined;        /* arrays that the caller writes */
	uint32_t *checksums;       /* n_checksums; NULL: not read yet, or the file has none */
	size_t n_checksums;
};

/* MU_TRY for an HDF5 call; needs f. A negative result is an error. */
#define MU_H5(call) MU_H5_TRY(f->path, call)

/* Bring what HDF5 holds to a file with room for all of it; MU_ERR_IO on a full disk. */
enum mu_status mu_array_flush(struct mu_array_file *f);
void mu_array_file_free(struct mu_array_file *f);
/* Check a number of dimensions, and convert. */
enum mu_status mu_array_dims(const char *name, int ndims, const size_t *dims,
			     hsize_t out[MU_ARRAY_NDIMS]);
/* Does a link of this name exist? HDF5 needs all groups of the path to exist: each is checked. */
enum mu_status mu_array_find_link(struct mu_array_file *f, const char *name, bool *found);
/* Create the groups of a new array's path. MU_ERR_ARGUMENT if the array exists, MU_ERR_FORMAT for a
 * name that HDF5 cannot hold beside those that are there. */
enum mu_status mu_array_make_groups(struct mu_array_file *f, const char *name);
/* If the array has a checksum, it must match data: else MU_ERR_FORMAT. */
enum mu_status mu_array_verify(struct mu_array_file *f, hid_t set, const char *name,
			       const float *data);
/* Attribute of an array: the number of its checksum. */
#define MU_ARRAY_INDEX "checksum_index"
/* Into f->checksums. */
enum mu_status mu_array_read_checksums(struct mu_array_file *f);

#endif
