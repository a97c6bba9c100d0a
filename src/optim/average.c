/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rule of running statistics (batch-norm's moving mean and variance):
 *
 *	w <- mom w + (1 - mom) g'
 */
#include "rule.h"

struct mu_element mu_rule_average_element(const struct mu_update *u)
{
	return mu_element_of(u, MU_ELEMENT_AVERAGE);
}

MU_LOOP
static void average(const struct mu_element *u, size_t n, float *restrict w,
		    const float *restrict g)
{
	const struct mu_element e = *u;

	for (size_t i = 0; i < mu_lanes(n); i++)
		mu_element_average(&e, g[i], &w[i]);
}

void mu_rule_average(const struct mu_update *u, size_t n, float *weights, const float *gradients)
{
	const struct mu_element e = mu_rule_average_element(u);

	average(&e, n, weights, gradients);
}
