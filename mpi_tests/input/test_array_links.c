/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/* Files of named arrays that HDF5 itself has changed: arrays that are elsewhere, other types. */
#include <muster/storage.h>

#include <hdf5.h>

#include "../lib/record_data.h"

/* One text is wanted, and another program may have stored many. */
static void test_many_texts(void)
{
	enum { MANY = 4000 };
	static char texts[MANY][8];
	const hsize_t n = MANY;
	struct mu_array_file *f;
	hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate_simple(1, &n, NULL), file, attribute;
	char text[8];

	CHECK(mu_array_file_create(&f, data_path("texts.h5")) == MU_OK);
	CHECK(mu_array_file_close(f, true) == MU_OK);
	H5Tset_size(type, sizeof *texts);
	file = H5Fopen(data_path("texts.h5"), H5F_ACC_RDWR, H5P_DEFAULT);
	attribute = H5Acreate2(file, "format", type, space, H5P_DEFAULT, H5P_DEFAULT);
	CHECK(H5Awrite(attribute, type, texts) >= 0);
	H5Aclose(attribute);
	H5Fclose(file);
	H5Sclose(space);
	H5Tclose(type);
	CHECK(mu_array_file_open_checked(&f, data_path("texts.h5")) == MU_OK);
	CHECK_FAILS(mu_array_file_get_text(f, "format", text, sizeof text), MU_ERR_FORMAT,
		    "texts.h5: attribute \"format\" is not one text", "");
	CHECK(mu_array_file_close(f, false) == MU_OK);
}

static const size_t dims[] = {5};

static void write_arrays(const char *name)
{
	static const float numbers[5] = {1, 2, 3, 4, 5};
	struct mu_array_file *f;

	if (!CHECK(mu_array_file_create(&f, data_path(name)) == MU_OK))
		return;
	CHECK(mu_array_file_write(f, "arg/weight", 1, dims, numbers) == MU_OK);
	CHECK(mu_array_file_write(f, "aux/mean", 1, dims, numbers) == MU_OK);
	CHECK(mu_array_file_close(f, true) == MU_OK);
}

static enum mu_status ignore(void *context, const char *name, int ndims, const size_t *sizes)
{
	(void)name;
	(void)ndims;
	(void)sizes;
	++*(size_t *)context;
	return MU_OK;
}

/* l.h5, of which HDF5 itself has made something: is refused with these words, listed and read. */
static void refused(hid_t file, const char *words)
{
	struct mu_array_file *f;
	float mean[5];
	size_t n = 0;

	H5Fclose(file);
	if (!CHECK(mu_array_file_open_checked(&f, data_path("l.h5")) == MU_OK))
		return;
	CHECK(mu_array_file_each(f, ignore, &n) == MU_ERR_FORMAT);
	CHECK_HAS(mu_trace_message(), words);
	mu_trace_clear();
	if (!strstr(words, "a link, which")) { /* a link within the file can be read */
		CHECK(mu_array_file_read(f, "aux/mean", 1, dims, mean) == MU_ERR_FORMAT);
		CHECK_HAS(mu_trace_message(), words);
		mu_trace_clear();
	}
	CHECK(mu_array_file_close(f, false) == MU_OK);
}

static hid_t without_mean(void)
{
	hid_t file;

	write_arrays("l.h5");
	file = H5Fopen(data_path("l.h5"), H5F_ACC_RDWR, H5P_DEFAULT);
	CHECK(file >= 0 &&
	      H5Lmove(file, "aux/mean", file, "aux/moved", H5P_DEFAULT, H5P_DEFAULT) >= 0);
	return file;
}

