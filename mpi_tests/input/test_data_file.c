/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/* HDF5 data files that are damaged: each array, each attribute, and every byte of a small file. */
#include <muster/records.h>

#include <hdf5.h>

#include "../lib/record_data.h"

enum { N = 5, FILE_BYTES = 1 << 16, SIZE = 40, PARTS = 97 };

static uint8_t good[FILE_BYTES], bad[FILE_BYTES];
static size_t nbytes;

static void make_good(void)
{
	static const char *const names[] = {"ant", "bee"};
	struct mu_data_file_config config = {.class_names = names, .classes = 2, .creator = "test"};
	struct mu_data_writer *w;
	uint8_t image[SIZE];
	float label;

	CHECK(mu_data_file_create(&w, data_path("good.h5"), &config) == MU_OK);
	for (size_t i = 0; i < N; i++) {
		data_noise(image, sizeof image, (uint32_t)i);
		label = (float)(i % 2);
		CHECK(mu_data_file_write(w, &(struct mu_record){.data = image,
								.n = SIZE - i,
								.id = 7 * i,
								.n_labels = 1,
								.labels = &label}) == MU_OK);
	}
	CHECK(mu_data_file_finish(w, true) == MU_OK);
	nbytes = data_get("good.h5", good, sizeof good);
	CHECK(nbytes > 1000 && nbytes < sizeof good);
	unlink(data_path("good.h5"));
}

/* ---- damage, by HDF5 itself ---- */

/* The good file again, open to be changed. */
static hid_t change(void)
{
	hid_t file;

	data_put("bad.h5", good, nbytes);
	file = H5Fopen(data_path("bad.h5"), H5F_ACC_RDWR, H5P_DEFAULT);
	CHECK(file >= 0);
	return file;
}

/* An array: numbers of a type, in memory and in the file. */
struct array {
	const char *name;
	hid_t type;
	int ndims;
	hsize_t dims[3];
	const void *data;
};

