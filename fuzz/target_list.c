/* SPDX-License-Identifier: Apache-2.0 */
/* Lists of images (.lst). */
#include "fuzz.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct mu_image_list list;
	size_t sum = 0;

	if (mu_image_list_read(&list, fuzz_file("x.lst", data, n)) == MU_OK) {
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
