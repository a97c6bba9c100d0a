/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzz targets: each file target_*.c feeds bytes to one parser of files, through the same calls
 * that everything else uses. `make fuzz` builds them with clang's libFuzzer, fuzz/run starts them,
 * and replay.c makes plain programs of them, which go through the committed corpus in make check. A
 * target must neither crash nor leak; errors are what it is about.
 */
#ifndef MUSTER_FUZZ_H
#define MUSTER_FUZZ_H

#include <muster/records.h>

/* Called by libFuzzer, or by replay.c. Returns 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* Path of a file of this name with these bytes, in a folder of memory that goes with the process;
 * valid until the next call with the same name. Names are string constants. */
const char *fuzz_file(const char *name, const uint8_t *data, size_t n);

/* Open the records and read each of them, whatever comes. */
void fuzz_read_records(const char *paths, const struct mu_records_config *config);

#endif
