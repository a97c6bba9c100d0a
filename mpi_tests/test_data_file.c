/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 */
/* HDF5 data files that are damaged: each array, each attribute, and every byte of a small file. */
#include <muster/records.h>
#include <muster/storage.h>

#include <zlib.h>

#include "record_data.h"

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

/* The only place in the file that holds these bytes. */
static uint8_t *find(const void *bytes, size_t n)
{
	uint8_t *found = NULL;
	int count = 0;

	for (size_t i = 0; i + n <= nbytes; i++)
		if (memcmp(bad + i, bytes, n) == 0) {
			found = bad + i;
			count++;
		}
	if (!CHECK(count == 1))
		return bad;
	return found;
}

static void replace(const void *from, const void *to, size_t n)
{
	memcpy(find(from, n), to, n);
}

/* As if the array had been written with these contents: its checksum too. */
static void rewrite(const void *from, const void *to, size_t n)
{
	char old[20], new[20];

	snprintf(old, sizeof old, "crc32:%08lx", crc32(0, from, (uInt)n));
	snprintf(new, sizeof new, "crc32:%08lx", crc32(0, to, (uInt)n));
	replace(from, to, n);
	replace(old, new, strlen(old));
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

/* Open what is in `bad` and read every record. */
static enum mu_status try_bad(void)
{
	struct mu_records *r;
	enum mu_status st;

	data_put("bad.h5", bad, nbytes);
	st = mu_records_open(&r, data_path("bad.h5"), NULL);
	if (st == MU_OK)
		st = read_all(r);
	mu_records_close(r);
	memcpy(bad, good, nbytes);
	return st;
}

static void test_attributes(void)
{
	CHECK(try_bad() == MU_OK);
	replace("muster-data", "muster-dart", 11);
	CHECK_FAILS(try_bad(), MU_ERR_FORMAT, "bad.h5: is an HDF5 file, but no data file",
		    "\"format\" is muster-dart; expected muster-data");
	replace("format", "farmot", 6);
	CHECK_FAILS(try_bad(), MU_ERR_FORMAT, "\"format\" is missing", "expected muster-data");
	replace("version", "vorsien", 7);
	CHECK_FAILS(try_bad(), MU_ERR_FORMAT, "no attribute \"version\"", "expected 1");
}

static void test_missing_arrays(void)
{
	static const char *const arrays[] = {"images", "offsets", "labels", "ids"};

	for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++) {
		char name[10], other[10], message[40];

		snprintf(name, sizeof name, "%s", arrays[i]);
		snprintf(other, sizeof other, "%s", arrays[i]);
		other[strlen(other) - 1] = 'r';
		replace(name, other, strlen(name) + 1);
		snprintf(message, sizeof message, "has no array \"%s\"", name);
		CHECK_FAILS(try_bad(), MU_ERR_FORMAT, message, "expected");
	}
	/* Class names may be missing. */
	replace("classes\0", "classer\0", 8);
	CHECK(try_bad() == MU_OK);
}

static void test_types(void)
{
	/* HDF5's message of the type: class, bit fields, bytes. */
	static const uint8_t float32[] = {0x11, 0x20, 0x1f, 0, 4, 0, 0, 0};
	static const uint8_t int32[] = {0x10, 0x20, 0x1f, 0, 4, 0, 0, 0};
	static const uint8_t uint8[] = {0x10, 0, 0, 0, 1, 0, 0, 0};
	static const uint8_t uint16[] = {0x10, 0, 0, 0, 2, 0, 0, 0};

	replace(float32, int32, sizeof int32);
	CHECK_FAILS(try_bad(), MU_ERR_FORMAT, "array \"labels\" has 2 dimensions",
		    "expected float32, (n, label_width)");
	replace(uint8, uint16, sizeof uint8);
	CHECK_FAILS(try_bad(), MU_ERR_FORMAT, "array \"images\"", "numbers of 2 bytes");
}

static void test_offsets(void)
{
	uint64_t offsets[N + 1] = {0}, changed[N + 1];

	for (size_t i = 0; i < N; i++)
		offsets[i + 1] = offsets[i] + SIZE - i;
	memcpy(changed, offsets, sizeof offsets);
	changed[2] = 1000;
	rewrite(offsets, changed, sizeof offsets);
	CHECK_FAILS(try_bad(), MU_ERR_FORMAT, "record 2 begins at offset 1000",
		    "the next at 117; offsets must not fall");
	memcpy(changed, offsets, sizeof offsets);
	changed[N] = 191;
	rewrite(offsets, changed, sizeof offsets);
	CHECK_FAILS(try_bad(), MU_ERR_FORMAT, "offsets run from 0 to 191", "bytes 0 to 190");
	changed[N] = UINT64_MAX;
	rewrite(offsets, changed, sizeof offsets);
	CHECK_FAILS(try_bad(), MU_ERR_FORMAT, "offsets run from 0 to", "bytes 0 to 190");
	memcpy(changed, offsets, sizeof offsets);
	changed[0] = 1;
	rewrite(offsets, changed, sizeof offsets);
	CHECK_FAILS(try_bad(), MU_ERR_FORMAT, "offsets run from 1", "bytes 0 to 190");
	/* One bit without a new checksum. */
	memcpy(changed, offsets, sizeof offsets);
	changed[3]++;
	replace(offsets, changed, sizeof offsets);
	CHECK_FAILS(try_bad(), MU_ERR_FORMAT, "array \"offsets\" is damaged", "checksum");
}

static void test_labels(void)
{
	static const float labels[N] = {0, 1, 0, 1, 0};
	float changed[N] = {0, 1, 0, 2, 0};

	rewrite(labels, changed, sizeof labels);
	CHECK_FAILS(try_bad(), MU_ERR_FORMAT, "bad.h5: record 3 (id 21) has label 2",
		    "the file names 2 classes");
	changed[3] = NAN;
	rewrite(labels, changed, sizeof labels);
	CHECK_FAILS(try_bad(), MU_ERR_FORMAT, "record 3 (id 21) has label nan", "");
	changed[3] = 1;
	changed[0] = 1;
	replace(labels, changed, sizeof labels);
	CHECK_FAILS(try_bad(), MU_ERR_FORMAT, "array \"labels\" is damaged", "checksum");
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
	if (!mu_array_file_supported()) {
		printf("skip: this build has no HDF5\n");
		return CHECK_SKIPPED;
	}
	if (!scratch_make(data_folder))
		return 1;
	make_good();
	memcpy(bad, good, nbytes);
	test_attributes();
	test_missing_arrays();
	test_types();
	test_offsets();
	test_labels();
	test_sizes();
	test_every_byte();
	scratch_remove(data_folder);
	return check_failures() ? 1 : 0;
}
