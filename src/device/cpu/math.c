/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Exponentials in vector loops. exp(x) = 2^k exp(r) with k = round(x / ln 2) and |r| <= ln(2) / 2;
 * ln 2 is taken in two parts, so that r is exact enough (Cody and Waite, 1980), and exp(r) is its
 * Taylor series up to r^7, whose rest is below 1e-8.
 */
#include "cpu.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <muster/base.h>

/* Adding it moves a float's whole part into the lowest bits of its mantissa. */
static const float whole = 12582912.0f; /* 1.5 * 2^23 */

/* For |x| <= 87; larger ones count as that, so nothing overflows or is denormal. One comparison:
 * of two, compilers make ways of their own through what follows. */
MU_INLINE float exponential(float x)
{
	const float size = fabsf(x), y = copysignf(size > 87 ? 87 : size, x);
	float moved, k, r, p, power;
	uint32_t bits;

	moved = y * 1.44269504f + whole;
	k = moved - whole;
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

MU_LOOP static void sigmoid(float *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		x[i] = 1 / (1 + exponential(-x[i]));
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

MU_LOOP static void hyperbolic_tangent(const float *restrict x, float *restrict y, size_t n)
{
	for (size_t i = 0; i < n; i++)
		y[i] = tangent(x[i]);
}

MU_LOOP static void hyperbolic_tangent_in_place(float *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		x[i] = tangent(x[i]);
}

/* GELU with tanh is x times the sigmoid of 2 sqrt(2 / pi) (x + 0.044715 x^3). */
static const float gelu_factor = 1.5957691216f, gelu_cubic = 0.044715f;

MU_INLINE float gelu_of(float x)
{
	return x / (1 + exponential(-gelu_factor * (x + gelu_cubic * x * x * x)));
}

MU_INLINE float gelu_slope(float x)
{
	const float e = exponential(-gelu_factor * (x + gelu_cubic * x * x * x)), s = 1 / (1 + e);

	return s + x * s * (s * e) * gelu_factor * (1 + 3 * gelu_cubic * x * x);
}

MU_LOOP static void gelu(const float *restrict x, float *restrict y, size_t n)
{
	for (size_t i = 0; i < n; i++)
		y[i] = gelu_of(x[i]);
}

MU_LOOP static void gelu_in_place(float *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		x[i] = gelu_of(x[i]);
}

MU_LOOP static void gelu_back(const float *restrict x, const float *restrict dy, float *restrict dx,
			      size_t n)
{
	for (size_t i = 0; i < n; i++)
		dx[i] = dy[i] * gelu_slope(x[i]);
}

MU_LOOP static void gelu_back_in_place(const float *restrict x, float *restrict g, size_t n)
{
	for (size_t i = 0; i < n; i++)
		g[i] = g[i] * gelu_slope(x[i]);
}

enum { LANES = 16 };

/* In lanes, as the sums below: so results do not depend on the width of vectors. */
MU_INLINE float largest_of(const float *x, size_t n)
{
	float lanes[LANES], largest = x[0];
	size_t i = 0;

	for (size_t k = 0; k < LANES; k++)
		lanes[k] = x[0];
	for (; i + LANES <= n; i += LANES)
		for (size_t k = 0; k < LANES; k++)
			lanes[k] = x[i + k] > lanes[k] ? x[i + k] : lanes[k];
	for (; i < n; i++)
		largest = x[i] > largest ? x[i] : largest;
	for (size_t k = 0; k < LANES; k++)
		largest = lanes[k] > largest ? lanes[k] : largest;
	return largest;
}

/* What whole lanes leave over is taken with elements before it, which get the same bits again. */
MU_INLINE struct cpu_exponentials softmax_of(const float *x, float *p, size_t n)
{
	const float shift = largest_of(x, n);
	float lanes[LANES] = {0}, last[LANES], sum = 0;
	const bool wide = n > LANES && n % LANES != 0;
	size_t i = 0;

	for (size_t k = 0; wide && k < LANES; k++)
		last[k] = exponential(x[n - LANES + k] - shift);
	for (; i + LANES <= n; i += LANES)
		for (size_t k = 0; k < LANES; k++) {
			p[i + k] = exponential(x[i + k] - shift);
			lanes[k] += p[i + k];
		}
	for (size_t k = 0; wide && k < LANES; k++)
		p[n - LANES + k] = last[k];
	for (; i < n; i++) {
		p[i] = wide ? p[i] : exponential(x[i] - shift);
		sum += p[i];
	}
	for (size_t k = 0; k < LANES; k++)
		sum += lanes[k];
	for (i = 0; i < n; i++)
		p[i] /= sum;
	return (struct cpu_exponentials){shift, sum};
}

MU_LOOP static float dot(const float *restrict a, const float *restrict b, size_t n)
{
	float lanes[LANES] = {0}, sum = 0;
	size_t i = 0;

	for (; i + LANES <= n; i += LANES)
		for (size_t k = 0; k < LANES; k++)
			lanes[k] += a[i + k] * b[i + k];
	for (; i < n; i++)
		sum += a[i] * b[i];
	for (size_t k = 0; k < LANES; k++)
		sum += lanes[k];
	return sum;
}

MU_LOOP static struct cpu_exponentials softmax(const float *restrict x, float *restrict p, size_t n)
{
	return softmax_of(x, p, n);
}

MU_LOOP static struct cpu_exponentials softmax_in_place(float *p, size_t n)
{
	return softmax_of(p, p, n);
}

MU_LOOP static void add_all(float *restrict to, const float *restrict from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] += from[i];
}

MU_LOOP static void multiply_all(float *restrict to, const float *restrict by, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] *= by[i];
}

MU_LOOP static void sum_both(float *restrict to, const float *restrict a, const float *restrict b,
			     size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] = a[i] + b[i];
}

/*
 * Clang cannot call a function with MU_LOOP from another file, and its names for one file's clash
 * with another's of the same name.
 */

void mu_cpu_sigmoid(float *x, size_t n)
{
	sigmoid(x, n);
}

void mu_cpu_tanh(const float *x, float *y, size_t n)
{
	if (x == y)
		hyperbolic_tangent_in_place(y, n);
	else
		hyperbolic_tangent(x, y, n);
}

void mu_cpu_gelu(const float *x, float *y, size_t n)
{
	if (x == y)
		gelu_in_place(y, n);
	else
		gelu(x, y, n);
}

void mu_cpu_gelu_back(const float *x, const float *dy, float *dx, size_t n)
{
	if (dy == dx)
		gelu_back_in_place(x, dx, n);
	else
		gelu_back(x, dy, dx, n);
}

float mu_cpu_dot(const float *a, const float *b, size_t n)
{
	return dot(a, b, n);
}

struct cpu_exponentials mu_cpu_softmax(const float *x, float *p, size_t n)
{
	return x == p ? softmax_in_place(p, n) : softmax(x, p, n);
}

void mu_cpu_add(float *to, const float *from, size_t n)
{
	add_all(to, from, n);
}

void mu_cpu_multiply(float *to, const float *by, size_t n)
{
	multiply_all(to, by, n);
}

void mu_cpu_sum(float *to, const float *a, const float *b, size_t n)
{
	sum_both(to, a, b, n);
}
