/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nag: Nesterov's accelerated gradient, as MXNet 1.9.1 computes it (NAGMomKernel), which keeps the
 * learning rate inside the state:
 *
 *	d = lr (clip(g') + wd w);  w <- w + mom (mom m - d) - d
 *	m <- mom m - lr (clip(g') + wd w), with the new w
 *
 * The state takes its decay from the new weights because MXNet's kernel updates in place and reads
 * them again. The textbook has the old ones; the difference is of the order lr wd.
 */
#include "rule.h"

static struct mu_element element(const struct mu_update *u)
{
	return mu_element_of(u, MU_ELEMENT_NAG);
}

MU_LOOP
static void nesterov(const struct mu_update *u, size_t n, float *restrict w,
		     const float *restrict g, float *restrict m)
{
	const struct mu_element e = element(u);

	for (size_t i = 0; i < mu_lanes(n); i++)
		mu_element_nag(&e, g[i], &w[i], &m[i]);
}

static void update(const struct mu_update *u, size_t n, float *weights, const float *gradients,
		   float *const *states)
{
	nesterov(u, n, weights, gradients, states[0]);
}

static const struct mu_setting settings[] = {
	MU_SETTINGS_COMMON,
	MU_SETTING("mom", mom, 0.9),
	MU_SETTINGS_END,
};

const struct mu_rule mu_rule_nag = {
	.name = "nag",
	.help = "Nesterov's accelerated gradient",
	.settings = settings,
	.n_states = 1,
	.state_names = {"momentum"},
	.update = update,
	.element = element,
};
