/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/*
 * RecordIO files: bytes that MXNet wrote, round trips with the magic inside payloads, indexes, the
 * header of images, and every kind of bad file.
 */
#include <muster/records.h>

#include <sys/stat.h>

#include "../lib/record_data.h"

enum { N = 200, LARGEST = 4000, LARGE = 5 << 20 };

/* Written by MXNet 1.9.1's recordio.MXIndexedRecordIO: these payloads, this file, this index. */
static const struct {
	uint8_t bytes[16];
	size_t n;
} payloads[] = {
	{"abcde", 5},
	{"", 0},
	{"\x0a\x23\xd7\xcexy", 6},
	{"1234\x0a\x23\xd7\xce\x0a\x23\xd7\xcezz", 14},
	{"q\x0a\x23\xd7\xce", 5},
};

static const uint8_t file_bytes[] = {
	0x0a, 0x23, 0xd7, 0xce, 0x05, 0x00, 0x00, 0x00, 0x61, 0x62, 0x63, 0x64, 0x65, 0x00,
	0x00, 0x00, 0x0a, 0x23, 0xd7, 0xce, 0x00, 0x00, 0x00, 0x00, 0x0a, 0x23, 0xd7, 0xce,
	0x00, 0x00, 0x00, 0x20, 0x0a, 0x23, 0xd7, 0xce, 0x02, 0x00, 0x00, 0x60, 0x78, 0x79,
	0x00, 0x00, 0x0a, 0x23, 0xd7, 0xce, 0x04, 0x00, 0x00, 0x20, 0x31, 0x32, 0x33, 0x34,
	0x0a, 0x23, 0xd7, 0xce, 0x00, 0x00, 0x00, 0x40, 0x0a, 0x23, 0xd7, 0xce, 0x02, 0x00,
	0x00, 0x60, 0x7a, 0x7a, 0x00, 0x00, 0x0a, 0x23, 0xd7, 0xce, 0x05, 0x00, 0x00, 0x00,
	0x71, 0x0a, 0x23, 0xd7, 0xce, 0x00, 0x00, 0x00,
};
static const char index_text[] = "0\t0\n1\t16\n2\t24\n3\t44\n4\t76\n";

enum { NUM_PAYLOADS = sizeof payloads / sizeof *payloads };

static void check_payloads(const char *index)
{
	struct mu_recordio *r;
	struct mu_record_buffer buffer = {0};
	const uint8_t *payload;
	size_t n;

	if (!CHECK(mu_recordio_open(&r, data_path("v.rec"), index) == MU_OK))
		return;
	CHECK(mu_recordio_count(r) == NUM_PAYLOADS);
	for (size_t i = NUM_PAYLOADS; i-- > 0;) {
		if (!CHECK(mu_recordio_read(r, i, &buffer, &payload, &n) == MU_OK))
			continue;
		CHECK(n == payloads[i].n && memcmp(payload, payloads[i].bytes, n) == 0);
		CHECK(mu_recordio_key(r, i) == i);
	}
	CHECK(mu_recordio_at(r, 3) == 44);
	CHECK_FAILS(mu_recordio_read(r, NUM_PAYLOADS, &buffer, &payload, &n), MU_ERR_ARGUMENT,
		    "record 5 was asked for", "there are 5");
	mu_record_buffer_release(&buffer);
	mu_recordio_close(r);
}

static void test_vectors(void)
{
	struct mu_recordio_writer *w;
	uint8_t bytes[256];
	size_t n;

	CHECK(mu_recordio_create(&w, data_path("v.rec"), data_path("v.idx")) == MU_OK);
	for (size_t i = 0; i < NUM_PAYLOADS; i++)
		CHECK(mu_recordio_write(w, i, payloads[i].bytes, payloads[i].n) == MU_OK);
	CHECK(mu_recordio_finish(w, true) == MU_OK);
	CHECK(data_get("v.rec", bytes, sizeof bytes) == sizeof file_bytes);
	CHECK(memcmp(bytes, file_bytes, sizeof file_bytes) == 0);
	n = data_get("v.idx", bytes, sizeof bytes);
	CHECK(n == sizeof index_text - 1 && memcmp(bytes, index_text, n) == 0);
	check_payloads(NULL); /* v.idx lies beside it */
	check_payloads("");
	unlink(data_path("v.idx"));
	check_payloads(NULL);
	CHECK(mu_recordio_index(data_path("v.rec"), data_path("other.idx"), &n) == MU_OK);
	CHECK(n == NUM_PAYLOADS);
	n = data_get("other.idx", bytes, sizeof bytes);
	CHECK(n == sizeof index_text - 1 && memcmp(bytes, index_text, n) == 0);
	check_payloads(data_path("other.idx"));
	/* Lines in another order and of another writer; records stay in the file's order. */
	data_text("other.idx", "4 76\r\n1\t16\n\n0\t0\n2  24\n3\t44");
	check_payloads(data_path("other.idx"));
	CHECK(scratch_count(data_folder) == 2); /* nothing temporary stays */
	unlink(data_path("v.rec"));
	unlink(data_path("other.idx"));
}

