/* SPDX-License-Identifier: Apache-2.0 */
/* Indexes of a RecordIO file that is always the same: 24 records of 64 bytes. */
#include "fuzz.h"

#include <string.h>

enum { N = 24, BYTES = 64 };

static void fill(uint8_t *out)
{
	static const uint8_t head[] = {0x0a, 0x23, 0xd7, 0xce, 56, 0, 0, 0};

	memset(out, 0, (size_t)N * BYTES);
	for (size_t i = 0; i < N; i++)
		memcpy(out + i * BYTES, head, sizeof head);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct mu_records_config config = {.classes = 10};
	uint8_t records[N * BYTES];

	fill(records);
	config.indexes = fuzz_file("x.idx", data, n);
	fuzz_read_records(fuzz_file("x.rec", records, sizeof records), &config);
	return 0;
}
