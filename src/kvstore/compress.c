/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One byte at a time: 4 codes of two bits or 8 of one. The inner loops have fixed counts and no
 * branches on the values.
 */
#include <string.h>

#include "compress.h"

#define WORD_BYTES 4

size_t mu_compress_bytes(int bits, size_t n)
{
	const size_t per_word = 8 * WORD_BYTES / (size_t)bits;

	return (n + per_word - 1) / per_word * WORD_BYTES;
}

static unsigned code_two(float threshold, float g, float *residual)
{
	const float r = *residual + g;
	const bool up = r >= threshold;
	const bool down = r <= -threshold;

	*residual = up ? r - threshold : down ? r + threshold : r;
	return up ? 3u : down ? 2u : 0u;
}

static unsigned code_one(float threshold, float g, float *residual)
{
	const float r = *residual + g;
	const bool up = r > threshold;

	*residual = up ? r - 1 : r + 1;
	return up;
}

void mu_compress(int bits, float threshold, size_t n, const float *gradient, float *residual,
		 unsigned char *codes)
{
	const size_t per_byte = 8 / (size_t)bits;

	memset(codes, 0, mu_compress_bytes(bits, n));
	for (size_t at = 0; at < n; at += per_byte) {
		const size_t m = n - at < per_byte ? n - at : per_byte;
		unsigned byte = 0;

		for (size_t i = 0; i < m; i++) {
			float *r = &residual[at + i];
			unsigned code = bits == 2 ? code_two(threshold, gradient[at + i], r)
						  : code_one(threshold, gradient[at + i], r);

			byte |= code << (8 - (size_t)bits * (i + 1));
		}
		codes[at / per_byte] = (unsigned char)byte;
	}
}

void mu_decompress(int bits, float threshold, size_t from, size_t n, const unsigned char *codes,
		   float *out)
{
	const float two[4] = {0, 0, -threshold, threshold};
	const float one[2] = {-1, 1};

	for (size_t i = 0; i < n; i++) {
		const size_t at = from + i;

		if (bits == 2)
			out[i] = two[codes[at / 4] >> (6 - 2 * (at % 4)) & 3];
		else
			out[i] = one[codes[at / 8] >> (7 - at % 8) & 1];
	}
}
