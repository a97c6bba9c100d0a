/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/*
 * Images and classes in tar files: every way to write a name and a size, several files and braces
 * in their names, pieces of a file, and what is wrong, with file, member and byte.
 */
#include <muster/records.h>

#include <sys/resource.h>

#include "../lib/record_data.h"
#include "../lib/tar_data.h"

static enum mu_status try_open(const char *path, const struct mu_records_config *config)
{
	struct mu_records *r;
	enum mu_status st = mu_records_open(&r, path, config);

	mu_records_close(r);
	return st;
}

/* The records of a file have these texts as images, and labels 0, 1, 2, ... */
static void check_texts(const char *path, const char *const *texts, size_t n)
{
	struct mu_records *r;
	struct mu_records_info info;
	struct mu_record_buffer buffer = {0};
	struct mu_record record;

	if (!CHECK(mu_records_open(&r, path, NULL) == MU_OK)) {
		mu_trace_print(stderr, path);
		return;
	}
	mu_records_info(r, &info);
	CHECK(info.n == n && info.kind == MU_RECORD_ENCODED && info.label_width == 1);
	CHECK(!info.unlabelled && info.classes == 0);
	CHECK_TEXT(info.format, "tar file");
	for (size_t pass = 0; pass < 2; pass++) {
		for (size_t i = 0; i < info.n && i < n; i++) {
			buffer.ahead = pass * n; /* also more than there are */
			CHECK(mu_records_read(r, i, &buffer, &record) == MU_OK);
			CHECK(record.n == strlen(texts[i]) &&
			      memcmp(record.data, texts[i], record.n) == 0);
			CHECK(record.id == i && record.n_labels == 1 &&
			      record.labels[0] == (float)i);
			CHECK(mu_records_bound(r, i) == record.n);
		}
	}
	CHECK(mu_records_unchanged(r) == MU_OK);
	mu_record_buffer_release(&buffer);
	mu_records_close(r);
}

/* ---- what is read ---- */

static void test_samples(void)
{
	static const char *const texts[] = {"zero", "one", "two", "three", "four"};
	struct mu_records *r;
	struct mu_records_info info;
	char text[MU_LEFT_OUT_BYTES];

	tar_add("./a/", "", 0, '5');
	tar_text("./a/0.cls", "0");
	tar_text("./a/0.JPG", "zero");
	tar_text("./a/0.json", "{}");
	tar_text("./a.b/0.jpeg", "one");
	tar_text("./a.b/0.cls", " 1\n");
	tar_text("./a.b/._0.jpg", "of a Mac");
	tar_text("./a.b/0.left.jpg", "another extension");
	tar_text("README", "no extension");
	tar_text("__meta__/0.jpg", "WebDataset's own");
	tar_text("9.png", "two");
	tar_text("9.cls", "+2");
	tar_text("alone.json", "{}");
	tar_add("1.txt", "", 0, '2'); /* a link that nobody reads */
	tar_text("1.cls", "003\n");
	tar_text("1.png", "three");
	tar_text("9/1.jpg", "four");
	tar_text("9/1.cls", "4");
	tar_end();
	tar_save(data_path("x.tar"));
	check_texts(data_path("x.tar"), texts, 5);
	if (!CHECK(mu_records_open(&r, data_path("x.tar"), NULL) == MU_OK))
		return;
	mu_records_info(r, &info);
	mu_left_out_text(&info.left_out, text, sizeof text);
	CHECK_HAS(text, "6 files of other kinds (the first is ./a/0.json)");
	CHECK_HAS(text, "1 hidden file or folder (./a.b/._0.jpg)");
	CHECK_HAS(mu_records_where(r, 1, text, sizeof text),
		  "x.tar, record 1 (member ./a.b/0.jpeg) at byte 3584");
	mu_records_close(r);
}

static void put_size(uint8_t *h, size_t n)
{
	memset(h + 124, 0, 12);
	h[124] = 0x80;
	for (int i = 0; i < 8; i++)
		h[135 - i] = (uint8_t)(n >> 8 * i);
	tar_seal(h);
}

