/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loops have fixed counts and no branches on the values, so that they become vector loops: a word
 * of codes at a time, whose places are in a table. Words are put into bytes one by one, lowest
 * first, on machines of either byte order.
 */

#include "bits.h"

#define WORD_BYTES 4
#define TWO_N 16 /* elements of a word */
#define ONE_N 32

/* Where element i's code lies in a word: bytes rise, within a byte codes fall. */
static const uint32_t two_places[TWO_N] = {6,  4,  2,  0,  14, 12, 10, 8,
					   22, 20, 18, 16, 30, 28, 26, 24};
static const uint32_t one_places[ONE_N] = {7,  6,  5,  4,  3,  2,  1,  0,  15, 14, 13,
					   12, 11, 10, 9,  8,  23, 22, 21, 20, 19, 18,
					   17, 16, 31, 30, 29, 28, 27, 26, 25, 24};

static inline void put_word(unsigned char *out, uint32_t word)
{
	for (int i = 0; i < WORD_BYTES; i++)
		out[i] = (unsigned char)(word >> 8 * i);
}

static inline uint32_t get_word(const unsigned char *in)
{
	uint32_t word = 0;

	for (int i = 0; i < WORD_BYTES; i++)
		word |= (uint32_t)in[i] << 8 * i;
	return word;
}

size_t mu_bits_bytes(int bits, size_t n)
{
	const size_t per_word = 8 * WORD_BYTES / (size_t)bits;

	return (n + per_word - 1) / per_word * WORD_BYTES;
}

MU_LOOP
static void add_values(size_t n, float *restrict sums, const float *restrict values)
{
	for (size_t i = 0; i < n; i++)
		sums[i] += values[i];
}

void mu_bits_add(size_t n, float *restrict sums, const float *restrict values)
{
	add_values(n, sums, values);
}

/* ---- two bits ---- */

static inline uint32_t code_two(float limit, float value, float *v)
{
	const float r = *v;
	const bool up = r >= limit, down = r <= -limit;

	*v = up ? r - value : down ? r + value : r;
	return up ? 3u : down ? 2u : 0u;
}

MU_LOOP
static void encode_two_words(size_t n_words, float limit, float value, float *restrict values,
			     uint32_t *restrict words)
{
	for (size_t w = 0; w < n_words; w++) {
		uint32_t word = 0;

		for (size_t i = 0; i < TWO_N; i++)
			word |= code_two(limit, value, &values[w * TWO_N + i]) << two_places[i];
		words[w] = word;
	}
}

#define SOME_WORDS 64

void mu_bits_encode_two(size_t n, float limit, float value, float *restrict values,
			unsigned char *restrict codes)
{
	const size_t n_words = n / TWO_N;
	uint32_t words[SOME_WORDS], last = 0;

	for (size_t w = 0; w < n_words; w += SOME_WORDS) {
		const size_t m = n_words - w < SOME_WORDS ? n_words - w : SOME_WORDS;

		encode_two_words(m, limit, value, values + w * TWO_N, words);
		for (size_t i = 0; i < m; i++)
			put_word(codes + (w + i) * WORD_BYTES, words[i]);
	}
	for (size_t i = n_words * TWO_N; i < n; i++)
		last |= code_two(limit, value, &values[i]) << two_places[i % TWO_N];
	if (n % TWO_N)
		put_word(codes + n_words * WORD_BYTES, last);
}

static inline float value_two(uint32_t code)
{
	return code == 3 ? 1.0f : code == 2 ? -1.0f : 0.0f;
}

MU_LOOP
static void decode_two_words(size_t n_words, float value, const uint32_t *restrict words,
			     float *restrict out)
{
	for (size_t w = 0; w < n_words; w++)
		for (size_t i = 0; i < TWO_N; i++)
			out[w * TWO_N + i] = value * value_two(words[w] >> two_places[i] & 3);
}

