/* SPDX-License-Identifier: Apache-2.0 */
/* Vector loops with exponentials, sums of lanes. */
#include "device/cpu/cpu.h"

#include "exponential.h"

#include <muster/base.h>

MU_LOOP static void sigmoid(float *x, size_t n)
{
	for (size_t i = 0; i < n; i++)
		x[i] = 1 / (1 + exponential(-x[i]));
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
