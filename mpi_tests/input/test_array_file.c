/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/* Files of named arrays: round trip, order of bytes, atomic replacement, every kind of refusal. */
#include <muster/storage.h>

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

static const size_t dims2[] = {3, 4}, dims1[] = {5};

/* A file with two arrays and a text; plus is added to every element. */
static void write_file(const char *name, float plus, bool commit)
{
	struct mu_array_file *f;
	float weight[12], mean[5];

	for (int i = 0; i < 12; i++)
		weight[i] = (float)i + plus;
	for (int i = 0; i < 5; i++)
		mean[i] = (float)i / 3 + plus;
	if (!CHECK(mu_array_file_create(&f, path_of(name)) == MU_OK)) {
		mu_trace_print(stderr, "");
		return;
	}
	CHECK(mu_array_file_write(f, "arg/fc_weight", 2, dims2, weight) == MU_OK);
	CHECK(mu_array_file_write(f, "arg/deep/er", 1, dims1, mean) == MU_OK);
	CHECK(mu_array_file_write(f, "aux/mean", 1, dims1, mean) == MU_OK);
	CHECK(mu_array_file_set_text(f, "network", "mlp") == MU_OK);
	CHECK(mu_array_file_set_text(f, "network", "lenet") == MU_OK); /* replaced */
	CHECK(mu_array_file_set_text(f, "empty", "") == MU_OK);
	CHECK(mu_array_file_close(f, commit) == MU_OK);
}

static void check_file(const char *name, float plus)
{
	struct mu_array_file *f;
	float weight[12] = {0}, mean[5] = {0};
	char text[6];

	if (!CHECK(mu_array_file_open(&f, path_of(name)) == MU_OK))
		return;
	CHECK(mu_array_file_read(f, "arg/fc_weight", 2, dims2, weight) == MU_OK);
	CHECK(mu_array_file_read(f, "aux/mean", 1, dims1, mean) == MU_OK);
	for (int i = 0; i < 12; i++)
		CHECK(weight[i] == (float)i + plus);
	for (int i = 0; i < 5; i++)
		CHECK(mean[i] == (float)i / 3 + plus);
	CHECK(mu_array_file_get_text(f, "network", text, sizeof text) == MU_OK);
	CHECK_TEXT(text, "lenet");
	CHECK(mu_array_file_get_text(f, "empty", text, sizeof text) == MU_OK);
	CHECK_TEXT(text, "");
	CHECK(mu_array_file_close(f, false) == MU_OK);
}

/* A text that does not fit into an object's header. */
static void test_long_text(void)
{
	enum { N = 200000 };
	static char text[N + 1], again[N + 2];
	struct mu_array_file *f;
	size_t nbytes = 0;

	memset(text, 'x', N);
	text[N - 1] = 'y';
	if (!CHECK(mu_array_file_create(&f, path_of("long.h5")) == MU_OK))
		return;
	CHECK(mu_array_file_set_text(f, "words", text) == MU_OK);
	CHECK(mu_array_file_close(f, true) == MU_OK);
	if (!CHECK(mu_array_file_open_checked(&f, path_of("long.h5")) == MU_OK))
		return;
	CHECK(mu_array_file_text_bytes(f, "words", &nbytes) == MU_OK && nbytes == N + 2);
	CHECK(mu_array_file_get_text(f, "words", again, nbytes) == MU_OK);
	CHECK(strcmp(text, again) == 0);
	CHECK(mu_array_file_text_bytes(f, "none", &nbytes) != MU_OK);
	mu_trace_clear();
	CHECK(mu_array_file_close(f, false) == MU_OK);
	CHECK(remove(path_of("long.h5")) == 0);
}

static void test_round_trip(void)
{
	static char first[FILE_BYTES], second[FILE_BYTES];
	size_t n;

	write_file("a.h5", 0, true);
	check_file("a.h5", 0);
	CHECK(scratch_count(folder) == 1);
	n = get_file("a.h5", first, sizeof first);
	CHECK(n > 100 && n < sizeof first);
	sleep(1);
	write_file("a.h5", 0, true); /* over the old one: equal bytes */
	CHECK(get_file("a.h5", second, sizeof second) == n);
	CHECK(memcmp(first, second, n) == 0);
	write_file("a.h5", 8, false); /* not committed: the old one stays */
	check_file("a.h5", 0);
	CHECK(scratch_count(folder) == 1);
	write_file("a.h5", 8, true);
	check_file("a.h5", 8);
}

static void check_message(const char *part1, const char *part2)
{
	CHECK_HAS(mu_trace_message(), path_of("a.h5"));
	CHECK_HAS(mu_trace_message(), part1);
	CHECK_HAS(mu_trace_message(), part2);
	mu_trace_clear();
}

