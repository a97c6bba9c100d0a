/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/* Which images a folder of classes has, and what is left out; lists of images. */
#include <muster/records.h>

#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../lib/record_data.h"

static enum mu_status try_open(const char *path)
{
	struct mu_records *r;
	enum mu_status st = mu_records_open(&r, path, NULL);

	mu_records_close(r);
	return st;
}

/* Folders below those of classes, in the order of torchvision's ImageFolder; what is left out. */
static void test_deep_folder(void)
{
	static const char *const want[] = {"a/9.jpg", "a/d/2.jpg", "a/d-1/1.jpg", "a/d/x/0.jpg",
					   "c/e/1.jpg"};
	static const char *const folders[] = {"deep",       "deep/a", "deep/a/d", "deep/a/d/x",
					      "deep/a/d-1", "deep/b", "deep/c",   "deep/c/e"};
	struct mu_records *r;
	struct mu_records_info info;
	struct mu_record_buffer buffer = {0};
	struct mu_record record;
	char text[MU_LEFT_OUT_BYTES], name[200];

	for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
		mkdir(data_path(folders[i]), 0700);
	for (size_t i = 0; i < sizeof want / sizeof *want; i++) {
		snprintf(name, sizeof name, "deep/%s", want[i]);
		data_put(name, want[i], strlen(want[i]));
	}
	data_put("deep/a/d/x.webp", "other", 5);
	data_put("deep/a/noend", "other", 5);
	data_put("deep/c/.1.jpg", "hidden", 6);
	data_put("deep/top.jpg", "no class", 8);
	if (CHECK(mu_records_open(&r, data_path("deep"), NULL) == MU_OK)) {
		mu_records_info(r, &info);
		CHECK(info.n == 5 && info.classes == 3);
		for (size_t i = 0; i < info.n; i++) {
			CHECK(mu_records_read(r, i, &buffer, &record) == MU_OK);
			CHECK(record.n == strlen(want[i]) &&
			      memcmp(record.data, want[i], record.n) == 0);
			CHECK(record.labels[0] == (i < 4 ? 0 : 2));
		}
		CHECK_HAS(mu_records_where(r, 3, text, sizeof text), "deep/a/d/x/0.jpg, record 3");
		mu_left_out_text(&info.left_out, text, sizeof text);
		CHECK_HAS(text, "2 files of other kinds (the first is a/");
		CHECK_HAS(text, "1 hidden file or folder (c/.1.jpg)");
		CHECK_HAS(text, "1 image in no folder of a class (top.jpg)");
		CHECK_HAS(text, "1 class without images (b)");
		mu_records_close(r);
	}
	CHECK(symlink("../../a", data_path("deep/a/d/loop")) == 0);
	CHECK_FAILS(try_open(data_path("deep")), MU_ERR_FORMAT, "deep/a/d/loop",
		    "a link to a folder above it");
	unlink(data_path("deep/a/d/loop"));
	mu_record_buffer_release(&buffer);
	for (size_t i = sizeof folders / sizeof *folders; i-- > 0;)
		scratch_remove(data_path(folders[i]));
}

static enum mu_status read_list(const char *text, size_t n, struct mu_image_list *list)
{
	data_put("x.lst", text, n);
	return mu_image_list_read(list, data_path("x.lst"));
}

#define LIST(text) text, sizeof text - 1, &list

static void test_list(void)
{
	struct mu_image_list list;

	if (CHECK(read_list(LIST("\xef\xbb\xbf"
				 "7\t16777216\ta.png\r\n")) == MU_OK)) {
		CHECK(list.n == 1 && list.line[0].id == 7 && list.labels[0] == 16777216);
		mu_image_list_release(&list);
	}
	CHECK(read_list(LIST("")) == MU_OK && list.n == 0);
	mu_image_list_release(&list);
	CHECK_FAILS(read_list(LIST("0\t1\ta.png\n1\t16777217\tb.png\n")), MU_ERR_FORMAT,
		    "line 2 has label 16777217", "becomes 16777216");
	CHECK_FAILS(read_list(LIST("\xff\xfe"
				   "0\0\t\0"
				   "1\0")),
		    MU_ERR_FORMAT, "UTF-16", "iconv -f UTF-16");
	CHECK_FAILS(read_list(LIST("0\0\t\0"
				   "1\0")),
		    MU_ERR_FORMAT, "UTF-16", "iconv");
	unlink(data_path("x.lst"));
}

/* Lines that end in a carriage return alone, as many as outgrow any room by chance. */
static void test_unlabelled_list(void)
{
	enum { N = 20000, LINE = 6 };
	const struct mu_records_config config = {.unlabelled = true};
	struct mu_records *r;
	struct mu_records_info info;
	char *text = malloc(N * LINE + 1), where[200];

	for (size_t i = 0; i < N; i++)
		memcpy(text + i * LINE, i + 1 < N ? "a.jpg\r" : "b.jpg\n", LINE + 1);
	data_put("cr.lst", text, N * LINE);
	if (CHECK(mu_records_open(&r, data_path("cr.lst"), &config) == MU_OK)) {
		mu_records_info(r, &info);
		CHECK(info.n == N);
		CHECK_HAS(mu_records_where(r, N - 2, where, sizeof where), "a.jpg");
		CHECK_HAS(mu_records_where(r, N - 1, where, sizeof where), "b.jpg");
	}
	mu_records_close(r);
	free(text);
	data_put("cr.lst", "a.jpg\n0\t1\t\n", 11);
	CHECK(mu_records_open(&r, data_path("cr.lst"), &config) == MU_ERR_FORMAT);
	CHECK_HAS(mu_trace_message(), "ends in a tab, with no path");
	mu_trace_clear();
	unlink(data_path("cr.lst"));
}

int main(void)
{
	if (!scratch_make(data_folder))
		return 1;
	test_deep_folder();
	test_list();
	test_unlabelled_list();
	scratch_remove(data_folder);
	return check_failures() ? 1 : 0;
}
