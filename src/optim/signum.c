/* SPDX-License-Identifier: Apache-2.0 */
/*
 * signum: Bernstein et al., signSGD: compressed optimisation for non-convex problems, ICML 2018,
 * algorithm 2; without momentum its algorithm 1. As MXNet 1.9 (SignumKernel, SignSGDKernel):
 *
 *	mom > 0:  m <- mom m - (1 - mom) (wd w + clip(g'));  w <- (1 - lr wd_lh) w + lr sign(m)
 *	mom = 0:  w <- (1 - lr (wd + wd_lh)) w - lr sign(g')
 *
 * wd_lh: Loshchilov and Hutter, Decoupled weight decay regularization, ICLR 2019; for all keys.
 */
#include "rule.h"

static struct mu_element element(const struct mu_update *u)
{
	struct mu_element e =
		mu_element_of(u, u->mom == 0.0f ? MU_ELEMENT_SIGN : MU_ELEMENT_SIGNUM);

	e.a = (float)u->config->wd_lh;
	return e;
}

MU_LOOP
static void by_gradient(const struct mu_update *u, size_t n, float *restrict w,
			const float *restrict g)
{
	const struct mu_element e = element(u);

	for (size_t i = 0; i < mu_lanes(n); i++)
		mu_element_sign(&e, g[i], &w[i]);
}

MU_LOOP
static void by_momentum(const struct mu_update *u, size_t n, float *restrict w,
			const float *restrict g, float *restrict m)
{
	const struct mu_element e = element(u);

	for (size_t i = 0; i < mu_lanes(n); i++)
		mu_element_signum(&e, g[i], &w[i], &m[i]);
}

static void update(const struct mu_update *u, size_t n, float *weights, const float *gradients,
		   float *const *states)
{
	if (u->mom == 0.0f)
		by_gradient(u, n, weights, gradients);
	else
		by_momentum(u, n, weights, gradients, states[0]);
}

static const struct mu_setting settings[] = {
	MU_SETTINGS_COMMON,
	MU_SETTING("mom", mom, 0.9),
	MU_SETTING("wd-lh", wd_lh, 0),
	MU_SETTINGS_END,
};

const struct mu_rule mu_rule_signum = {
	.name = "signum",
	.lr = 0.001,
	.help = "steps of equal size by the sign of the momentum",
	.settings = settings,
	.n_states = 1,
	.state_names = {"momentum"},
	.states = mu_states_of_momentum,
	.update = update,
	.element = element,
};
