/* SPDX-License-Identifier: Apache-2.0 */
/*
 * HDF5 data files. The bytes go through HDF5 itself, which is not instrumented, and which tests its
 * own data's checksums in files of the format that we write.
 */
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	fuzz_read_records(fuzz_file("x.h5", data, n), NULL);
	return 0;
}
