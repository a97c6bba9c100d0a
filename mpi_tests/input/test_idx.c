/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/* IDX files: round trip, plain and gzip, equal bytes, and every kind of bad file. */
#include <muster/storage.h>

#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "../lib/check.h"
#include "../lib/scratch.h"

enum { PATH_BYTES = 2 * SCRATCH_BYTES, FILE_BYTES = 1 << 16 };

static char folder[SCRATCH_BYTES];

static const char *path_of(const char *name)
{
	static char path[PATH_BYTES];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	return path;
}

static void put_file(const char *name, const void *data, size_t nbytes)
{
	FILE *f = fopen(path_of(name), "wb");

	if (!CHECK(f))
		return;
	CHECK(fwrite(data, 1, nbytes, f) == nbytes);
	fclose(f);
}

static size_t get_file(const char *name, void *data, size_t nbytes)
{
	FILE *f = fopen(path_of(name), "rb");
	size_t n;

	if (!CHECK(f))
		return 0;
	n = fread(data, 1, nbytes, f);
	fclose(f);
	return n;
}

/* Pixels that do not compress to nothing. */
static struct mu_idx make_images(uint8_t *pixels, size_t n)
{
	struct mu_idx idx = {.ndims = 3, .dims = {n, 5, 7}, .data = pixels};

	for (size_t i = 0; i < n * 35; i++)
		pixels[i] = (uint8_t)(i * i / 7 + i);
	return idx;
}

static void check_equal(const struct mu_idx *a, const struct mu_idx *b)
{
	size_t nbytes = 1;

	CHECK(a->ndims == b->ndims);
	for (int i = 0; i < a->ndims; i++) {
		CHECK(a->dims[i] == b->dims[i]);
		nbytes *= a->dims[i];
	}
	CHECK(memcmp(a->data, b->data, nbytes) == 0);
}

static void test_round_trip(const char *name, const char *read_as)
{
	static uint8_t pixels[35 * 100], first[FILE_BYTES], second[FILE_BYTES];
	struct mu_idx idx = make_images(pixels, 100), back;
	size_t n;

	CHECK(mu_idx_write(path_of(name), &idx) == MU_OK);
	n = get_file(name, first, sizeof first);
	if (CHECK(mu_idx_read(&back, path_of(read_as), 3) == MU_OK)) {
		check_equal(&idx, &back);
		mu_idx_release(&back);
	}
	CHECK(back.data == NULL);
	/* Written again, over the old file and a second later: equal bytes. */
	sleep(1);
	CHECK(mu_idx_write(path_of(name), &idx) == MU_OK);
	CHECK(get_file(name, second, sizeof second) == n);
	CHECK(memcmp(first, second, n) == 0);
	CHECK(scratch_count(folder) == 1); /* nothing temporary stays */
	unlink(path_of(name));
}

static void test_bytes(void)
{
	uint8_t data[] = {7, 8, 9}, file[64];
	static const uint8_t want[] = {0, 0, 8, 1, 0, 0, 0, 3, 7, 8, 9};
	struct mu_idx idx = {.ndims = 1, .dims = {3}, .data = data};

	CHECK(mu_idx_write(path_of("labels"), &idx) == MU_OK);
	CHECK(get_file("labels", file, sizeof file) == sizeof want);
	CHECK(memcmp(file, want, sizeof want) == 0);
	unlink(path_of("labels"));
}

/* Must fail with this status and a message that holds the path and the parts. */
static void check_bad(const char *name, int ndims, enum mu_status want, const char *part1,
		      const char *part2)
{
	struct mu_idx idx;

	if (!CHECK(mu_idx_read(&idx, path_of(name), ndims) == want))
		fprintf(stderr, "    for %s: %s\n", part1, mu_trace_message());
	CHECK(idx.data == NULL);
	CHECK_HAS(mu_trace_message(), path_of(name));
	CHECK_HAS(mu_trace_message(), part1);
	CHECK_HAS(mu_trace_message(), part2);
	mu_trace_clear();
	unlink(path_of(name));
}