/* Arrays that are elsewhere. */
static void test_array_links(void)
{
	const hsize_t n = 5;
	hid_t file, list, space = H5Screate_simple(1, &n, NULL), set;
	struct mu_array_file *f;
	float mean[5];

	write_arrays("other.h5");
	file = without_mean();
	H5Lcreate_soft("/aux/moved", file, "aux/mean", H5P_DEFAULT, H5P_DEFAULT);
	refused(file, "\"aux/mean\" is a link, which is not followed");
	file = without_mean();
	H5Ldelete(file, "aux", H5P_DEFAULT);
	H5Lcreate_external("other.h5", "/aux", file, "aux", H5P_DEFAULT, H5P_DEFAULT);
	H5Fclose(file);
	CHECK(mu_array_file_open_checked(&f, data_path("l.h5")) == MU_OK);
	CHECK(mu_array_file_read(f, "aux/mean", 1, dims, mean) == MU_ERR_FORMAT);
	CHECK_HAS(mu_trace_message(), "array \"aux/mean\" is a link to another file");
	mu_trace_clear();
	CHECK(mu_array_file_close(f, false) == MU_OK);
	file = without_mean();
	list = H5Pcreate(H5P_DATASET_CREATE);
	H5Pset_external(list, "numbers", 0, 5 * sizeof(float));
	set = H5Dcreate2(file, "aux/mean", H5T_IEEE_F32LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
	CHECK(set >= 0);
	H5Dclose(set);
	H5Pclose(list);
	refused(file, "the numbers of array \"aux/mean\" are in other files");
	file = without_mean();
	list = H5Pcreate(H5P_DATASET_CREATE);
	H5Pset_virtual(list, space, "other.h5", "/aux/mean", space);
	set = H5Dcreate2(file, "aux/mean", H5T_IEEE_F32LE, space, H5P_DEFAULT, list, H5P_DEFAULT);
	CHECK(set >= 0);
	H5Dclose(set);
	H5Pclose(list);
	refused(file, "the numbers of array \"aux/mean\" are in other files");
	file = without_mean();
	set = H5Dcreate2(file, "aux/mean", H5T_IEEE_F64LE, space, H5P_DEFAULT, H5P_DEFAULT,
			 H5P_DEFAULT);
	CHECK(set >= 0);
	H5Dclose(set);
	refused(file, "float32");
	H5Sclose(space);
	unlink(data_path("other.h5"));
	unlink(data_path("l.h5"));
}

/* l.h5 with checksums of a type, the first of them that of "aux/mean" by an index of a type. */
static void make_sums(hid_t sums, hid_t index)
{
	static const char zeros[8];
	const hsize_t n = 1;
	hid_t list = H5Screate_simple(1, &n, NULL), one = H5Screate(H5S_SCALAR), file, set, attr;

	write_arrays("l.h5");
	file = H5Fopen(data_path("l.h5"), H5F_ACC_RDWR, H5P_DEFAULT);
	set = H5Dcreate2(file, "checksums", sums, list, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	CHECK(H5Dwrite(set, sums, H5S_ALL, H5S_ALL, H5P_DEFAULT, zeros) >= 0);
	H5Dclose(set);
	set = H5Dopen2(file, "aux/mean", H5P_DEFAULT);
	attr = H5Acreate2(set, "checksum_index", index, one, H5P_DEFAULT, H5P_DEFAULT);
	CHECK(H5Awrite(attr, index, zeros) >= 0);
	H5Aclose(attr);
	H5Dclose(set);
	H5Fclose(file);
	H5Sclose(one);
	H5Sclose(list);
}

/* Numbers of which HDF5 would make others. */
static void test_checksum_types(void)
{
	struct mu_array_file *f;
	float mean[5];

	make_sums(H5T_NATIVE_UINT32, H5T_NATIVE_DOUBLE);
	CHECK(mu_array_file_open_checked(&f, data_path("l.h5")) == MU_OK);
	CHECK_FAILS(mu_array_file_read(f, "aux/mean", 1, dims, mean), MU_ERR_FORMAT,
		    "array \"aux/mean\"", "is not one whole number");
	CHECK(mu_array_file_close(f, false) == MU_OK);
	make_sums(H5T_NATIVE_INT32, H5T_NATIVE_UINT32);
	CHECK(mu_array_file_open_checked(&f, data_path("l.h5")) == MU_OK);
	CHECK_FAILS(mu_array_file_read(f, "aux/mean", 1, dims, mean), MU_ERR_FORMAT,
		    "l.h5: \"checksums\" are not of type uint32", "");
	CHECK(mu_array_file_close(f, false) == MU_OK);
	unlink(data_path("l.h5"));
}

int main(void)
{
	if (!scratch_make(data_folder))
		return 1;
	test_many_texts();
	test_array_links();
	test_checksum_types();
	scratch_remove(data_folder);
	return check_failures() ? 1 : 0;
}
