/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of record files share: small files in a folder of their own, and noise. */
#ifndef MUSTER_RECORD_DATA_H
#define MUSTER_RECORD_DATA_H

#include <muster/records.h>

#include <stdlib.h>
#include <unistd.h>

#include "check.h"
#include "scratch.h"

enum { DATA_PATH = 2 * SCRATCH_BYTES, DATA_PATHS = 4 };

static char data_folder[SCRATCH_BYTES];

/* The path of a file in the folder; valid for the next DATA_PATHS - 1 calls. */
static inline const char *data_path(const char *name)
{
	static char paths[DATA_PATHS][DATA_PATH];
	static int next;
	char *path = paths[next++ % DATA_PATHS];

	snprintf(path, DATA_PATH, "%s/%s", data_folder, name);
	return path;
}

static inline void data_put(const char *name, const void *data, size_t nbytes)
{
	FILE *f = fopen(data_path(name), "wb");

	if (!CHECK(f))
		return;
	CHECK(fwrite(data, 1, nbytes, f) == nbytes);
	fclose(f);
}

static inline void data_text(const char *name, const char *text)
{
	data_put(name, text, strlen(text));
}

/* At most nbytes; returns how many the file has. */
static inline size_t data_get(const char *name, void *data, size_t nbytes)
{
	FILE *f = fopen(data_path(name), "rb");
	size_t n;

	if (!CHECK(f))
		return 0;
	n = fread(data, 1, nbytes, f);
	CHECK(fgetc(f) == EOF);
	fclose(f);
	return n;
}

/* Noise that holds RecordIO's magic here and there, at multiples of 4 and elsewhere. */
static inline void data_noise(uint8_t *out, size_t n, uint32_t seed)
{
	static const uint8_t magic[] = {0x0a, 0x23, 0xd7, 0xce};
	uint32_t state = seed * 2654435761u + 1;

	for (size_t i = 0; i < n; i++) {
		state = state * 1664525u + 1013904223u;
		out[i] = (uint8_t)(state >> 24);
		if (i >= 3 && (state >> 8) % 8 == 0)
			memcpy(out + i - 3, magic, sizeof magic);
	}
}

/* The call failed with this status, and its message holds both texts. */
#define CHECK_FAILS(call, want, a, b) \
	do { \
		CHECK((call) == (want)); \
		CHECK_HAS(mu_trace_message(), a); \
		CHECK_HAS(mu_trace_message(), b); \
		mu_trace_clear(); \
	} while (0)

#endif