static void test_bad_plain(void)
{
	uint8_t file[] = {0, 0, 8, 2, 0, 0, 0, 2, 0, 0, 0, 3, 1, 2, 3, 4, 5, 6, 7};
	static const uint8_t other_type[] = {0, 0, 0x0d, 2, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0};
	static const uint8_t endless[] = {
		0,   0,   8,   4,   255, 255, 255, 255, 255, 255,
		255, 255, 255, 255, 255, 255, 255, 255, 255, 255,
	};
	static const uint8_t huge[] = {0, 0, 8, 2, 255, 255, 255, 255, 0, 0, 255, 255, 1};

	check_bad("missing", 1, MU_ERR_IO, "no such file", "missing.gz");
	put_file("bad", file, 0);
	check_bad("bad", 2, MU_ERR_FORMAT, "empty", "");
	put_file("bad", file, 3);
	check_bad("bad", 2, MU_ERR_FORMAT, "truncated: 3 bytes", "12");
	put_file("bad", file, 11);
	check_bad("bad", 2, MU_ERR_FORMAT, "truncated: 11 bytes", "12");
	put_file("bad", file, 12);
	check_bad("bad", 2, MU_ERR_FORMAT, "truncated: 0 bytes of data", "2 x 3 = 6");
	put_file("bad", file, 17);
	check_bad("bad", 2, MU_ERR_FORMAT, "truncated: 5 bytes of data", "2 x 3 = 6");
	put_file("bad", file, 19);
	check_bad("bad", 2, MU_ERR_FORMAT, "too long", "2 x 3 = 6");
	put_file("bad", file, 18);
	check_bad("bad", 3, MU_ERR_FORMAT, "wrong magic number: starts with 00 00 08 02",
		  "00 00 08 03");
	put_file("bad", other_type, sizeof other_type);
	check_bad("bad", 2, MU_ERR_FORMAT, "00 00 0d 02", "expected 00 00 08 02");
	put_file("bad", "hello, this is text", 19);
	check_bad("bad", 1, MU_ERR_FORMAT, "68 65 6c 6c", "expected 00 00 08 01");
	put_file("bad", endless, sizeof endless);
	check_bad("bad", 4, MU_ERR_FORMAT, "4294967295 x 4294967295", "more than any file");
	put_file("bad", huge, sizeof huge);
	check_bad("bad", 2, MU_ERR_FORMAT, "truncated", "the file has 13 bytes");
	put_file("bad", file, 18);
	check_bad("bad", 9, MU_ERR_ARGUMENT, "9 dimensions", "1 to 4");
}

static void test_bad_gzip(void)
{
	static uint8_t pixels[35 * 100], zip[FILE_BYTES], bad[FILE_BYTES];
	struct mu_idx idx = make_images(pixels, 100);
	size_t n;

	CHECK(mu_idx_write(path_of("good.gz"), &idx) == MU_OK);
	n = get_file("good.gz", zip, sizeof zip);
	unlink(path_of("good.gz"));
	if (!CHECK(n > 100 && n < sizeof zip))
		return;
	CHECK(zip[4] == 0 && zip[5] == 0 && zip[6] == 0 && zip[7] == 0); /* no time stamp */

	memcpy(bad, zip, n);
	bad[n - 8] ^= 1;
	put_file("crc.gz", bad, n);
	check_bad("crc.gz", 3, MU_ERR_FORMAT, "corrupt gzip data", "check");
	memcpy(bad, zip, n);
	bad[n / 2] ^= 0x10;
	put_file("middle.gz", bad, n);
	check_bad("middle.gz", 3, MU_ERR_FORMAT, "gz", "");
	put_file("half.gz", zip, n / 2);
	check_bad("half.gz", 3, MU_ERR_FORMAT, "truncated", "100 x 5 x 7 = 3500");
	put_file("tail.gz", zip, n - 3); /* only the check sum and the length are cut */
	check_bad("tail.gz", 3, MU_ERR_FORMAT, "truncated", "gzip");
	put_file("head.gz", zip, 5);
	check_bad("head.gz", 3, MU_ERR_FORMAT, "truncated", "");
	put_file("random.gz", pixels, 1000);
	check_bad("random.gz", 3, MU_ERR_FORMAT, "magic", "");
	check_bad("missing.gz", 3, MU_ERR_IO, "No such file", "");
}

static void test_bad_places(void)
{
	uint8_t data[1] = {1};
	struct mu_idx idx = {.ndims = 1, .dims = {1}, .data = data};
	struct mu_idx wide = {.ndims = 5, .data = data};

	CHECK(mkdir(path_of("sub"), 0700) == 0);
	CHECK(mu_idx_read(&idx, path_of("sub"), 1) == MU_ERR_IO);
	CHECK_HAS(mu_trace_message(), "is a folder");
	rmdir(path_of("sub"));

	idx = (struct mu_idx){.ndims = 1, .dims = {1}, .data = data};
	CHECK(mu_idx_write(path_of("no/such/folder"), &idx) == MU_ERR_IO);
	CHECK_HAS(mu_trace_message(), "no/such/folder");
	CHECK(mu_idx_write(path_of("wide"), &wide) == MU_ERR_ARGUMENT);
	CHECK_HAS(mu_trace_message(), "5 dimensions");
	idx.dims[0] = (size_t)1 << 32;
	CHECK(mu_idx_write(path_of("large"), &idx) == MU_ERR_ARGUMENT);
	CHECK_HAS(mu_trace_message(), "4294967296");
	CHECK(scratch_count(folder) == 0); /* a failed write leaves nothing */
	mu_trace_clear();
}

