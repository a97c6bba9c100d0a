/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of named float32 arrays in HDF5, used by one rank. Equal contents give equal bytes: no
 * times are stored. HDF5's own error output is off inside these functions; its innermost message
 * becomes a part of the error.
 */
#include "array_file.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "foreign.h"
#include "storage/file.h"

enum { DIMS_TEXT_BYTES = 200, ALIGN_FROM = 1 << 16, ALIGN_TO = 1 << 12 };

/* ---- small helpers ---- */

/* "(20, 1, 5, 5)" */
static const char *dims_text(int ndims, const hsize_t *dims, char text[DIMS_TEXT_BYTES])
{
	int used = snprintf(text, DIMS_TEXT_BYTES, "(");

	/* A file may have more dimensions than Muster writes; MU_ARRAY_NDIMS of them fit. */
	for (int i = 0; i < ndims && i < MU_ARRAY_NDIMS; i++)
		used += snprintf(text + used, DIMS_TEXT_BYTES - (size_t)used, "%s%llu",
				 i ? ", " : "", (unsigned long long)dims[i]);
	snprintf(text + used, DIMS_TEXT_BYTES - (size_t)used,
		 ndims > MU_ARRAY_NDIMS ? ", ...)" : ")");
	return text;
}

enum mu_status mu_array_dims(const char *name, int ndims, const size_t *dims,
			     hsize_t out[MU_ARRAY_NDIMS])
{
	enum mu_status st = MU_OK;

	if (ndims < 0 || ndims > MU_ARRAY_NDIMS)
		MU_FAIL(MU_ERR_ARGUMENT, "array \"%s\": %d dimensions; at most %d are possible",
			name, ndims, MU_ARRAY_NDIMS);
	for (int i = 0; i < ndims; i++)
		out[i] = dims[i];
out:
	return st;
}

static enum mu_status new_file(struct mu_array_file **out, const char *path)
{
	enum mu_status st = MU_OK;
	struct mu_array_file *f;
	size_t nbytes = strlen(path) + 1;

	*out = NULL;
	MU_TRY(MU_ALLOC(f, 1, "array file"));
	f->file = -1;
	*out = f;
	MU_TRY(MU_ALLOC(f->path, nbytes, "file name"));
	memcpy(f->path, path, nbytes);
out:
	return st;
}

/* Room for the whole file: errors of the disk are found before the arrays are written. */
enum mu_status mu_array_flush(struct mu_array_file *f)
{
	enum mu_status st = MU_OK;
	void *handle = NULL;
	hsize_t nbytes;
	int error;

	MU_H5(H5Fget_filesize(f->file, &nbytes));
	MU_H5(H5Fget_vfd_handle(f->file, H5P_DEFAULT, &handle));
	error = posix_fallocate(*(const int *)handle, 0, (off_t)nbytes);
	if (error != 0 && error != EINVAL && error != EOPNOTSUPP)
		MU_FAIL(MU_ERR_IO, "%s: cannot be written: %s", f->path, strerror(error));
	MU_H5(H5Fflush(f->file, H5F_SCOPE_GLOBAL));
out:
	return st;
}

void mu_array_file_free(struct mu_array_file *f)
{
	if (!f)
		return;
	if (f->writing)
		mu_h5_give_up(f->file);
	else
		mu_h5_close_read(f->path, f->file);
	mu_replace_release(&f->replace);
	mu_free(f->checksums);
	mu_free(f->path);
	mu_free(f);
}

/* ---- life ---- */

bool mu_array_file_supported(void)
{
	return true;
}

#define TEXT_OF(number) #number
#define VERSION_TEXT(major, minor, release) TEXT_OF(major) "." TEXT_OF(minor) "." TEXT_OF(release)

const char *mu_array_file_version(void)
{
#ifdef H5_HAVE_PARALLEL
	return VERSION_TEXT(H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE) " (parallel)";
#else
	return VERSION_TEXT(H5_VERS_MAJOR, H5_VERS_MINOR, H5_VERS_RELEASE) " (serial)";
#endif
}