static void test_refused_reads(void)
{
	static const size_t turned[] = {4, 3}, longer[] = {6};
	struct mu_array_file *f;
	float out[12];
	char text[5];

	if (!CHECK(mu_array_file_open(&f, path_of("a.h5")) == MU_OK))
		return;
	CHECK(mu_array_file_read(f, "arg/fc_weight", 2, turned, out) == MU_ERR_FORMAT);
	check_message("arg/fc_weight", "has dimensions (3, 4); expected (4, 3)");
	CHECK(mu_array_file_read(f, "aux/mean", 1, longer, out) == MU_ERR_FORMAT);
	check_message("aux/mean", "has dimensions (5); expected (6)");
	CHECK(mu_array_file_read(f, "arg/fc_weight", 1, dims1, out) == MU_ERR_FORMAT);
	check_message("arg/fc_weight", "has dimensions (3, 4); expected (5)");
	CHECK(mu_array_file_read(f, "arg/fc_bias", 1, dims1, out) == MU_ERR_FORMAT);
	check_message("holds no array", "\"arg/fc_bias\"");
	CHECK(mu_array_file_read(f, "nowhere/fc_bias", 1, dims1, out) == MU_ERR_FORMAT);
	check_message("holds no array", "\"nowhere/fc_bias\"");
	CHECK(mu_array_file_get_text(f, "device", text, sizeof text) == MU_ERR_FORMAT);
	check_message("holds no attribute", "\"device\"");
	CHECK(mu_array_file_get_text(f, "network", text, sizeof text) ==
	      MU_ERR_FORMAT); /* "lenet" needs 6 */
	check_message("\"network\" has 6 bytes", "at most 5");
	CHECK(mu_array_file_close(f, false) == MU_OK);
}

static void test_refused_writes(void)
{
	struct mu_array_file *f;
	float data[12] = {0};

	if (!CHECK(mu_array_file_create(&f, path_of("a.h5")) == MU_OK))
		return;
	CHECK(mu_array_file_write(f, "arg/w", 1, dims1, data) == MU_OK);
	CHECK(mu_array_file_write(f, "arg/w", 1, dims1, data) == MU_ERR_ARGUMENT);
	check_message("\"arg/w\"", "twice");
	CHECK(mu_array_file_write(f, "arg/x", 9, dims1, data) == MU_ERR_ARGUMENT);
	CHECK_HAS(mu_trace_message(), "9 dimensions");
	CHECK(mu_array_file_write(f, "", 1, dims1, data) == MU_ERR_ARGUMENT);
	CHECK(mu_array_file_close(f, false) == MU_OK);
	CHECK(scratch_count(folder) == 1);

	CHECK(mu_array_file_create(&f, path_of("no/such/folder.h5")) == MU_ERR_IO);
	CHECK(f == NULL);
	CHECK_HAS(mu_trace_message(), "no/such/folder.h5");
	CHECK_HAS(mu_trace_message(), "No such file or directory"); /* HDF5's own words are in it */
	mu_trace_clear();
	CHECK(mu_array_file_close(NULL, true) == MU_OK);
}

static void test_bad_files(void)
{
	static char bytes[FILE_BYTES];
	struct mu_array_file *f;
	size_t n = get_file("a.h5", bytes, sizeof bytes);
	FILE *out;

	CHECK(mu_array_file_open(&f, path_of("missing.h5")) == MU_ERR_IO);
	CHECK(f == NULL);
	CHECK_HAS(mu_trace_message(), "missing.h5");
	CHECK_HAS(mu_trace_message(), "No such file");
	out = fopen(path_of("a.h5"), "wb");
	if (CHECK(out)) {
		fputs("this is a text", out);
		fclose(out);
	}
	CHECK(mu_array_file_open(&f, path_of("a.h5")) == MU_ERR_FORMAT);
	CHECK(f == NULL);
	check_message("is not an HDF5 file", "");
	out = fopen(path_of("a.h5"), "wb");
	if (CHECK(out)) {
		fwrite(bytes, 1, n / 2, out);
		fclose(out);
	}
	CHECK(mu_array_file_open(&f, path_of("a.h5")) == MU_ERR_FORMAT);
	CHECK(f == NULL);
	check_message("damaged HDF5 file", "truncated");
}

int main(void)
{
	CHECK(strlen(mu_array_file_version()) > 0);
	if (!mu_array_file_supported()) {
		printf("skipped: HDF5 is %s\n", mu_array_file_version());
		return CHECK_SKIPPED;
	}
	if (!scratch_make(folder))
		return 1;
	test_round_trip();
		test_long_text();
	test_refused_reads();
	test_refused_writes();
	test_bad_files();
	scratch_remove(folder);
	return check_failures() ? 1 : 0;
}
