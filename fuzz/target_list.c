/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of images (.lst): of labels and paths for im2rec, and of images without labels. */
#include "fuzz.h"

#include <string.h>

/* Its images are not read: it may name any file. */
static void open_unlabelled(const char *path)
{
	const struct mu_records_config config = {.unlabelled = true};
	struct mu_records *r;
	struct mu_records_info info;
	char where[600];

	if (mu_records_open(&r, path, &config) == MU_OK) {
		mu_records_info(r, &info);
		for (size_t i = 0; i < info.n; i++)
			if (!*mu_records_where(r, i, where, sizeof where))
				__builtin_trap();
	}
	mu_records_close(r);
	mu_trace_clear();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	const char *const path = fuzz_file("x.lst", data, n);
	struct mu_image_list list;
	size_t sum = 0;

	open_unlabelled(path);
	if (mu_image_list_read(&list, path) == MU_OK) {
		for (size_t i = 0; i < list.n; i++) {
			sum += strlen(list.line[i].path);
			for (size_t j = 0; j < list.line[i].n_labels; j++)
				sum += list.line[i].labels[j] > 0;
		}
		if (list.n > 0 && sum == 0) /* a line has a path */
			__builtin_trap();
		mu_image_list_release(&list);
	}
	mu_trace_clear();
	return 0;
}