/* In place of the array of this name, without a checksum. */
static void put_array(hid_t file, const struct array *a)
{
	hid_t space = H5Screate_simple(a->ndims, a->dims, NULL), set;

	CHECK(H5Ldelete(file, a->name, H5P_DEFAULT) >= 0);
	set = H5Dcreate2(file, a->name, a->type, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
	CHECK(set >= 0);
	if (a->data)
		CHECK(H5Dwrite(set, a->type, H5S_ALL, H5S_ALL, H5P_DEFAULT, a->data) >= 0);
	H5Dclose(set);
	H5Sclose(space);
}

static enum mu_status read_all(const struct mu_records *r)
{
	enum mu_status st = MU_OK;
	struct mu_record_buffer buffer = {0};
	struct mu_records_info info;
	struct mu_record record;

	mu_records_info(r, &info);
	for (size_t i = 0; i < info.n && st == MU_OK; i++)
		st = mu_records_read(r, i, &buffer, &record);
	mu_record_buffer_release(&buffer);
	return st;
}

/* Open bad.h5 and read every record. */
static enum mu_status try_file(void)
{
	struct mu_records *r;
	enum mu_status st = mu_records_open(&r, data_path("bad.h5"), NULL);

	if (st == MU_OK)
		st = read_all(r);
	mu_records_close(r);
	/* The file is closed, and with it what was open in it, whatever went wrong. */
	CHECK(H5Fget_obj_count(H5F_OBJ_ALL, H5F_OBJ_ALL) == 0);
	return st;
}

/* The same with what is in `bad`, which becomes good again. */
static enum mu_status try_bad(void)
{
	data_put("bad.h5", bad, nbytes);
	memcpy(bad, good, nbytes);
	return try_file();
}

/* A file with this array in place of the good one. */
static enum mu_status try_array(const struct array *a)
{
	hid_t file = change();

	put_array(file, a);
	H5Fclose(file);
	return try_file();
}

static void put_text(hid_t place, const char *name, const char *text)
{
	hid_t type = H5Tcopy(H5T_C_S1), space = H5Screate(H5S_SCALAR), attribute;

	H5Tset_size(type, strlen(text) + 1);
	CHECK(H5Adelete(place, name) >= 0);
	attribute = H5Acreate2(place, name, type, space, H5P_DEFAULT, H5P_DEFAULT);
	CHECK(H5Awrite(attribute, type, text) >= 0);
	H5Aclose(attribute);
	H5Sclose(space);
	H5Tclose(type);
}

static void test_attributes(void)
{
	hid_t file;

	CHECK(try_bad() == MU_OK);
	file = change();
	put_text(file, "format", "muster-dart");
	H5Fclose(file);
	CHECK_FAILS(try_file(), MU_ERR_FORMAT, "bad.h5: is an HDF5 file, but no data file",
		    "\"format\" is muster-dart; expected muster-data");
	file = change();
	CHECK(H5Adelete(file, "format") >= 0);
	H5Fclose(file);
	CHECK_FAILS(try_file(), MU_ERR_FORMAT, "\"format\" is missing", "expected muster-data");
	file = change();
	put_text(file, "version", "one");
	H5Fclose(file);
	CHECK_FAILS(try_file(), MU_ERR_FORMAT, "bad.h5: attribute \"version\" is not one whole",
		    "");
	file = change();
	CHECK(H5Adelete(file, "version") >= 0);
	H5Fclose(file);
	CHECK_FAILS(try_file(), MU_ERR_FORMAT, "no attribute \"version\"", "expected 1");
}

static void put_count(hid_t file, hid_t type, const void *count)
{
	hid_t space = H5Screate(H5S_SCALAR), attribute;

	CHECK(H5Adelete(file, "count") >= 0);
	attribute = H5Acreate2(file, "count", type, space, H5P_DEFAULT, H5P_DEFAULT);
	CHECK(H5Awrite(attribute, type, count) >= 0);
	H5Aclose(attribute);
	H5Sclose(space);
	H5Fclose(file);
}

/* What may be missing must be right where it is there. */
static void test_kind_and_count(void)
{
	const int64_t four = N - 1, below = -N;
	const double five = N;
	hid_t file = change();

	put_text(file, "kind", "zzz");
	H5Fclose(file);
	CHECK_FAILS(try_file(), MU_ERR_FORMAT, "bad.h5: attribute \"kind\" is \"zzz\"",
		    "expected \"encoded\"");
	file = change();
	put_text(file, "kind", "raw");
	H5Fclose(file);
	CHECK_FAILS(try_file(), MU_ERR_FORMAT, "\"kind\" is \"raw\"", "has 1 dimension");
	put_count(change(), H5T_NATIVE_INT64, &four);
	CHECK_FAILS(try_file(), MU_ERR_FORMAT, "bad.h5: attribute \"count\" is 4", "5 images");
	put_count(change(), H5T_NATIVE_INT64, &below);
	CHECK_FAILS(try_file(), MU_ERR_FORMAT, "\"count\" is -5", "5 images");
	put_count(change(), H5T_NATIVE_DOUBLE, &five);
	CHECK_FAILS(try_file(), MU_ERR_FORMAT, "\"count\" is not one whole number", "");
	file = change();
	CHECK(H5Adelete(file, "kind") >= 0 && H5Adelete(file, "count") >= 0);
	H5Fclose(file);
	CHECK(try_file() == MU_OK);
}

static void test_checksums(void)
{
	hid_t file = change(), set = H5Dopen2(file, "ids", H5P_DEFAULT);

	put_text(set, "checksum", "crc32:00000000");
	H5Dclose(set);
	H5Fclose(file);
	CHECK_FAILS(try_file(), MU_ERR_FORMAT, "array \"ids\" is damaged", "expected 00000000");
	file = change();
	set = H5Dopen2(file, "images", H5P_DEFAULT);
	put_text(set, "checksum", "md5:00");
	H5Dclose(set);
	H5Fclose(file);
	CHECK_FAILS(try_file(), MU_ERR_FORMAT, "checksum of array \"images\" is \"md5:00\"",
		    "expected crc32:");
}

/* An array of another file is not read, and no bytes of this one in its place. */
static void test_links(void)
{
	static const char *const arrays[] = {"images", "offsets", "labels", "ids"};
	hid_t file;

	data_put("other.h5", good, nbytes);
	for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
		char message[40];

		file = change();
		CHECK(H5Ldelete(file, arrays[i], H5P_DEFAULT) >= 0);
		CHECK(H5Lcreate_external("other.h5", arrays[i], file, arrays[i], H5P_DEFAULT,
					 H5P_DEFAULT) >= 0);
		H5Fclose(file);
		snprintf(message, sizeof message, "array \"%s\" is a link to another", arrays[i]);
		CHECK_FAILS(try_file(), MU_ERR_FORMAT, message, "other.h5, which is not followed");
	}
	file = change();
	CHECK(H5Lmove(file, "images", file, "moved", H5P_DEFAULT, H5P_DEFAULT) >= 0);
	CHECK(H5Lcreate_soft("/moved", file, "images", H5P_DEFAULT, H5P_DEFAULT) >= 0);
	H5Fclose(file);
	CHECK(try_file() == MU_OK); /* of the same file */
	unlink(data_path("other.h5"));
}