static size_t noise_size(size_t i)
{
	return i == N / 2 ? LARGE : i * 7919 % LARGEST;
}

/* Sizes of 0 to a few thousand and one of several MiB, keys that are not numbers of records. */
static void test_round_trip(void)
{
	struct mu_recordio_writer *w;
	struct mu_recordio *r;
	struct mu_record_buffer buffer = {0};
	uint8_t *noise = malloc(LARGE);
	const uint8_t *payload;
	size_t n;

	CHECK(mu_recordio_create(&w, data_path("n.rec"), data_path("n.idx")) == MU_OK);
	for (size_t i = 0; i < N; i++) {
		data_noise(noise, noise_size(i), (uint32_t)i);
		CHECK(mu_recordio_write(w, 1000 - i, noise, noise_size(i)) == MU_OK);
	}
	CHECK(mu_recordio_finish(w, true) == MU_OK);
	for (int with_index = 0; with_index < 2; with_index++) {
		if (!CHECK(mu_recordio_open(&r, data_path("n.rec"), with_index ? NULL : "") ==
			   MU_OK))
			break;
		CHECK(mu_recordio_count(r) == N);
		for (size_t i = 0; i < N; i++) {
			data_noise(noise, noise_size(i), (uint32_t)i);
			CHECK(mu_recordio_key(r, i) == (with_index ? 1000 - i : i));
			CHECK(mu_recordio_read(r, i, &buffer, &payload, &n) == MU_OK);
			CHECK(n == noise_size(i) && memcmp(payload, noise, n) == 0);
		}
		mu_recordio_close(r);
	}
	mu_record_buffer_release(&buffer);
	free(noise);
	unlink(data_path("n.rec"));
	unlink(data_path("n.idx"));
}

static void test_image_header(void)
{
	/* MXNet's pack of label 3, id 17 and of labels 1, 2, id 18; each with the image "IMG". */
	static const uint8_t one[] = {0, 0, 0, 0, 0, 0, 0x40, 0x40, 0x11, 0, 0,   0,   0,  0,
				      0, 0, 0, 0, 0, 0, 0,    0,    0,    0, 'I', 'M', 'G'};
	static const uint8_t two[] = {2, 0, 0,    0,    0, 0, 0, 0,    0x12, 0,   0,  0,
				      0, 0, 0,    0,    0, 0, 0, 0,    0,    0,   0,  0,
				      0, 0, 0x80, 0x3f, 0, 0, 0, 0x40, 'I',  'M', 'G'};
	static const float labels[] = {3, 1, 2};
	struct mu_record_buffer a = {0}, b = {0};
	struct mu_record record = {.data = (const uint8_t *)"IMG",
				   .n = 3,
				   .id = 17,
				   .n_labels = 1,
				   .labels = labels},
			 back;
	const uint8_t *payload;
	size_t n;

	CHECK(mu_record_pack(&record, &a, &payload, &n) == MU_OK);
	CHECK(n == sizeof one && memcmp(payload, one, n) == 0);
	record = (struct mu_record){.data = (const uint8_t *)"IMG",
				    .n = 3,
				    .id = 18,
				    .n_labels = 2,
				    .labels = labels + 1};
	CHECK(mu_record_pack(&record, &a, &payload, &n) == MU_OK);
	CHECK(n == sizeof two && memcmp(payload, two, n) == 0);
	CHECK(mu_record_unpack(two, sizeof two, &b, &back, "it") == MU_OK);
	CHECK(back.id == 18 && back.id2 == 0 && back.n_labels == 2 && back.n == 3);
	CHECK(back.labels[0] == 1 && back.labels[1] == 2 && memcmp(back.data, "IMG", 3) == 0);
	CHECK(mu_record_unpack(one, sizeof one, &b, &back, "it") == MU_OK);
	CHECK(back.id == 17 && back.n_labels == 1 && back.labels[0] == 3 && back.n == 3);
	CHECK_FAILS(mu_record_unpack(one, 23, &b, &back, "it"), MU_ERR_FORMAT, "it: has 23 bytes",
		    "24");
	CHECK_FAILS(mu_record_unpack(two, 31, &b, &back, "it"), MU_ERR_FORMAT, "claims 2 labels",
		    "room for 1");
	record.n_labels = 0;
	CHECK_FAILS(mu_record_pack(&record, &a, &payload, &n), MU_ERR_ARGUMENT, "0 labels",
		    "id 18");
	mu_record_buffer_release(&a);
	mu_record_buffer_release(&b);
}