/* Long names and sizes in the ways of V7, POSIX and GNU. */
static void test_forms(void)
{
	static const char *const texts[] = {"0", "one", "two", "three", "four", "five"};
	static char name[3000], pax[3100];
	uint8_t *h;

	h = tar_text("v7.jpg", "0");
	memset(h + 257, 0, 8);
	h[156] = '\0';
	tar_seal(h);
	tar_text("v7.cls", "0");
	h = tar_text("1.jpg", "one"); /* POSIX: folders in a field of their own */
	memcpy(h + 345, "deep/folder", 11);
	tar_seal(h);
	h = tar_text("1.cls", "1");
	memcpy(h + 345, "deep/folder", 11);
	tar_seal(h);
	h = tar_text("2.jpg", "two"); /* GNU: times there, a number in bytes */
	memcpy(h + 257, "ustar  ", 8);
	memcpy(h + 345, "01234567", 8);
	put_size(h, 3);
	tar_text("2.cls", "2");
	memset(name, 'n', sizeof name - 1);
	memcpy(name + sizeof name - 5, ".jpg", 5);
	tar_add("././@LongLink", name, sizeof name, 'L');
	tar_text("nnn", "three");
	memcpy(name + sizeof name - 5, ".cls", 5);
	snprintf(pax, sizeof pax, "30 mtime=1500000000.123456789\n3010 path=%s\n", name);
	tar_add("PaxHeader", pax, strlen(pax), 'x');
	tar_text("nnn", "3");
	tar_add("pax_global_header", "17 comment=a b c\n", 17, 'g');
	tar_add("PaxHeader", "10 size=4\n14 path=4.png\n", 24, 'x');
	h = tar_text("y", "four");
	snprintf((char *)h + 124, 12, "%011o", 0);
	tar_seal(h);
	tar_text("4.cls", "4");
	h = tar_text("5.jpg", "five"); /* blanks, and a sum of signed bytes */
	memcpy(h + 124, "          4 ", 12);
	h[300] = 0xff;
	tar_seal(h);
	snprintf((char *)h + 148, 8, "%06lo", strtoul((char *)h + 148, NULL, 8) - 256);
	tar_text("5.cls", "5");
	memset(tar_bytes + tar_n, 0, TAR_BLOCK); /* one block of zeros alone */
	tar_n += TAR_BLOCK;
	tar_save(data_path("forms.tar"));
	check_texts(data_path("forms.tar"), texts, 6);
}

static void put_numbered(const char *file, int from, int to)
{
	char name[20], text[20];

	for (int i = from; i < to; i++) {
		snprintf(name, sizeof name, "%d.jpg", i);
		snprintf(text, sizeof text, "image %d", i);
		tar_text(name, text);
		snprintf(name, sizeof name, "%d.cls", i);
		snprintf(text, sizeof text, "%d", i);
		tar_text(name, text);
	}
	tar_end();
	tar_save(data_path(file));
}

/* Several files are one, by braces, too. */
static void test_several(void)
{
	static const char *const texts[] = {"image 0", "image 1", "image 2", "image 3", "image 4"};
	static const struct {
		const char *names;
		size_t n;
	} lists[] = {
		{"s-{08..11}.tar", 5},     {"s-{08,09,1{0,1}}.tar", 5}, {"s-{08..10..1}.tar", 4},
		{"s-0{8,9}.{tar,tar}", 0}, {"{r..s}{,t}-08.tar", 0},    {"s-{8..9}.tar", 0},
		{"s-{11..08}.tar", 0},     {"t{a}-{08}.tar", 2},        {"{w,x}.tar", 1},
	};
	char path[8 * DATA_PATH];

	put_numbered("s-08.tar", 0, 2);
	put_numbered("s-09.tar", 2, 3);
	put_numbered("s-10.tar", 3, 4);
	put_numbered("s-11.tar", 4, 5);
	put_numbered("t{a}-{08}.tar", 0, 2); /* braces without a list are a name */
	put_numbered("{w,x}.tar", 0, 1);     /* and so is a name that is there */
	for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
		if (lists[i].n > 0)
			check_texts(data_path(lists[i].names), texts, lists[i].n);
	}
	snprintf(path, sizeof path, "%s;%s", data_path("s-{08..09}.tar"), data_path("s-10.tar"));
	check_texts(path, texts, 4);
	CHECK_FAILS(try_open(data_path("s-{8..9}.tar"), NULL), MU_ERR_IO, "s-8.tar", "No such");
	CHECK_FAILS(try_open(data_path("s-{11..07..2}.tar"), NULL), MU_ERR_IO, "s-07.tar",
		    "No such");
	CHECK_FAILS(try_open(data_path("{r..s}{,t}-08.tar"), NULL), MU_ERR_IO, "/r-08.tar", "");
	CHECK_FAILS(try_open(data_path("s-{0..9999999}.tar"), NULL), MU_ERR_USAGE,
		    "more than 1048576 paths", "");
	snprintf(path, sizeof path, "%s;", data_path("s-{08..09}.tar"));
	CHECK_FAILS(try_open(path, NULL), MU_ERR_USAGE, "path 3 of 3 is empty", "");
}