enum mu_status mu_array_file_create(struct mu_array_file **out, const char *path)
{
	enum mu_status st = MU_OK;
	struct mu_h5_quiet quiet;
	struct mu_array_file *f = NULL;
	hid_t create = -1, access = -1;

	mu_h5_quiet_begin(&quiet);
	MU_TRY(new_file(&f, path));
	f->writing = true;
	MU_TRY(mu_replace_begin(&f->replace, path));
	MU_TRY(mu_h5_access_list(f->path, &access));
	/* From this format on HDF5's metadata have checksums, which its reader checks first. */
	MU_H5(H5Pset_libver_bounds(access, H5F_LIBVER_V18, H5F_LIBVER_LATEST));
	MU_H5(H5Pset_alignment(access, ALIGN_FROM, ALIGN_TO));
	MU_H5(create = H5Pcreate(H5P_FILE_CREATE));
	MU_H5(H5Pset_obj_track_times(create, false));
	MU_H5(H5Pset_link_creation_order(create, H5P_CRT_ORDER_TRACKED | H5P_CRT_ORDER_INDEXED));
	MU_H5(f->file = H5Fcreate(f->replace.written, H5F_ACC_TRUNC, create, access));
out:
	mu_h5_close_list(create);
	mu_h5_close_list(access);
	if (st != MU_OK) {
		mu_array_file_free(f);
		f = NULL;
	}
	mu_h5_quiet_end(&quiet);
	*out = f;
	return st;
}

enum mu_status mu_array_file_open_checked(struct mu_array_file **out, const char *path)
{
	enum mu_status st = MU_OK;
	struct mu_file file;
	uint8_t head[9] = {0}; /* byte 8 is the version of the superblock */

	*out = NULL;
	mu_file_init(&file);
	MU_TRY(mu_file_open(&file, path));
	MU_TRY(mu_file_read(&file, 0, head, file.nbytes < 9 ? file.nbytes : 9));
	if (memcmp(head, "\x89HDF\r\n\x1a\n", 8) != 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: is not an HDF5 file%s", path,
			mu_array_file_advice(path));
	if (head[8] < 2)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: is in HDF5's old file format (superblock %u), which has no checksums; "
			"h5repack -j 1 makes a new one",
			path, head[8]);
	MU_TRY(mu_array_file_open(out, path));
out:
	mu_file_close(&file);
	return st;
}

enum mu_status mu_array_file_open(struct mu_array_file **out, const char *path)
{
	enum mu_status st = MU_OK;
	struct mu_h5_quiet quiet;
	struct mu_array_file *f = NULL;
	char message[MU_H5_MESSAGE];
	hid_t list = -1;
	bool is;

	mu_h5_quiet_begin(&quiet);
	MU_TRY(new_file(&f, path));
	if (access(path, R_OK) != 0)
		MU_FAIL(MU_ERR_IO, "%s: cannot be opened: %s", path, strerror(errno));
	MU_TRY(mu_h5_access_list(f->path, &list));
	f->file = H5Fopen(path, H5F_ACC_RDONLY, list);
	if (f->file >= 0)
		goto out;
	mu_h5_message(message);
	MU_TRY(mu_array_file_is(path, &is));
	if (!is)
		MU_FAIL(MU_ERR_FORMAT, "%s: is not an HDF5 file%s", path,
			mu_array_file_advice(path));
	MU_FAIL(MU_ERR_FORMAT, "%s: damaged HDF5 file: %s", path, message);
out:
	mu_h5_close_list(list);
	if (st != MU_OK) {
		mu_array_file_free(f);
		f = NULL;
	}
	mu_h5_quiet_end(&quiet);
	*out = f;
	return st;
}

enum mu_status mu_array_file_close(struct mu_array_file *f, bool commit)
{
	enum mu_status st = MU_OK;
	struct mu_h5_quiet quiet;
	hid_t file;

