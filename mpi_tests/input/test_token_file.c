/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/* Token files: the bytes that are written, tokens of two and four bytes, what can be wrong. */
#include <muster/tokens.h>

#include "../lib/check.h"
#include "../lib/scratch.h"

static char folder[SCRATCH_BYTES];

static const char *path_of(const char *name)
{
	static char path[2 * SCRATCH_BYTES];

	snprintf(path, sizeof path, "%s/%s", folder, name);
	return path;
}

static void write_bytes(const char *name, const char *bytes, size_t n)
{
	FILE *f = fopen(path_of(name), "wb");

	if (CHECK(f != NULL)) {
		fwrite(bytes, 1, n, f);
		fclose(f);
	}
}

/* A file whose header says `head`, with n bytes after it. */
static void check_bad_file(const int32_t head[3], size_t n, const char *error)
{
	unsigned char bytes[1024 + 8] = {0};
	struct mu_token_list list = {0};

	for (int i = 0; i < 12; i++)
		bytes[i] = (unsigned char)((uint32_t)head[i / 4] >> 8 * (i % 4));
	write_bytes("x.bin", (const char *)bytes, n);
	CHECK(mu_token_file_read(path_of("x.bin"), &list) == MU_ERR_FORMAT);
	CHECK_HAS(mu_trace_message(), error);
	mu_trace_clear();
	mu_token_list_release(&list);
}

/* Tokens of 4 bytes. */
static void check_wide_file(const int32_t head[3])
{
	static const uint32_t ids[] = {70000, 3};
	int32_t header[256] = {head[0], head[1], head[2]};
	struct mu_token_list list = {0};
	FILE *f = fopen(path_of("wide.bin"), "wb");
	size_t n, width;

	CHECK(f && fwrite(header, 4, 256, f) == 256 && fwrite(ids, 4, 2, f) == 2);
	if (f)
		fclose(f);
	CHECK(mu_token_file_count(path_of("wide.bin"), &n, &width) == MU_OK && n == 2 &&
	      width == 4);
	CHECK(mu_token_file_read(path_of("wide.bin"), &list) == MU_OK && list.n == 2 &&
	      memcmp(list.ids, ids, sizeof ids) == 0);
	mu_token_list_release(&list);
}

static void test_token_files(void)
{
	static const uint32_t ids[] = {0, 1, 256, 65535}, large[] = {65536};
	static const unsigned char want[] = {0, 0, 1, 0, 0, 1, 255, 255};
	unsigned char bytes[2000];
	struct mu_token_list list = {0};
	size_t n = 0, width;
	FILE *f;

	CHECK(mu_token_file_write(path_of("x.bin"), ids, 4) == MU_OK);
	f = fopen(path_of("x.bin"), "rb");
	n = f ? fread(bytes, 1, sizeof bytes, f) : 0;
	if (f)
		fclose(f);
	CHECK(n == 1032 && memcmp(bytes + 1024, want, 8) == 0);
	CHECK(memcmp(bytes, "\x88\xd8\x34\x01\1\0\0\0\4\0\0\0\0", 13) == 0);
	CHECK(mu_token_file_is(path_of("x.bin")));
	CHECK(mu_token_file_count(path_of("x.bin"), &n, &width) == MU_OK && n == 4 && width == 2);
	CHECK(mu_token_file_read(path_of("x.bin"), &list) == MU_OK && list.n == 4 &&
	      memcmp(list.ids, ids, sizeof ids) == 0);
	mu_token_list_release(&list);
	CHECK(mu_token_file_write(path_of("y.bin"), large, 1) == MU_ERR_UNSUPPORTED);
	CHECK_HAS(mu_trace_message(), "y.bin: token 65536 needs more than the 16 bits");
	mu_trace_clear();
	check_bad_file((int32_t[]){20240520, 1, 4}, 1031,
		       "1031 bytes, and 1032 by its header of 4");
	check_bad_file((int32_t[]){20240520, 1, -1}, 1032, "cut short or is damaged");
	check_bad_file((int32_t[]){20240520, 1, 4}, 1000, "begins with a header of 1024");
	check_bad_file((int32_t[]){20240801, 7, 4}, 1032, "1032 bytes, and 1040 by its header");
	check_bad_file((int32_t[]){7, 7, 4}, 1032, "begins with 7, not with 20240520");
	check_bad_file((int32_t[]){7, 7, 4}, 12, "tokens alone, as nanoGPT writes them");
	check_bad_file((int32_t[]){20240520, 7, 4}, 1032,
		       "of version 7; version 1 (uint16) or 2 (uint32) is needed");
	check_wide_file((int32_t[]){20240520, 2, 2});
	check_wide_file((int32_t[]){20240801, 7, 2});
}

int main(void)
{
	if (!scratch_make(folder))
		return 1;
	test_token_files();
	scratch_remove(folder);
	return check_failures() ? 1 : 0;
}
