/* SPDX-License-Identifier: Apache-2.0 */
/* The fixed sum of gradients: always in the same order, independent of arrival. */
#include "rule.h"

MU_LOOP
static void sum_two(float *restrict out, const float *restrict a, const float *restrict b, size_t n)
{
	for (size_t i = 0; i < mu_lanes(n); i++)
		out[i] = a[i] + b[i];
}

MU_LOOP
static void add(float *restrict out, const float *restrict a, size_t n)
{
	for (size_t i = 0; i < mu_lanes(n); i++)
		out[i] += a[i];
}

void mu_optim_sum(float *out, const float *const *in, size_t n_in, size_t n)
{
	sum_two(out, in[0], in[1], n);
	for (size_t i = 2; i < n_in; i++)
		add(out, in[i], n);
}