static void test_missing_arrays(void)
{
	static const char *const arrays[] = {"images", "offsets", "labels", "ids"};
	hid_t file;

	for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
		char message[40];

		file = change();
		CHECK(H5Ldelete(file, arrays[i], H5P_DEFAULT) >= 0);
		H5Fclose(file);
		snprintf(message, sizeof message, "has no array \"%s\"", arrays[i]);
		CHECK_FAILS(try_file(), MU_ERR_FORMAT, message, "expected");
	}
	/* Class names may be missing. */
	file = change();
	CHECK(H5Ldelete(file, "classes", H5P_DEFAULT) >= 0);
	H5Fclose(file);
	CHECK(try_file() == MU_OK);
}

static void test_types(void)
{
	static const double doubles[N];
	static const int32_t ints[N + 1];
	static const uint8_t bytes[400];
	struct array labels = {"labels", H5T_NATIVE_DOUBLE, 2, {N, 1}, doubles};
	struct array offsets = {"offsets", H5T_NATIVE_INT32, 1, {N + 1}, ints};
	struct array images = {"images", H5T_NATIVE_UINT16, 1, {190}, bytes};
	struct array with_sign = {"images", H5T_NATIVE_INT8, 1, {190}, bytes};
	struct array plane = {"images", H5T_NATIVE_UINT8, 2, {19, 10}, bytes};
	struct array never = {"images", H5T_NATIVE_UINT8, 1, {190}, NULL};
	struct array ids = {"ids", H5T_NATIVE_FLOAT, 1, {N}, ints};
	struct array classes = {"classes", H5T_NATIVE_INT32, 1, {2}, ints};
	struct array few = {"ids", H5T_NATIVE_UINT64, 1, {N - 1}, doubles};
	struct array one = {"offsets", H5T_NATIVE_UINT64, 1, {1}, doubles};

	CHECK_FAILS(try_array(&labels), MU_ERR_FORMAT, "array \"labels\" has 2 dimensions",
		    "numbers of 8 bytes; expected float32, (n, label_width)");
	CHECK_FAILS(try_array(&offsets), MU_ERR_FORMAT, "array \"offsets\"", "expected uint64");
	CHECK_FAILS(try_array(&images), MU_ERR_FORMAT, "array \"images\"", "numbers of 2 bytes");
	CHECK_FAILS(try_array(&with_sign), MU_ERR_FORMAT, "array \"images\" is of type int8",
		    "expected uint8");
	CHECK_FAILS(try_array(&plane), MU_ERR_FORMAT, "array \"images\" has 2 dimensions",
		    "(bytes) or (n, h, w, c)");
	CHECK_FAILS(try_array(&never), MU_ERR_FORMAT, "array \"images\" claims 190",
		    "never written");
	CHECK_FAILS(try_array(&ids), MU_ERR_FORMAT, "array \"ids\"", "expected uint64, (n)");
	CHECK_FAILS(try_array(&classes), MU_ERR_FORMAT, "array \"classes\"", "texts of fixed");
	CHECK_FAILS(try_array(&few), MU_ERR_FORMAT, "5 images, but 5 rows of 1 labels and 4 ids",
		    "as many");
	CHECK_FAILS(try_array(&one), MU_ERR_FORMAT, "\"offsets\" has 1 numbers", "at least 2");
}

