/* SPDX-License-Identifier: Apache-2.0 */
/* Private to HDF5 data files: names shared by reader and writer, and arrays as the reader checks
 * them. records.h has the layout. */
#ifndef MUSTER_STORAGE_DATA_FILE_H
#define MUSTER_STORAGE_DATA_FILE_H

#include "storage/file.h"
#include "storage/arrays/h5.h"

#define MU_DATA_FORMAT "muster-data"
#define MU_DATA_CHECKSUM_HELP "CRC-32 (zlib) of the bytes of each array, little-endian"

enum {
	MU_DATA_VERSION = 1,
	MU_DATA_ALIGN = 1 << 20, /* bytes; for arrays of at least this size */
};

/* An array of the file, as HDF5 describes it. */
struct mu_data_array {
	const char *name;
	hid_t set, type;
	int ndims;
	hsize_t dims[H5S_MAX_RANK];
	size_t n;    /* numbers */
	size_t item; /* bytes of a number */
};

/* Requirements for an array. */
struct mu_data_wanted {
	const char *name, *text; /* text: for messages */
	H5T_class_t class;
	size_t item;  /* bytes; 0: any */
	int ndims[2]; /* one of these */
};

/* Check the attributes format and version. */
enum mu_status mu_data_check_format(const struct mu_file *f, hid_t file);
/* Check the attributes kind and count, which may be missing. */
enum mu_status mu_data_check_images(const struct mu_file *f, hid_t file, size_t n, bool raw);
/* Open an array; check that it exists, meets the requirements, and that all its bytes are in the
 * file. */
enum mu_status mu_data_array_open(const struct mu_file *f, hid_t file, struct mu_data_array *a,
				  const struct mu_data_wanted *want);
void mu_data_array_close(struct mu_data_array *a);
/* Checksum from the array's attribute. */
enum mu_status mu_data_array_checksum(const struct mu_file *f, const struct mu_data_array *a,
				      bool *found, uint32_t *out);
/* Read a whole array as type `type` of memory, and check its checksum. */
enum mu_status mu_data_array_read(const struct mu_file *f, struct mu_data_array *a, hid_t type,
				  void **out);

#endif
