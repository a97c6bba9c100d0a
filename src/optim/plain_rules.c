/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rules without states.
 *
 *	test:  w <- w + g'   MXNet's rule for tests
 *	sum:   w <- w + g    the sum of all gradients ever pushed; exact for small integers, so
 *	                     lost messages show
 *	none:  w <- g        the sum of this round: the store is an all-reduce
 *
 * No decay, no clipping, no learning rate. sum and none use the plain sum: they do not divide by
 * the number of samples.
 */
#include <string.h>

#include "rule.h"

static struct mu_element element_test(const struct mu_update *u)
{
	return mu_element_of(u, MU_ELEMENT_ADD);
}

static struct mu_element element_sum(const struct mu_update *u)
{
	struct mu_element e = mu_element_of(u, MU_ELEMENT_ADD);

	e.rescale = 1;
	return e;
}

static struct mu_element element_none(const struct mu_update *u)
{
	return mu_element_of(u, MU_ELEMENT_COPY);
}

MU_LOOP
static void add_scaled(const struct mu_element *u, size_t n, float *restrict w,
		       const float *restrict g)
{
	const struct mu_element e = *u;

	for (size_t i = 0; i < mu_lanes(n); i++)
		mu_element_add(&e, g[i], &w[i]);
}

static void update_test(const struct mu_update *u, size_t n, float *weights, const float *gradients,
			float *const *states)
{
	const struct mu_element e = element_test(u);

	(void)states;
	add_scaled(&e, n, weights, gradients);
}

static void update_sum(const struct mu_update *u, size_t n, float *weights, const float *gradients,
		       float *const *states)
{
	const struct mu_element e = element_sum(u);

	(void)states;
	add_scaled(&e, n, weights, gradients);
}

static void update_none(const struct mu_update *u, size_t n, float *weights, const float *gradients,
			float *const *states)
{
	(void)u;
	(void)states;
	memcpy(weights, gradients, n * sizeof *weights);
}

static const struct mu_setting no_settings[] = {MU_SETTINGS_END};

const struct mu_rule mu_rule_test = {
	.name = "test",
	.help = "add the mean gradients to the weights",
	.settings = no_settings,
	.update = update_test,
	.element = element_test,
};

const struct mu_rule mu_rule_sum = {
	.name = "sum",
	.help = "add the summed gradients to the weights",
	.internal = true,
	.settings = no_settings,
	.update = update_sum,
	.element = element_sum,
};

const struct mu_rule mu_rule_none = {
	.name = "none",
	.help = "replace the weights by the gradients: all-reduce",
	.internal = true,
	.replaces = true,
	.settings = no_settings,
	.update = update_none,
	.element = element_none,
};
