/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Arrays that callers write into a file of named arrays themselves, and checksums. HDF5 fixes the
 * offset of a contiguous array when it is created, and moves nothing in the file afterwards. So
 * several processes, or a thread that must not call HDF5, can write the contents by pwrite.
 */
#include "array_file.h"

#include <zlib.h>

static const char checksums_name[] = "checksums", index_name[] = MU_ARRAY_INDEX;

uint32_t mu_checksum(uint32_t before, const void *data, size_t nbytes)
{
	const size_t most = (size_t)1 << 30; /* zlib counts in unsigned int */
	const unsigned char *p = data;
	uLong sum = before;

	for (size_t n; nbytes > 0; p += n, nbytes -= n) {
		n = nbytes < most ? nbytes : most;
		sum = crc32(sum, p, (uInt)n);
	}
	return (uint32_t)sum;
}

static enum mu_status set_index(struct mu_array_file *f, hid_t set, uint32_t index)
{
	enum mu_status st = MU_OK;
	hid_t space = -1, attr = -1;

	MU_H5(space = H5Screate(H5S_SCALAR));
	MU_H5(attr = H5Acreate2(set, index_name, H5T_STD_U32LE, space, H5P_DEFAULT, H5P_DEFAULT));
	MU_H5(H5Awrite(attr, H5T_NATIVE_UINT32, &index));
out:
	mu_h5_close_attribute(attr);
	mu_h5_close_space(space);
	return st;
}

struct kind {
	hid_t type;
	int ndims;
	const hsize_t *dims;
	bool indexed;
};

/* *offset: from the start of the file. */
static enum mu_status make_array(struct mu_array_file *f, const char *name, const struct kind *kind,
				 uint64_t *offset)
{
	enum mu_status st = MU_OK;
	hid_t list = -1, space = -1, set = -1;
	haddr_t at;

	MU_TRY(mu_array_make_groups(f, name));
	MU_H5(list = H5Pcreate(H5P_DATASET_CREATE));
	MU_H5(H5Pset_obj_track_times(list, false));
	MU_H5(H5Pset_layout(list, H5D_CONTIGUOUS));
	MU_H5(H5Pset_alloc_time(list, H5D_ALLOC_TIME_EARLY));
	MU_H5(H5Pset_fill_time(list, H5D_FILL_TIME_NEVER));
	MU_H5(space = H5Screate_simple(kind->ndims, kind->dims, NULL));
	MU_H5(set = H5Dcreate2(f->file, name, kind->type, space, H5P_DEFAULT, list, H5P_DEFAULT));
	at = H5Dget_offset(set);
	if (at == HADDR_UNDEF)
		MU_FAIL(MU_ERR_IO, "%s: HDF5 allocated no space for array \"%s\"", f->path, name);
	*offset = at;
	if (kind->indexed)
		MU_TRY(set_index(f, set, f->n_defined++));
out:
	mu_h5_close_set(set);
	mu_h5_close_space(space);
	mu_h5_close_list(list);
	return st;
}

enum mu_status mu_array_file_define(struct mu_array_file *f, const char *name, int ndims,
				    const size_t *dims, uint64_t *offset)
{
	enum mu_status st = MU_OK;
	struct mu_h5_quiet quiet;
	hsize_t extent[MU_ARRAY_NDIMS];
	struct kind kind = {H5T_NATIVE_FLOAT, ndims, extent, true};

	mu_h5_quiet_begin(&quiet);
	MU_TRY(mu_array_dims(name, ndims, dims, extent));
	MU_TRY(make_array(f, name, &kind, offset));
out:
	mu_h5_quiet_end(&quiet);
	return st;
}

static enum mu_status make_checksums(struct mu_array_file *f, uint64_t *offset)
{
	enum mu_status st = MU_OK;
	const hsize_t n = f->n_defined;
	const struct kind kind = {H5T_NATIVE_UINT32, 1, &n, false};

	MU_TRY(make_array(f, checksums_name, &kind, offset));
	MU_TRY(mu_array_file_set_text(f, "checksum",
				      "CRC-32 of zlib over an array's bytes in this file; the "
				      "attribute checksum_index of the array is its place in "
				      "/checksums"));
out:
	return st;
}

