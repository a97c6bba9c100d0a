/* SPDX-License-Identifier: Apache-2.0 */
/* Tar files, member by member, for the tests: tar(1) writes right ones only. */
#ifndef MUSTER_TAR_DATA_H
#define MUSTER_TAR_DATA_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "check.h"

enum { TAR_BLOCK = 512, TAR_MOST = 1 << 23 };

static uint8_t tar_bytes[TAR_MOST];
static size_t tar_n;

static inline void tar_seal(uint8_t *h)
{
	unsigned sum = 0;

	memset(h + 148, ' ', 8);
	for (int i = 0; i < TAR_BLOCK; i++)
		sum += h[i];
	snprintf((char *)h + 148, 8, "%06o", sum);
}

/* Returns the header, for changes, after which tar_seal is called again. */
static inline uint8_t *tar_add(const char *name, const void *bytes, size_t n, char type)
{
	uint8_t *h = tar_bytes + tar_n;
	const size_t room = (n + TAR_BLOCK - 1) / TAR_BLOCK * TAR_BLOCK;

	if (!CHECK(tar_n + TAR_BLOCK + room <= TAR_MOST))
		abort();
	memset(h, 0, TAR_BLOCK + room);
	memcpy(h, name, strlen(name) < 100 ? strlen(name) : 100);
	memcpy(h + 100, "0000644", 8);
	memcpy(h + 108, "0000000", 8);
	memcpy(h + 116, "0000000", 8);
	snprintf((char *)h + 124, 12, "%011o", (unsigned)n);
	memcpy(h + 136, "00000000000", 12);
	h[156] = (uint8_t)type;
	memcpy(h + 257,
	       "ustar\0"
	       "00",
	       8);
	tar_seal(h);
	memcpy(h + TAR_BLOCK, bytes, n);
	tar_n += TAR_BLOCK + room;
	return h;
}

static inline uint8_t *tar_text(const char *name, const char *text)
{
	return tar_add(name, text, strlen(text), '0');
}

/* The blocks of zeros. */
static inline void tar_end(void)
{
	memset(tar_bytes + tar_n, 0, (size_t)2 * TAR_BLOCK);
	tar_n += (size_t)2 * TAR_BLOCK;
}

static inline void tar_save(const char *path)
{
	FILE *f = fopen(path, "wb");

	CHECK(f && fwrite(tar_bytes, 1, tar_n, f) == tar_n);
	if (f)
		fclose(f);
	tar_n = 0;
}

#endif
