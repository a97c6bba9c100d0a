/* SPDX-License-Identifier: Apache-2.0 */
/* Tar files of samples. A first byte with bit 0 set: checksums of headers are made right, so that
 * other fields are looked at; bit 1: samples may have no class. */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

enum { BLOCK = 512, SUM = 148, SUM_BYTES = 8 };

static void seal(uint8_t *block)
{
	unsigned sum = 0;
	char text[SUM_BYTES];

	memset(block + SUM, ' ', SUM_BYTES);
	for (int i = 0; i < BLOCK; i++)
		sum += block[i];
	snprintf(text, sizeof text, "%06o", sum);
	memcpy(block + SUM, text, SUM_BYTES);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct mu_records_config config = {.classes = 10};
	uint8_t *copy;

	if (n == 0 || !(copy = malloc(n)))
		return 0;
	config.unlabelled = data[0] & 2;
	memcpy(copy, data + 1, n - 1);
	for (size_t at = 0; data[0] & 1 && at + BLOCK <= n - 1; at += BLOCK)
		if (memcmp(copy + at + 257, "ustar", 5) == 0)
			seal(copy + at);
	fuzz_read_records(fuzz_file("x.tar", copy, n - 1), &config);
	free(copy);
	return 0;
}