/* More files than a process may usually have open; of those that are wrong, the first is named. */
static void test_many(void)
{
	enum { MANY = 150, FEW = 100 };
	static char texts[MANY][20];
	const char *names[MANY];
	struct rlimit limit, before;
	char name[30];

	for (int i = 0; i < MANY; i++) {
		snprintf(name, sizeof name, "many-%03d.tar", i);
		put_numbered(name, i, i + 1);
		snprintf(texts[i], sizeof texts[i], "image %d", i);
		names[i] = texts[i];
	}
	CHECK(getrlimit(RLIMIT_NOFILE, &before) == 0);
	limit = before;
	limit.rlim_cur = FEW;
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
	check_texts(data_path("many-{000..149}.tar"), names, MANY);
	CHECK(setrlimit(RLIMIT_NOFILE, &before) == 0);
	for (int i = 30; i < MANY; i += 3) {
		snprintf(name, sizeof name, "many-%03d.tar", i);
		CHECK(truncate(data_path(name), 700) == 0);
	}
	for (int k = 0; k < 20; k++)
		CHECK_FAILS(try_open(data_path("many-{000..149}.tar"), NULL), MU_ERR_FORMAT,
			    "many-030.tar: truncated", "");
}

/* A buffer holds a piece of a file: never of one that was closed, or after another use. */
static void test_pieces(void)
{
	struct mu_record_buffer buffer = {0};
	struct mu_record record;
	struct mu_records *r;
	const uint8_t *first;

	for (int k = 0; k < 3; k++) {
		put_numbered("piece.tar", 10 * k, 10 * k + 3);
		if (!CHECK(mu_records_open(&r, data_path("piece.tar"), NULL) == MU_OK))
			return;
		buffer.ahead = 2;
		CHECK(mu_records_read(r, 0, &buffer, &record) == MU_OK);
		CHECK(record.labels[0] == (float)(10 * k));
		CHECK(memcmp(record.data,
			     k == 0   ? "image 0"
			     : k == 1 ? "image 10"
				      : "image 20",
			     record.n) == 0);
		first = record.data;
		CHECK(mu_records_read(r, 2, &buffer, &record) == MU_OK);
		CHECK(record.data - first == 4 * 2 * TAR_BLOCK); /* of the same piece */
		mu_records_close(r);
	}
	mu_record_buffer_release(&buffer);
}

static void test_unlabelled(void)
{
	const struct mu_records_config config = {.unlabelled = true};
	struct mu_records *r;
	struct mu_records_info info;

	tar_text("1.jpg", "one");
	tar_text("2.jpg", "two");
	tar_end();
	tar_save(data_path("u.tar"));
	CHECK_FAILS(try_open(data_path("u.tar"), NULL), MU_ERR_FORMAT,
		    "u.tar: sample \"1\" at byte 0 has no class", "a member 1.cls");
	if (CHECK(mu_records_open(&r, data_path("u.tar"), &config) == MU_OK)) {
		mu_records_info(r, &info);
		CHECK(info.unlabelled && info.n == 2);
		mu_records_close(r);
	}
	if (CHECK(mu_records_open(&r, data_path("s-08.tar"), &config) == MU_OK)) {
		mu_records_info(r, &info);
		CHECK(!info.unlabelled && info.n == 2);
		mu_records_close(r);
	}
	tar_text("1.jpg", "one");
	tar_text("1.cls", "1");
	tar_text("2.jpg", "two");
	tar_end();
	tar_save(data_path("u.tar"));
	CHECK_FAILS(try_open(data_path("u.tar"), &config), MU_ERR_FORMAT,
		    "u.tar, record 1 (member 2.jpg) at byte 2048: has no class", "other samples");
}

