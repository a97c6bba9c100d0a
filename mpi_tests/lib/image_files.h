/* SPDX-License-Identifier: Apache-2.0 */
/* Images of every kind, encoded in memory, for the tests that decode. */
#ifndef IMAGE_FILES_H
#define IMAGE_FILES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum image_ink { IMAGE_RGB, IMAGE_GREY, IMAGE_CMYK };

struct image_file {
	size_t h, w;
	enum image_ink ink;
	int across, down; /* JPEG: luma samples per chroma sample, 1 or 2 */
	bool progressive; /* PNG: interlaced */
	bool smooth;      /* waves in place of noise */
	unsigned seed;
	/* JPEG only. */
	int quality;  /* 0: 90 */
	int restart;  /* MCUs between restart markers, 0: none */
	bool optimal; /* Huffman tables of its own */
};

/* Bytes of the file; freed with free. NULL: no memory. */
uint8_t *image_file_jpeg(const struct image_file *f, size_t *n);
/* The lower 8 of 16 bits. */
static inline uint8_t image_file_low(uint8_t upper)
{
	return (uint8_t)(7 * upper + 90);
}

/* bits 8 or 16; alpha: half transparent. */
uint8_t *image_file_png(const struct image_file *f, int bits, bool alpha, size_t *n);
/* Value of channel c of a pixel before it is encoded. */
uint8_t image_file_value(const struct image_file *f, size_t y, size_t x, int c);

#endif
