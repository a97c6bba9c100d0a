/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exponentials for vector loops. exp(x) = 2^k exp(r) with k = round(x / ln 2) and |r| <= ln(2) / 2;
 * ln 2 is taken in two parts, so that r is exact enough (Cody and Waite, 1980), and exp(r) is its
 * Taylor series up to r^7, whose rest is below 1e-8.
 */
#ifndef DEVICE_CPU_SHARED_EXPONENTIAL_H
#define DEVICE_CPU_SHARED_EXPONENTIAL_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <muster/base.h>

/* Adding it moves a float's whole part into the lowest bits of its mantissa. */
#define WHOLE 12582912.0f /* 1.5 * 2^23 */

/* For |x| <= 87; larger ones count as that, so nothing overflows or is denormal. One comparison:
 * of two, compilers make ways of their own through what follows. */
MU_INLINE float exponential(float x)
{
	const float size = fabsf(x), y = copysignf(size > 87 ? 87 : size, x);
	float moved, k, r, p, power;
	uint32_t bits;

	moved = y * 1.44269504f + WHOLE;
	k = moved - WHOLE;
	r = y - k * 0.693359375f;
	r = r + k * 2.12194440e-4f;
	p = 1.0f / 5040;
	p = p * r + 1.0f / 720;
	p = p * r + 1.0f / 120;
	p = p * r + 1.0f / 24;
	p = p * r + 1.0f / 6;
	p = p * r + 0.5f;
	p = p * r + 1;
	p = p * r + 1;
	memcpy(&bits, &moved, sizeof bits);
	bits = (bits << 23) + UINT32_C(0x3f800000);
	memcpy(&power, &bits, sizeof power);
	return p * power;
}

/* Near 0 the coefficients of tanhf of Cephes (S. Moshier), so that small values stay exact. */
MU_INLINE float tangent(float x)
{
	const float z = x * x, far = 1 - 2 / (1 + exponential(2 * x));
	float p = -5.70498872745e-3f;

	p = p * z + 2.06390887954e-2f;
	p = p * z - 5.37397155531e-2f;
	p = p * z + 1.33314422036e-1f;
	p = p * z - 3.33332819422e-1f;
	return z < 0.390625f ? x + x * z * p : far;
}

/* ln(1 + u) for 0 <= u <= 1: 2 artanh(s) with s = u / (2 + u) <= 1/3, whose series' rest is below
 * 1e-8. */
MU_INLINE float log_of_1_and(float u)
{
	const float s = u / (2 + u), z = s * s;
	float p = 1.0f / 15;

	p = p * z + 1.0f / 13;
	p = p * z + 1.0f / 11;
	p = p * z + 1.0f / 9;
	p = p * z + 1.0f / 7;
	p = p * z + 1.0f / 5;
	p = p * z + 1.0f / 3;
	return 2 * (s + s * z * p);
}

/* ln(1 + e^-|x|) */
MU_INLINE float log_of_1_and_exponential(float x)
{
	return log_of_1_and(exponential(-fabsf(x)));
}

#endif