	if (!f)
		return MU_OK;
	mu_h5_quiet_begin(&quiet);
	if (!f->writing || !commit)
		goto out;
	MU_TRY(mu_array_flush(f));
	file = f->file;
	f->file = -1; /* closed, whatever the result */
	MU_TRY(mu_h5_close_written(f->path, file));
	MU_TRY(mu_replace_commit(&f->replace));
out:
	mu_array_file_free(f);
	mu_h5_quiet_end(&quiet);
	return st;
}

/* ---- arrays ---- */

enum mu_status mu_array_file_write(struct mu_array_file *f, const char *name, int ndims,
				   const size_t *dims, const float *data)
{
	enum mu_status st = MU_OK;
	struct mu_h5_quiet quiet;
	hsize_t extent[MU_ARRAY_NDIMS];
	hid_t list = -1, space = -1, set = -1;

	mu_h5_quiet_begin(&quiet);
	MU_TRY(mu_array_dims(name, ndims, dims, extent));
	MU_TRY(mu_array_make_groups(f, name));
	MU_H5(list = H5Pcreate(H5P_DATASET_CREATE));
	MU_H5(H5Pset_obj_track_times(list, false));
	MU_H5(H5Pset_layout(list, H5D_CONTIGUOUS));
	MU_H5(space = H5Screate_simple(ndims, extent, NULL));
	MU_H5(set = H5Dcreate2(f->file, name, H5T_IEEE_F32LE, space, H5P_DEFAULT, list,
			       H5P_DEFAULT));
	MU_H5(H5Dwrite(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data));
out:
	mu_h5_close_set(set);
	mu_h5_close_space(space);
	mu_h5_close_list(list);
	mu_h5_quiet_end(&quiet);
	return st;
}

/* The array in the file must be float32 with these dimensions. */
static enum mu_status check_array(struct mu_array_file *f, hid_t set, const char *name, int ndims,
				  const hsize_t *dims)
{
	enum mu_status st = MU_OK;
	char text[2][DIMS_TEXT_BYTES];
	hsize_t found[H5S_MAX_RANK];
	hid_t space = -1, type = -1;
	int n;

	MU_H5(type = H5Dget_type(set));
	if (H5Tget_class(type) != H5T_FLOAT || H5Tget_size(type) != sizeof(float))
		MU_FAIL(MU_ERR_FORMAT, "%s: array \"%s\" is not of type float32", f->path, name);
	MU_H5(space = H5Dget_space(set));
	MU_H5(n = H5Sget_simple_extent_dims(space, found, NULL));
	if (n != ndims || memcmp(found, dims, (size_t)n * sizeof *dims) != 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: array \"%s\" has dimensions %s; expected %s", f->path,
			name, dims_text(n, found, text[0]), dims_text(ndims, dims, text[1]));
out:
	mu_h5_close_space(space);
	mu_h5_close_type(type);
	return st;
}

enum mu_status mu_array_file_read(struct mu_array_file *f, const char *name, int ndims,
				  const size_t *dims, float *data)
{
	enum mu_status st = MU_OK;
	struct mu_h5_quiet quiet;
	hsize_t extent[MU_ARRAY_NDIMS];
	hid_t set = -1;
	bool found;

	mu_h5_quiet_begin(&quiet);
	MU_TRY(mu_array_dims(name, ndims, dims, extent));
	MU_TRY(mu_array_find_link(f, name, &found));
	if (!found)
		MU_FAIL(MU_ERR_FORMAT, "%s: holds no array \"%s\"", f->path, name);
	MU_H5(set = H5Dopen2(f->file, name, H5P_DEFAULT));
	MU_TRY(mu_h5_check_own(f->file, set, f->path, name));
	MU_TRY(check_array(f, set, name, ndims, extent));
	MU_H5(H5Dread(set, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, data));
	MU_TRY(mu_array_verify(f, set, name, data));
out:
	mu_h5_close_set(set);
	mu_h5_quiet_end(&quiet);
	return st;
}