enum mu_status mu_array_file_detach(struct mu_array_file *f, struct mu_replace *replace,
				    uint64_t *checksums)
{
	enum mu_status st = MU_OK;
	struct mu_h5_quiet quiet;
	hid_t file;

	*replace = (struct mu_replace){0};
	mu_h5_quiet_begin(&quiet);
	MU_TRY(make_checksums(f, checksums));
	MU_TRY(mu_array_flush(f));
	file = f->file;
	f->file = -1; /* closed, whatever the result */
	MU_TRY(mu_h5_close_written(f->path, file));
	*replace = f->replace;
	f->replace = (struct mu_replace){0};
out:
	mu_array_file_free(f);
	mu_h5_quiet_end(&quiet);
	return st;
}

/* ---- reading ---- */

enum mu_status mu_array_read_checksums(struct mu_array_file *f)
{
	enum mu_status st = MU_OK;
	hid_t set = -1, space = -1, type = -1;
	hssize_t n;

	MU_H5(set = H5Dopen2(f->file, checksums_name, H5P_DEFAULT));
	MU_TRY(mu_h5_check_own(f->file, set, f->path, checksums_name));
	MU_H5(type = H5Dget_type(set));
	MU_H5(space = H5Dget_space(set));
	MU_H5(n = H5Sget_simple_extent_npoints(space));
	if (H5Tget_class(type) != H5T_INTEGER || H5Tget_size(type) != sizeof(uint32_t) ||
	    H5Tget_sign(type) != H5T_SGN_NONE ||
	    H5Dget_storage_size(set) != (hsize_t)n * sizeof(uint32_t))
		MU_FAIL(MU_ERR_FORMAT,
			"%s: \"%s\" are not of type uint32, or not all there", f->path,
			checksums_name);
	MU_TRY(MU_ALLOC(f->checksums, (size_t)n + 1, "checksums"));
	MU_H5(H5Dread(set, H5T_NATIVE_UINT32, H5S_ALL, H5S_ALL, H5P_DEFAULT, f->checksums));
	f->n_checksums = (size_t)n;
out:
	mu_h5_close_type(type);
	mu_h5_close_space(space);
	mu_h5_close_set(set);
	return st;
}

static enum mu_status get_index(struct mu_array_file *f, hid_t set, const char *name,
				uint32_t *index)
{
	enum mu_status st = MU_OK;
	hid_t attr = -1, space = -1, type = -1;

	MU_H5(attr = H5Aopen(set, index_name, H5P_DEFAULT));
	MU_H5(space = H5Aget_space(attr));
	MU_H5(type = H5Aget_type(attr));
	if (H5Tget_class(type) != H5T_INTEGER || H5Sget_simple_extent_npoints(space) != 1)
		MU_FAIL(MU_ERR_FORMAT, "%s: array \"%s\": %s is not one whole number", f->path,
			name, index_name);
	MU_H5(H5Aread(attr, H5T_NATIVE_UINT32, index));
	if (*index >= f->n_checksums)
		MU_FAIL(MU_ERR_FORMAT, "%s: array \"%s\" has checksum %u, and there are %zu",
			f->path, name, *index, f->n_checksums);
out:
	mu_h5_close_type(type);
	mu_h5_close_space(space);
	mu_h5_close_attribute(attr);
	return st;
}

enum mu_status mu_array_verify(struct mu_array_file *f, hid_t set, const char *name,
			       const float *data)
{
	enum mu_status st = MU_OK;
	hid_t space = -1;
	hssize_t n;
	uint32_t index, found;
	htri_t has;

	MU_H5(has = H5Aexists(set, index_name));
	if (!has)
		goto out;
	if (!f->checksums)
		MU_TRY(mu_array_read_checksums(f));
	MU_TRY(get_index(f, set, name, &index));
	MU_H5(space = H5Dget_space(set));
	MU_H5(n = H5Sget_simple_extent_npoints(space));
	found = mu_checksum(0, data, (size_t)n * sizeof *data);
	if (found != f->checksums[index])
		MU_FAIL(MU_ERR_FORMAT,
			"%s: array \"%s\" is damaged: its checksum is %08x, and %08x was saved",
			f->path, name, found, f->checksums[index]);
out:
	mu_h5_close_space(space);
	return st;
}