void mu_bits_decode_two(size_t n, float value, const unsigned char *restrict codes,
			float *restrict out)
{
	const size_t n_words = n / TWO_N;
	uint32_t words[SOME_WORDS];

	for (size_t w = 0; w < n_words; w += SOME_WORDS) {
		const size_t m = n_words - w < SOME_WORDS ? n_words - w : SOME_WORDS;

		for (size_t i = 0; i < m; i++)
			words[i] = get_word(codes + (w + i) * WORD_BYTES);
		decode_two_words(m, value, words, out + w * TWO_N);
	}
	for (size_t i = n_words * TWO_N; i < n; i++)
		out[i] = value * value_two((uint32_t)codes[i / 4] >> (6 - 2 * (i % 4)) & 3u);
}

/* ---- one bit ---- */

static inline uint32_t code_one(float limit, float low, float high, float *v)
{
	const bool up = *v > limit;

	*v -= up ? high : low;
	return up;
}

MU_LOOP
static void encode_one_words(size_t n_words, float limit, const float *restrict low_high,
			     float *restrict values, uint32_t *restrict words)
{
	const float low = low_high[0], high = low_high[1];

	for (size_t w = 0; w < n_words; w++) {
		uint32_t word = 0;

		for (size_t i = 0; i < ONE_N; i++)
			word |= code_one(limit, low, high, &values[w * ONE_N + i]) << one_places[i];
		words[w] = word;
	}
}

void mu_bits_encode_one(size_t n, float limit, const float *restrict low_high,
			float *restrict values, unsigned char *restrict codes)
{
	const size_t n_words = n / ONE_N;
	uint32_t words[SOME_WORDS], last = 0;

	for (size_t w = 0; w < n_words; w += SOME_WORDS) {
		const size_t m = n_words - w < SOME_WORDS ? n_words - w : SOME_WORDS;

		encode_one_words(m, limit, low_high, values + w * ONE_N, words);
		for (size_t i = 0; i < m; i++)
			put_word(codes + (w + i) * WORD_BYTES, words[i]);
	}
	for (size_t i = n_words * ONE_N; i < n; i++)
		last |= code_one(limit, low_high[0], low_high[1], &values[i])
			<< one_places[i % ONE_N];
	if (n % ONE_N)
		put_word(codes + n_words * WORD_BYTES, last);
}

MU_LOOP
static void decode_one_words(size_t n_words, const float *restrict low_high,
			     const uint32_t *restrict words, float *restrict out)
{
	const float low = low_high[0], high = low_high[1];

	for (size_t w = 0; w < n_words; w++)
		for (size_t i = 0; i < ONE_N; i++)
			out[w * ONE_N + i] = words[w] >> one_places[i] & 1 ? high : low;
}

void mu_bits_decode_one(size_t n, const float *restrict low_high,
			const unsigned char *restrict codes, float *restrict out)
{
	const size_t n_words = n / ONE_N;
	uint32_t words[SOME_WORDS];

	for (size_t w = 0; w < n_words; w += SOME_WORDS) {
		const size_t m = n_words - w < SOME_WORDS ? n_words - w : SOME_WORDS;

		for (size_t i = 0; i < m; i++)
			words[i] = get_word(codes + (w + i) * WORD_BYTES);
		decode_one_words(m, low_high, words, out + w * ONE_N);
	}
	for (size_t i = n_words * ONE_N; i < n; i++)
		out[i] = low_high[(uint32_t)codes[i / 8] >> (7 - i % 8) & 1u];
}

/* ---- the store of keys ---- */

static const float one_values[2] = {-1, 1};

void mu_bits_encode(int bits, float threshold, size_t n, const float *gradient, float *residual,
		    unsigned char *codes)
{
	mu_bits_add(n, residual, gradient);
	if (bits == 2)
		mu_bits_encode_two(n, threshold, threshold, residual, codes);
	else
		mu_bits_encode_one(n, threshold, one_values, residual, codes);
}

void mu_bits_decode(int bits, float threshold, size_t from, size_t n, const unsigned char *codes,
		    float *out)
{
	if (bits == 2)
		mu_bits_decode_two(n, threshold, codes + from / 4, out);
	else
		mu_bits_decode_one(n, one_values, codes + from / 8, out);
}
