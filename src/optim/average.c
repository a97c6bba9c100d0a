/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rule of running statistics (batch-norm's moving mean and variance):
 *
 *	w <- mom w + (1 - mom) g'
 */
#include "rule.h"

MU_LOOP
static void average(const struct mu_update *u, size_t n, float *restrict w, const float *restrict g)
{
	const float mom = u->mom, fresh = (1.0f - u->mom) * u->rescale;

	for (size_t i = 0; i < mu_lanes(n); i++)
		w[i] = mom * w[i] + fresh * g[i];
}

void mu_rule_average(const struct mu_update *u, size_t n, float *weights, const float *gradients)
{
	average(u, n, weights, gradients);
}
