/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sums of squares that do not depend on how the elements are cut or ordered: squares of 16 elements
 * (no cut lies within them) are added in double precision in a fixed order, and these doubles
 * exactly, as integers. A long fixed-point sum: Kulisch, Computer arithmetic and validity, 2008.
 */
#include <assert.h>
#include <math.h>
#include <string.h>

#include "rule.h"

/* 32-bit words; the lowest bit of the first one weighs 2^LOWEST. One more word counts values that
 * are not finite. A sum of 16 squares of floats is less than 2^260. */
enum { LIMBS = MU_NORM_WORDS - 1, LOWEST = -288, CHUNK = 64 };

/* Squares of a float are exact in double, so that a fused multiply-add changes nothing. */
MU_LOOP
static void square_blocks(size_t n_blocks, const float *restrict values, double *restrict out)
{
	for (size_t b = 0; b < n_blocks; b++) {
		const float *v = values + b * MU_LANES;
		double s[MU_LANES / 2];

		for (int i = 0; i < 8; i++)
			s[i] = (double)v[i] * (double)v[i] + (double)v[i + 8] * (double)v[i + 8];
		for (int i = 0; i < 4; i++)
			s[i] += s[i + 4];
		out[b] = (s[0] + s[2]) + (s[1] + s[3]);
	}
}

/* x = m 2^e with an integer m of 53 bits; bits below 2^LOWEST are dropped from every x. */
static void add(uint64_t *sum, double x)
{
	uint64_t bits, m;
	int exponent, at;

	memcpy(&bits, &x, sizeof bits);
	exponent = (int)(bits >> 52 & 0x7ff);
	if (exponent == 0x7ff) {
		sum[LIMBS]++;
		return;
	}
	if (exponent == 0)
		return;
	m = (bits & (((uint64_t)1 << 52) - 1)) | (uint64_t)1 << 52;
	at = exponent - 1075 - LOWEST;
	if (at < 0) {
		m = at > -64 ? m >> -at : 0;
		at = 0;
	}
	assert(at / 32 + 2 < LIMBS);
	sum += at / 32;
	at %= 32;
	sum[0] += (m << at) & 0xffffffff;
	sum[1] += (m << at) >> 32;
	sum[2] += at > 0 ? m >> (64 - at) : 0;
}

void mu_norm_squares(uint64_t *sum, size_t n, const float *values)
{
	double blocks[CHUNK];

	for (size_t at = 0; at < n / MU_LANES; at += CHUNK) {
		size_t n_blocks = n / MU_LANES - at < CHUNK ? n / MU_LANES - at : CHUNK;

		square_blocks(n_blocks, values + at * MU_LANES, blocks);
		for (size_t b = 0; b < n_blocks; b++)
			add(sum, blocks[b]);
	}
}

double mu_norm_value(const uint64_t *sum)
{
	uint64_t limbs[LIMBS];
	uint64_t carry = 0;
	double value = 0;

	if (sum[LIMBS] > 0)
		return NAN;
	for (int i = 0; i < LIMBS; i++) {
		carry += sum[i] & 0xffffffff;
		limbs[i] = carry & 0xffffffff;
		carry = (carry >> 32) + (sum[i] >> 32);
	}
	for (int i = LIMBS; i-- > 0;)
		value += ldexp((double)limbs[i], 32 * i + LOWEST);
	return value;
}