/* An old file stays as it was when its replacement fails. */
static void test_failed_replacement(void)
{
	uint8_t data[1] = {42};
	struct mu_idx idx = {.ndims = 1, .dims = {1}, .data = data}, back;

	CHECK(mu_idx_write(path_of("kept"), &idx) == MU_OK);
	idx.dims[0] = (size_t)1 << 32;
	CHECK(mu_idx_write(path_of("kept"), &idx) == MU_ERR_ARGUMENT);
	mu_trace_clear();
	if (CHECK(mu_idx_read(&back, path_of("kept"), 1) == MU_OK)) {
		CHECK(back.data[0] == 42);
		mu_idx_release(&back);
	}
	CHECK(scratch_count(folder) == 1);
	unlink(path_of("kept"));
}

/* What is written through the stream of a replacement. */
static void test_replaced_stream(void)
{
	struct mu_replace replace;
	struct rlimit limit, before;
	char text[16];

	CHECK(mu_replace_open(&replace, path_of("no/such")) == MU_ERR_IO);
	CHECK_HAS(mu_trace_message(), "no/such: cannot be written: No such file");
	mu_trace_clear();
	mu_replace_release(&replace);
	CHECK(mu_replace_open(&replace, path_of("text")) == MU_OK);
	fputs("half", replace.stream);
	mu_replace_release(&replace);
	CHECK(scratch_count(folder) == 0);
	CHECK(mu_replace_open(&replace, path_of("text")) == MU_OK);
	fputs("whole", replace.stream);
	CHECK(mu_replace_commit(&replace) == MU_OK);
	mu_replace_release(&replace);
	CHECK(get_file("text", text, sizeof text) == 5 && memcmp(text, "whole", 5) == 0);
	/* A disk that has no room. */
	CHECK(getrlimit(RLIMIT_FSIZE, &before) == 0);
	limit = (struct rlimit){.rlim_cur = 3, .rlim_max = before.rlim_max};
	signal(SIGXFSZ, SIG_IGN);
	CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
	for (int flushed = 0; flushed < 2; flushed++) {
		CHECK(mu_replace_open(&replace, path_of("text")) == MU_OK);
		fputs("longer", replace.stream);
		CHECK(!flushed || fflush(replace.stream) == EOF);
		CHECK(mu_replace_commit(&replace) == MU_ERR_IO);
		CHECK_HAS(mu_trace_message(), "text: cannot be written: ");
		mu_trace_clear();
		mu_replace_release(&replace);
	}
	CHECK(setrlimit(RLIMIT_FSIZE, &before) == 0);
	CHECK(scratch_count(folder) == 1 && get_file("text", text, sizeof text) == 5);
	unlink(path_of("text"));
}

/* Somebody else puts a link in place of a file that is being written. */
static void test_laid_link(void)
{
	struct mu_replace replace;
	char text[16], target[SCRATCH_BYTES * 2];
	FILE *f;

	snprintf(target, sizeof target, "%s", path_of("precious"));
	put_file("precious", "precious", 8);
	CHECK(mu_replace_begin(&replace, path_of("new")) == MU_OK);
	CHECK(unlink(replace.temporary) == 0 && symlink(target, replace.temporary) == 0);
	f = fopen(replace.written, "w");
	if (CHECK(f)) {
		fputs("written", f);
		CHECK(fclose(f) == 0);
	}
	CHECK(mu_replace_commit(&replace) == MU_ERR_IO);
	CHECK_HAS(mu_trace_message(), "new: cannot be written: somebody put another file in place");
	mu_trace_clear();
	mu_replace_release(&replace);
	CHECK(get_file("precious", text, sizeof text) == 8 && memcmp(text, "precious", 8) == 0);
	CHECK(scratch_count(folder) == 1);
	unlink(path_of("precious"));
}

int main(void)
{
	if (!scratch_make(folder))
		return 1;
	test_round_trip("images", "images");
	test_round_trip("images.gz", "images.gz");
	test_round_trip("images.gz", "images"); /* ".gz" is tried, too */
	test_bytes();
	test_bad_plain();
	test_bad_gzip();
	test_bad_places();
	test_failed_replacement();
	test_replaced_stream();
	test_laid_link();
	scratch_remove(folder);
	return check_failures() ? 1 : 0;
}