/* ---- bad files ---- */

/* The file is as file_bytes but for one byte. */
static void put_changed(size_t at, uint8_t value)
{
	uint8_t bytes[sizeof file_bytes];

	memcpy(bytes, file_bytes, sizeof bytes);
	bytes[at] = value;
	data_put("bad.rec", bytes, sizeof bytes);
}

static enum mu_status open_bad(const char *index)
{
	struct mu_recordio *r;
	enum mu_status st = mu_recordio_open(&r, data_path("bad.rec"), index);

	mu_recordio_close(r);
	return st;
}

static void test_bad_files(void)
{
	CHECK_FAILS(open_bad(""), MU_ERR_IO, "bad.rec: cannot be opened", "No such file");
	data_put("bad.rec", "", 0);
	CHECK_FAILS(open_bad(""), MU_ERR_FORMAT, "bad.rec: the file is empty", "expected RecordIO");
	for (size_t n = 1; n < sizeof file_bytes; n++) {
		bool whole = n == 16 || n == 24 || n == 44 || n == 76; /* between records */

		data_put("bad.rec", file_bytes, n);
		CHECK(open_bad("") == (whole ? MU_OK : MU_ERR_FORMAT));
	}
	data_put("bad.rec", file_bytes, 77);
	CHECK_FAILS(open_bad(""), MU_ERR_FORMAT, "77 bytes", "multiple of 4");
	data_put("bad.rec", file_bytes, 80);
	CHECK_FAILS(open_bad(""), MU_ERR_FORMAT, "truncated: 4 bytes at byte 76", "at least 8");
	data_put("bad.rec", file_bytes, 84);
	CHECK_FAILS(open_bad(""), MU_ERR_FORMAT, "record at byte 76 claims 5 bytes", "only 0");
	put_changed(16, 0x0b);
	CHECK_FAILS(open_bad(""), MU_ERR_FORMAT, "no record at byte 16: found 0b 23 d7 ce",
		    "expected the magic 0a 23 d7 ce");
	put_changed(22, 0x10);
	CHECK_FAILS(open_bad(""), MU_ERR_FORMAT, "byte 16 claims 1048576 bytes",
		    "only 68 follow up to the end of the file");
	put_changed(23, 0x1f);
	CHECK_FAILS(open_bad(""), MU_ERR_FORMAT, "byte 16 claims 520093696 bytes", "only 68");
	put_changed(23, 0x40);
	CHECK_FAILS(open_bad(""), MU_ERR_FORMAT, "byte 16 is of kind 2", "expected 0 or 1");
	put_changed(7, 0x80);
	CHECK_FAILS(open_bad(""), MU_ERR_FORMAT, "byte 0 is of kind 4", "expected 0 or 1");
	put_changed(39, 0x00);
	CHECK_FAILS(open_bad(""), MU_ERR_FORMAT, "byte 32 is of kind 0", "expected 2 or 3");
	put_changed(48, 0x03);
	CHECK_FAILS(open_bad(""), MU_ERR_FORMAT, "byte 44 has 3 bytes", "multiple of 4");
	put_changed(83, 0x20); /* the last record begins, but nothing follows */
	CHECK_FAILS(open_bad(""), MU_ERR_FORMAT, "byte 76 has 5 bytes", "multiple of 4");
	mkdir(data_path("bad.d"), 0700);
	unlink(data_path("bad.rec"));
	CHECK(rename(data_path("bad.d"), data_path("bad.rec")) == 0);
	CHECK_FAILS(open_bad(""), MU_ERR_IO, "bad.rec", "not a plain file");
	rmdir(data_path("bad.rec"));
}

static void check_bad_index(const char *text, const char *a, const char *b)
{
	data_text("bad.idx", text);
	CHECK_FAILS(open_bad(NULL), MU_ERR_FORMAT, a, b);
}

