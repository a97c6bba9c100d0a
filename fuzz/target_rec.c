/* SPDX-License-Identifier: Apache-2.0 */
/* RecordIO files: heads, parts, the header of images. */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct mu_records_config config = {.classes = 10, .indexes = ""};

	fuzz_read_records(fuzz_file("x.rec", data, n), &config);
	return 0;
}
