/* SPDX-License-Identifier: Apache-2.0 */
/* IDX files, plain and gzip: the first byte is the number of dimensions that are asked for. */
#include <muster/storage.h>

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct mu_idx idx;
	size_t nbytes = 1, sum = 0;

	if (n == 0)
		return 0;
	if (mu_idx_read(&idx, fuzz_file("x-idx", data + 1, n - 1), data[0] % 6) == MU_OK) {
		for (int i = 0; i < idx.ndims; i++)
			nbytes *= idx.dims[i];
		for (size_t i = 0; i < nbytes; i++)
			sum += idx.data[i];
		if (sum > nbytes * 255)
			__builtin_trap();
		mu_idx_release(&idx);
	}
	mu_trace_clear();
	return 0;
}