/* ---- what is wrong ---- */

static enum mu_status open_built(void)
{
	const struct mu_records_config config = {.classes = 100};

	tar_end();
	tar_save(data_path("bad.tar"));
	return try_open(data_path("bad.tar"), &config);
}

static void put_sample(void)
{
	tar_text("1.jpg", "one");
	tar_text("1.cls", "1");
}

static void check_class(const char *text)
{
	tar_text("1.jpg", "one");
	tar_text("1.cls", text);
	CHECK_FAILS(open_built(), MU_ERR_FORMAT, "bad.tar: member \"1.cls\" at byte 1024: is \"",
		    "an integer up to 16777216");
}

static void test_bad_samples(void)
{
	static const char *const classes[] = {"", "x", "1.5", "1 2", "16777217", "- 1", "0x1"};

	for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
		check_class(classes[i]);
	put_sample();
	tar_text("2.cls", "100");
	tar_text("2.jpg", "two");
	CHECK_FAILS(open_built(), MU_ERR_FORMAT, "record 1 (member 2.jpg) at byte 3072",
		    "label 100; labels must be whole numbers from 0 to 99");
	put_sample();
	tar_text("2.cls", "2");
	tar_text("2.webp", "two");
	CHECK_FAILS(open_built(), MU_ERR_FORMAT, "sample \"2\" at byte 2048 has a class and no",
		    "2.jpg, .jpeg or .png next to it; its .webp is not read");
	put_sample();
	tar_text("1.JPG", "again");
	CHECK_FAILS(open_built(), MU_ERR_FORMAT, "member \"1.JPG\" at byte 2048", "second image");
	put_sample();
	tar_text("1.jpeg", "again");
	CHECK_FAILS(open_built(), MU_ERR_FORMAT, "member \"1.jpeg\" at byte 2048", "second image");
	put_sample();
	tar_text("1.Cls", "1");
	CHECK_FAILS(open_built(), MU_ERR_FORMAT, "member \"1.Cls\" at byte 2048: is there before",
		    "at byte 1024");
	put_sample();
	tar_text("2.jpg", "two");
	tar_text("2.cls", "2");
	put_sample();
	CHECK_FAILS(open_built(), MU_ERR_FORMAT, "at byte 4096: is there before, at byte 0",
		    "appending");
	put_sample();
	tar_text("2.jpg", "");
	CHECK_FAILS(open_built(), MU_ERR_FORMAT, "member \"2.jpg\" at byte 2048: has 0 bytes", "");
	put_sample();
	tar_add("2.jpg", "", 0, '1');
	CHECK_FAILS(open_built(), MU_ERR_UNSUPPORTED, "\"2.jpg\" at byte 2048: is a link",
		    "hard-dereference");
	tar_text("README.txt", "nothing of ours");
	CHECK_FAILS(open_built(), MU_ERR_FORMAT, "bad.tar: holds no samples: 1 member", "");
	CHECK_FAILS(open_built(), MU_ERR_FORMAT, "bad.tar: holds no samples: 0 members", "");
}

