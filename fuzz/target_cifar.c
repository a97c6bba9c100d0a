/* SPDX-License-Identifier: Apache-2.0 */
/* CIFAR's binary files. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct mu_records_config config = {.classes = 10};

	fuzz_read_records(fuzz_file("x.bin", data, n), &config);
	fuzz_read_records(fuzz_file("train.bin", data, n), NULL);
	return 0;
}