static void test_bad_indexes(void)
{
	struct mu_recordio *r;
	struct mu_record_buffer buffer = {0};
	const uint8_t *payload;
	size_t n;

	data_put("bad.rec", file_bytes, sizeof file_bytes);
	check_bad_index("", "bad.idx: names no record", "92 bytes");
	check_bad_index("0\t0\nx\t16\n", "line 2 is \"x\t16\"", "expected a key, a tab");
	check_bad_index("0\t0\n1\n", "line 2", "expected a key");
	check_bad_index("0\t-4\n", "line 1", "expected a key");
	check_bad_index("0\t0 1\n", "line 1", "expected a key");
	check_bad_index("99999999999999999999999\t0\n", "line 1", "expected a key");
	check_bad_index("0\t0\n1\t18\n", "line 2 has a record at byte 18", "multiples of 4");
	check_bad_index("0\t0\n1\t92\n", "line 2 has a record at byte 92", "92 bytes");
	check_bad_index("0\t0\n1\t16\n7\t16\n", "keys", "both at byte 16");
	check_bad_index("1\t16\n2\t24\n3\t44\n4\t76\n", "bytes 16 to 92", "not of all of it");
	check_bad_index("0\t0\n1\t16\n2\t24\n", "bytes 0 to 44", "rec2idx makes one");
	check_bad_index("0\t0\n1\t80\n", "no record at byte 80: found 05 00 00 00", "bad.rec");
	check_bad_index("0\t0\n1\t56\n", "byte 56 is of kind 2", "0 or 1");
	data_put("bad.idx", "0\t0\0\n", 5);
	CHECK_FAILS(open_bad(NULL), MU_ERR_FORMAT, "bad.idx: is no text", "byte 3");
	CHECK_FAILS(open_bad(data_path("none.idx")), MU_ERR_IO, "none.idx", "No such file");
	/* What only reading a record can show: one is left out, one begins elsewhere. */
	data_text("bad.idx", "0\t0\n2\t24\n3\t44\n4\t76\n");
	if (CHECK(mu_recordio_open(&r, data_path("bad.rec"), NULL) == MU_OK)) {
		CHECK_FAILS(mu_recordio_read(r, 0, &buffer, &payload, &n), MU_ERR_FORMAT,
			    "byte 0 ends at byte 16", "next one begins at byte 24");
		CHECK(mu_recordio_read(r, 1, &buffer, &payload, &n) == MU_OK);
		mu_recordio_close(r);
	}
	data_text("bad.idx", "0\t0\n1\t16\n2\t28\n3\t44\n4\t76\n");
	if (CHECK(mu_recordio_open(&r, data_path("bad.rec"), NULL) == MU_OK)) {
		CHECK_FAILS(mu_recordio_read(r, 2, &buffer, &payload, &n), MU_ERR_FORMAT,
			    "no record at byte 28: found 00 00 00 20", "expected the magic");
		mu_recordio_close(r);
	}
	data_text("bad.idx", "0\t0\n1\t16\n2\t24\n3\t44\n9\t60\n4\t76\n");
	if (CHECK(mu_recordio_open(&r, data_path("bad.rec"), NULL) == MU_OK)) {
		CHECK_FAILS(mu_recordio_read(r, 3, &buffer, &payload, &n), MU_ERR_FORMAT,
			    "record at byte 44 goes on at byte 56", "where the next record");
		mu_recordio_close(r);
	}
	mu_record_buffer_release(&buffer);
	unlink(data_path("bad.idx"));
	unlink(data_path("bad.rec"));
}

/* A file that others change while it is open. */
static void test_changed_file(void)
{
	struct mu_recordio *r;
	struct mu_record_buffer buffer = {0};
	const uint8_t *payload;
	size_t n;

	data_put("bad.rec", file_bytes, sizeof file_bytes);
	if (!CHECK(mu_recordio_open(&r, data_path("bad.rec"), "") == MU_OK))
		return;
	CHECK(mu_recordio_unchanged(r) == MU_OK);
	CHECK(truncate(data_path("bad.rec"), 50) == 0);
	CHECK_FAILS(mu_recordio_read(r, 4, &buffer, &payload, &n), MU_ERR_IO,
		    "bad.rec: ends at byte 76", "changed after it was opened");
	CHECK_FAILS(mu_recordio_unchanged(r), MU_ERR_IO, "bad.rec", "changed after it was opened");
	CHECK(mu_recordio_read(r, 0, &buffer, &payload, &n) == MU_OK);
	mu_recordio_close(r);
	unlink(data_path("bad.rec"));
	mu_record_buffer_release(&buffer);
}

static void test_writer_errors(void)
{
	struct mu_recordio_writer *w;

	CHECK_FAILS(mu_recordio_create(&w, data_path("no/such.rec"), NULL), MU_ERR_IO,
		    "no/such.rec", "cannot be written");
	CHECK(w == NULL);
	CHECK(mu_recordio_create(&w, data_path("w.rec"), data_path("w.idx")) == MU_OK);
	CHECK_FAILS(mu_recordio_write(w, 7, file_bytes, (size_t)MU_RECORDIO_PAYLOAD_MAX + 1),
		    MU_ERR_ARGUMENT, "record of key 7 has 536870912 bytes", "at most 536870911");
	CHECK(mu_recordio_finish(w, false) == MU_OK);
	CHECK(scratch_count(data_folder) == 0); /* without a commit nothing is left */
}

int main(void)
{
	if (!scratch_make(data_folder))
		return 1;
	test_vectors();
	test_round_trip();
	test_image_header();
	test_bad_files();
	test_bad_indexes();
	test_changed_file();
	test_writer_errors();
	scratch_remove(data_folder);
	return check_failures() ? 1 : 0;
}
