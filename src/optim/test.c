/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules without hyper-parameters.
 *
 *	test:  w <- w + g   the sum of all gradients ever pushed; exact for small integers, so lost
 *messages show none:  w <- g       the sum of this round: the store is an all-reduce
 *
 * Both take the plain sum: no division by the samples (MXNet's `test` with rescale_grad 1), no
 * decay, no clipping.
 */
#include <string.h>

#include "rule.h"

MU_LOOP
static void add_gradients(size_t n, float *restrict w, const float *restrict g)
{
	for (size_t i = 0; i < mu_lanes(n); i++)
		w[i] += g[i];
}

static void update_test(const struct mu_update *u, size_t n, float *weights, const float *gradients,
			float *const *states)
{
	(void)u;
	(void)states;
	add_gradients(n, weights, gradients);
}

static void update_none(const struct mu_update *u, size_t n, float *weights, const float *gradients,
			float *const *states)
{
	(void)u;
	(void)states;
	memcpy(weights, gradients, n * sizeof *weights);
}

const struct mu_rule mu_rule_test = {
	.name = "test",
	.help = "add the gradients to the weights",
	.update = update_test,
};

const struct mu_rule mu_rule_none = {
	.name = "none",
	.help = "replace the weights by the gradients: all-reduce",
	.update = update_none,
};