/* ---- texts ---- */

enum mu_status mu_array_file_set_text(struct mu_array_file *f, const char *attribute,
				      const char *text)
{
	enum mu_status st = MU_OK;
	struct mu_h5_quiet quiet;
	hid_t type = -1, space = -1, attr = -1;
	htri_t found;

	mu_h5_quiet_begin(&quiet);
	MU_H5(found = H5Aexists(f->file, attribute));
	if (found)
		MU_H5(H5Adelete(f->file, attribute));
	MU_H5(type = H5Tcopy(H5T_C_S1));
	MU_H5(H5Tset_size(type, strlen(text) + 1));
	MU_H5(space = H5Screate(H5S_SCALAR));
	MU_H5(attr = H5Acreate2(f->file, attribute, type, space, H5P_DEFAULT, H5P_DEFAULT));
	MU_H5(H5Awrite(attr, type, text));
out:
	mu_h5_close_attribute(attr);
	mu_h5_close_space(space);
	mu_h5_close_type(type);
	mu_h5_quiet_end(&quiet);
	return st;
}

enum mu_status mu_array_file_has_text(struct mu_array_file *f, const char *attribute, bool *found)
{
	enum mu_status st = MU_OK;
	struct mu_h5_quiet quiet;
	htri_t answer;

	mu_h5_quiet_begin(&quiet);
	MU_H5(answer = H5Aexists(f->file, attribute));
	*found = answer > 0;
out:
	mu_h5_quiet_end(&quiet);
	return st;
}

enum mu_status mu_array_file_text_bytes(struct mu_array_file *f, const char *attribute,
					size_t *nbytes)
{
	enum mu_status st = MU_OK;
	struct mu_h5_quiet quiet;
	hid_t type = -1, attr = -1;

	mu_h5_quiet_begin(&quiet);
	MU_H5(attr = H5Aopen(f->file, attribute, H5P_DEFAULT));
	MU_H5(type = H5Aget_type(attr));
	*nbytes = H5Tget_size(type) + 1; /* a text of another program may lack the zero */
out:
	mu_h5_close_attribute(attr);
	mu_h5_close_type(type);
	mu_h5_quiet_end(&quiet);
	return st;
}

enum mu_status mu_array_file_get_text(struct mu_array_file *f, const char *attribute, char *text,
				      size_t nbytes)
{
	enum mu_status st = MU_OK;
	struct mu_h5_quiet quiet;
	hid_t type = -1, ours = -1, attr = -1, space = -1;
	htri_t found;
	size_t stored;

	mu_h5_quiet_begin(&quiet);
	MU_H5(found = H5Aexists(f->file, attribute));
	if (!found)
		MU_FAIL(MU_ERR_FORMAT, "%s: holds no attribute \"%s\"", f->path, attribute);
	MU_H5(attr = H5Aopen(f->file, attribute, H5P_DEFAULT));
	MU_H5(type = H5Aget_type(attr));
	MU_H5(space = H5Aget_space(attr));
	stored = H5Tget_size(type);
	if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) > 0 ||
	    H5Sget_simple_extent_npoints(space) != 1)
		MU_FAIL(MU_ERR_FORMAT, "%s: attribute \"%s\" is not one text of fixed length",
			f->path, attribute);
	/* A text of another program may lack the terminating zero. */
	if (H5Tget_strpad(type) != H5T_STR_NULLTERM)
		stored++;
	if (stored > nbytes)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: attribute \"%s\" has %zu bytes; at most %zu are expected", f->path,
			attribute, stored, nbytes);
	MU_H5(ours = H5Tcopy(H5T_C_S1));
	MU_H5(H5Tset_size(ours, nbytes));
	MU_H5(H5Aread(attr, ours, text));
out:
	mu_h5_close_attribute(attr);
	mu_h5_close_space(space);
	mu_h5_close_type(ours);
	mu_h5_close_type(type);
	mu_h5_quiet_end(&quiet);
	return st;
}
