/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays and attributes of HDF5 data files, read and checked: see data_file.h. */
#include <string.h>
#include <zlib.h>

#include "data_file.h"

enum { TEXT_BYTES = 256, CRC_PIECE = 1 << 30 };

/* ---- attributes ---- */

/* A text attribute of a file or an array; *found = false if there is none. */
static enum mu_status get_text(const struct mu_file *f, hid_t place, const char *name,
			       char text[TEXT_BYTES], bool *found)
{
	enum mu_status st = MU_OK;
	const char *path = f->path;
	hid_t attribute = -1, type = -1, ours = -1, space = -1;
	htri_t there;

	MU_H5_TRY(path, there = H5Aexists(place, name));
	*found = there > 0;
	if (!there)
		goto out;
	MU_H5_TRY(path, attribute = H5Aopen(place, name, H5P_DEFAULT));
	MU_H5_TRY(path, type = H5Aget_type(attribute));
	MU_H5_TRY(path, space = H5Aget_space(attribute));
	if (H5Tget_class(type) != H5T_STRING || H5Tis_variable_str(type) != 0 ||
	    H5Tget_size(type) >= TEXT_BYTES || H5Sget_simple_extent_npoints(space) != 1)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: attribute \"%s\" is not one text of fixed length below %d bytes", path,
			name, TEXT_BYTES);
	MU_H5_TRY(path, ours = H5Tcopy(H5T_C_S1));
	MU_H5_TRY(path, H5Tset_size(ours, TEXT_BYTES));
	MU_H5_TRY(path, H5Tset_cset(ours, H5Tget_cset(type)));
	MU_H5_TRY(path, H5Aread(attribute, ours, text));
	text[TEXT_BYTES - 1] = '\0';
out:
	mu_h5_close_space(space);
	mu_h5_close_type(ours);
	mu_h5_close_type(type);
	mu_h5_close_attribute(attribute);
	return st;
}

/* An attribute of a file that is one whole number; *found = false if there is none. */
static enum mu_status get_number(const struct mu_file *f, hid_t file, const char *name,
				 int64_t *value, bool *found)
{
	enum mu_status st = MU_OK;
	const char *path = f->path;
	hid_t attribute = -1, type = -1, space = -1;
	htri_t there;

	MU_H5_TRY(path, there = H5Aexists(file, name));
	*found = there > 0;
	if (!there)
		goto out;
	MU_H5_TRY(path, attribute = H5Aopen(file, name, H5P_DEFAULT));
	MU_H5_TRY(path, type = H5Aget_type(attribute));
	MU_H5_TRY(path, space = H5Aget_space(attribute));
	if (H5Tget_class(type) != H5T_INTEGER || H5Sget_simple_extent_npoints(space) != 1)
		MU_FAIL(MU_ERR_FORMAT, "%s: attribute \"%s\" is not one whole number", path, name);
	MU_H5_TRY(path, H5Aread(attribute, H5T_NATIVE_INT64, value));
out:
	mu_h5_close_space(space);
	mu_h5_close_type(type);
	mu_h5_close_attribute(attribute);
	return st;
}

enum mu_status mu_data_check_format(const struct mu_file *f, hid_t file)
{
	enum mu_status st = MU_OK;
	const char *path = f->path;
	char text[TEXT_BYTES] = "";
	int64_t version;
	bool found;

	MU_TRY(get_text(f, file, "format", text, &found));
	if (!found || strcmp(text, MU_DATA_FORMAT) != 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: is an HDF5 file, but no data file: its attribute \"format\" is %s%s; "
			"expected " MU_DATA_FORMAT "; of arrays of another program "
			"numpy.save('x.npy', h5py.File(FILE)['NAME'][:]) makes files that are read",
			path, found ? "" : "missing", text);
	MU_TRY(get_number(f, file, "version", &version, &found));
	if (!found)
		MU_FAIL(MU_ERR_FORMAT, "%s: has no attribute \"version\"; expected %d", path,
			MU_DATA_VERSION);
	if (version != MU_DATA_VERSION)
		MU_FAIL(MU_ERR_UNSUPPORTED, "%s: is of version %lld; this program reads version %d",
			path, (long long)version, MU_DATA_VERSION);
out:
	return st;
}

enum mu_status mu_data_check_images(const struct mu_file *f, hid_t file, size_t n, bool raw)
{
	enum mu_status st = MU_OK;
	const char *path = f->path, *kind = raw ? "raw" : "encoded";
	char text[TEXT_BYTES] = "";
	int64_t count;
	bool found;

	MU_TRY(get_text(f, file, "kind", text, &found));
	if (found && strcmp(text, kind) != 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: attribute \"kind\" is \"%s\"; expected \"%s\", because array "
			"\"images\" has %d dimension%s",
			path, text, kind, raw ? 4 : 1, raw ? "s" : "");
	MU_TRY(get_number(f, file, "count", &count, &found));
	if (found && (count < 0 || (size_t)count != n))
		MU_FAIL(MU_ERR_FORMAT,
			"%s: attribute \"count\" is %lld; the arrays hold %zu image%s", path,
			(long long)count, n, MU_S(n));
out:
	return st;
}