static void test_bad_headers(void)
{
	uint8_t *h;

	put_sample();
	h = tar_text("2.jpg", "two");
	h[0] = 'x';
	CHECK_FAILS(open_built(), MU_ERR_FORMAT, "no header of a member at byte 2048", "checksum");
	put_sample();
	h = tar_text("2.jpg", "two");
	h[130] = '9';
	tar_seal(h);
	CHECK_FAILS(open_built(), MU_ERR_FORMAT, "the header at byte 2048 has no size", "");
	put_sample();
	put_size(tar_text("2.jpg", "two"), (size_t)1 << 40);
	CHECK_FAILS(open_built(), MU_ERR_FORMAT, "truncated: member \"2.jpg\"",
		    "from byte 2560 on");
	put_sample();
	tar_add("2.jpg", "two", 3, 'S');
	CHECK_FAILS(open_built(), MU_ERR_UNSUPPORTED, "\"2.jpg\" at byte 2048 is sparse",
		    "its option sparse");
	tar_add("PaxHeader", "22 GNU.sparse.major=1\n", 22, 'x');
	put_sample();
	CHECK_FAILS(open_built(), MU_ERR_UNSUPPORTED, "at byte 0 is sparse", "its option sparse");
	tar_add("PaxHeader", "22 path=a\n", 10, 'x');
	put_sample();
	CHECK_FAILS(open_built(), MU_ERR_FORMAT, "the pax header at byte 0 is damaged", "");
	tar_add("PaxHeader", "10 size=x\n", 10, 'x');
	put_sample();
	CHECK_FAILS(open_built(), MU_ERR_FORMAT, "has size=x; expected a number", "");
	tar_add("PaxHeader", "10 path=a\n", 10, 'g');
	put_sample();
	CHECK_FAILS(open_built(), MU_ERR_UNSUPPORTED, "the global header at byte 0", "one path");
	put_sample();
	tar_add("PaxHeader", "10 path=a\n", 10, 'x');
	CHECK_FAILS(open_built(), MU_ERR_FORMAT, "the header at byte 2048 is of a member that is",
		    "");
	put_sample();
	put_size(tar_add("PaxHeader", "10 path=a\n", 10, 'x'), 1 << 21);
	tar_n += 1 << 21;
	CHECK_FAILS(open_built(), MU_ERR_FORMAT, "2097152 bytes of names", "at most 1048576");
	put_sample();
	tar_end();
	put_sample();
	CHECK_FAILS(open_built(), MU_ERR_FORMAT, "ends at byte 2048, by its blocks of zeros",
		    "more follows at byte 3072");
}

/* Cut anywhere, it is an error but where the zeros of its end were begun. */
static void test_truncated(void)
{
	size_t n, end;

	for (int i = 0; i < 2; i++)
		put_sample();
	memcpy(tar_bytes + 2048, "2", 1);
	tar_seal(tar_bytes + 2048);
	memcpy(tar_bytes + 3072, "2", 1);
	tar_seal(tar_bytes + 3072);
	end = tar_n;
	tar_end();
	n = tar_n;
	for (size_t cut = 1; cut < n; cut += cut % 512 == 511 || cut % 512 == 0 ? 1 : 85) {
		tar_n = cut < n ? cut : n;
		tar_save(data_path("cut.tar"));
		if (cut < end + TAR_BLOCK)
			CHECK_FAILS(try_open(data_path("cut.tar"), NULL), MU_ERR_FORMAT, "cut.tar",
				    "truncated");
		else
			CHECK(try_open(data_path("cut.tar"), NULL) == MU_OK);
	}
	data_put("bad.tar", "", 0);
	CHECK_FAILS(try_open(data_path("bad.tar"), NULL), MU_ERR_FORMAT,
		    "bad.tar: the file is empty", "");
	data_put("bad.tar.gz", "\x1f\x8b\x08", 3);
	CHECK_FAILS(try_open(data_path("bad.tar.gz"), NULL), MU_ERR_UNSUPPORTED,
		    "is compressed (gzip)", "gzip -dk ");
	data_put("bad.tar", "\x28\xb5\x2f\xfd", 4);
	CHECK_FAILS(try_open(data_path("bad.tar"), NULL), MU_ERR_UNSUPPORTED,
		    "is compressed (zstd)", "zstd -dk ");
}

int main(void)
{
	if (!scratch_make(data_folder))
		return 1;
	test_samples();
	test_forms();
	test_several();
	test_many();
	test_pieces();
	test_unlabelled();
	test_bad_samples();
	test_bad_headers();
	test_truncated();
	scratch_remove(data_folder);
	return check_failures() ? 1 : 0;
}