static void test_offsets(void)
{
	uint64_t offsets[N + 1] = {0};
	struct array array = {"offsets", H5T_NATIVE_UINT64, 1, {N + 1}, offsets};

	for (size_t i = 0; i < N; i++)
		offsets[i + 1] = offsets[i] + SIZE - i;
	CHECK(try_array(&array) == MU_OK);
	offsets[2] = 1000;
	CHECK_FAILS(try_array(&array), MU_ERR_FORMAT, "record 2 begins at offset 1000",
		    "the next at 117; offsets must not fall");
	offsets[2] = 79;
	offsets[N] = 191;
	CHECK_FAILS(try_array(&array), MU_ERR_FORMAT, "offsets run from 0 to 191",
		    "bytes 0 to 190");
	offsets[N] = UINT64_MAX;
	CHECK_FAILS(try_array(&array), MU_ERR_FORMAT, "offsets run from 0 to", "bytes 0 to 190");
	offsets[N] = 190;
	offsets[0] = 1;
	CHECK_FAILS(try_array(&array), MU_ERR_FORMAT, "offsets run from 1", "bytes 0 to 190");
}

static void test_labels(void)
{
	float labels[N] = {0, 1, 0, 1, 0};
	struct array array = {"labels", H5T_NATIVE_FLOAT, 2, {N, 1}, labels};

	CHECK(try_array(&array) == MU_OK);
	labels[3] = 2;
	CHECK_FAILS(try_array(&array), MU_ERR_FORMAT, "bad.h5: record 3 (id 21) has label 2",
		    "the file names 2 classes");
	labels[3] = NAN;
	CHECK_FAILS(try_array(&array), MU_ERR_FORMAT, "record 3 (id 21) has label nan", "");
}

static void test_sizes(void)
{
	size_t whole = nbytes;

	for (nbytes = 0; nbytes < whole; nbytes += PARTS)
		CHECK(try_bad() != MU_OK);
	nbytes = 0;
	CHECK_FAILS(try_bad(), MU_ERR_FORMAT, "bad.h5: the file is empty", "");
	nbytes = 600;
	CHECK_FAILS(try_bad(), MU_ERR_FORMAT, "bad.h5: damaged HDF5 file", "");
	nbytes = whole;
	memcpy(bad, good, nbytes);
	memset(bad, 'x', 8);
	CHECK_FAILS(try_bad(), MU_ERR_FORMAT, "bad.h5: is not an HDF5 file", "");
}

/* Made with HDF5's defaults. */
static void test_old_format(void)
{
	hid_t file = H5Fcreate(data_path("bad.h5"), H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);

	CHECK(H5Fclose(file) >= 0);
	CHECK_FAILS(try_file(), MU_ERR_UNSUPPORTED, "bad.h5: is in HDF5's old file format",
		    "h5repack -j 1");
}

/* Every byte once: an error or not, but no crash, and errors have a message. */
static void test_every_byte(void)
{
	size_t errors = 0;

	for (size_t i = 0; i < nbytes; i++) {
		enum mu_status st;

		bad[i] ^= (uint8_t)(1 << i % 8);
		st = try_bad();
		errors += st != MU_OK;
		if (st != MU_OK)
			CHECK_HAS(mu_trace_message(), "bad.h5");
		mu_trace_clear();
	}
	CHECK(errors > 100);
}

int main(void)
{
	if (!scratch_make(data_folder))
		return 1;
	make_good();
	memcpy(bad, good, nbytes);
	test_attributes();
	test_kind_and_count();
	test_checksums();
	test_links();
	test_missing_arrays();
	test_types();
	test_offsets();
	test_labels();
	test_sizes();
	test_old_format();
	test_every_byte();
	scratch_remove(data_folder);
	return check_failures() ? 1 : 0;
}