/* ---- arrays ---- */

void mu_data_array_close(struct mu_data_array *a)
{
	mu_h5_close_type(a->type);
	mu_h5_close_set(a->set);
	a->set = a->type = -1;
}

/* Check, before allocation, that all its bytes are in the file. */
static enum mu_status check_stored(const struct mu_file *f, const struct mu_data_array *a)
{
	enum mu_status st = MU_OK;
	size_t nbytes;

	if (__builtin_mul_overflow(a->n, a->item, &nbytes) || nbytes > f->nbytes ||
	    H5Dget_storage_size(a->set) < nbytes)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: array \"%s\" claims %zu numbers of %zu bytes, which are not all in "
			"the file of %zu bytes (truncated, never written, or compressed)",
			f->path, a->name, a->n, a->item, f->nbytes);
out:
	return st;
}

enum mu_status mu_data_array_open(const struct mu_file *f, hid_t file, struct mu_data_array *a,
				  const struct mu_data_wanted *want)
{
	enum mu_status st = MU_OK;
	const char *path = f->path;
	hid_t space = -1;

	*a = (struct mu_data_array){.name = want->name, .set = -1, .type = -1, .n = 1};
	if (H5Lexists(file, want->name, H5P_DEFAULT) <= 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: has no array \"%s\"; expected %s", path, want->name,
			want->text);
	MU_H5_TRY(path, a->set = H5Dopen2(file, want->name, H5P_DEFAULT));
	MU_TRY(mu_h5_check_own(file, a->set, path, want->name));
	MU_H5_TRY(path, a->type = H5Dget_type(a->set));
	MU_H5_TRY(path, space = H5Dget_space(a->set));
	MU_H5_TRY(path, a->ndims = H5Sget_simple_extent_dims(space, a->dims, NULL));
	a->item = H5Tget_size(a->type);
	if (H5Tget_class(a->type) != want->class || (want->item && a->item != want->item) ||
	    (a->ndims != want->ndims[0] && a->ndims != want->ndims[1]))
		MU_FAIL(MU_ERR_FORMAT,
			"%s: array \"%s\" has %d dimensions and numbers of %zu bytes; expected %s",
			path, want->name, a->ndims, a->item, want->text);
	for (int i = 0; i < a->ndims; i++)
		if (__builtin_mul_overflow(a->n, a->dims[i], &a->n))
			MU_FAIL(MU_ERR_FORMAT, "%s: array \"%s\" is larger than any file", path,
				want->name);
	MU_TRY(check_stored(f, a));
out:
	mu_h5_close_space(space);
	return st;
}

static uint32_t crc_of(uint32_t crc, const void *data, size_t nbytes)
{
	for (size_t at = 0; at < nbytes; at += CRC_PIECE) {
		size_t piece = nbytes - at < CRC_PIECE ? nbytes - at : CRC_PIECE;

		crc = (uint32_t)crc32(crc, (const Bytef *)data + at, (uInt)piece);
	}
	return crc;
}

enum mu_status mu_data_array_checksum(const struct mu_file *f, const struct mu_data_array *a,
				      bool *found, uint32_t *out)
{
	enum mu_status st = MU_OK;
	char text[TEXT_BYTES] = "";
	unsigned crc = 0;
	char after;

	MU_TRY(get_text(f, a->set, "checksum", text, found));
	if (*found && sscanf(text, "crc32:%8x%c", &crc, &after) != 1)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: the checksum of array \"%s\" is \"%.40s\"; expected crc32: and 8 "
			"hexadecimal digits",
			f->path, a->name, text);
	*out = crc;
out:
	return st;
}

enum mu_status mu_data_array_read(const struct mu_file *f, struct mu_data_array *a, hid_t type,
				  void **out)
{
	enum mu_status st = MU_OK;
	bool found, is_signed;
	uint32_t want, crc;

	MU_TRY(mu_alloc(out, a->n * a->item, a->name));
	/* HDF5 makes 0 of what is below it. */
	is_signed = H5Tequal(type, H5T_NATIVE_UINT64) > 0 && H5Tget_sign(a->type) == H5T_SGN_2;
	if (is_signed)
		type = H5T_NATIVE_INT64;
	if (a->n)
		MU_H5_TRY(f->path, H5Dread(a->set, type, H5S_ALL, H5S_ALL, H5P_DEFAULT, *out));
	MU_TRY(mu_data_array_checksum(f, a, &found, &want));
	crc = crc_of(0, *out, a->n * a->item);
	if (found && crc != want)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: array \"%s\" is damaged: its checksum is %08x; expected %08x", f->path,
			a->name, crc, want);
	for (size_t i = 0; is_signed && i < a->n; i++)
		if (((const int64_t *)*out)[i] < 0)
			MU_FAIL(MU_ERR_FORMAT,
				"%s: array \"%s\" has %lld at place %zu; numbers "
				"from 0 on are needed",
				f->path, a->name, (long long)((const int64_t *)*out)[i], i);
out:
	return st;
}
