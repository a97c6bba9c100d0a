/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adagrad: Duchi, Hazan, Singer, Adaptive subgradient methods, JMLR 12, 2011, figure 1 (diagonal).
 * As MXNet 1.9 (AdaGrad.update), with eps inside the root and weight decay outside:
 *
 *	c = clip(g');  h <- h + c^2;  w <- w - lr (c / sqrt(h + eps) + wd w)
 */
#include "rule.h"

static struct mu_element element(const struct mu_update *u)
{
	struct mu_element e = mu_element_of(u, MU_ELEMENT_ADAGRAD);

	e.eps = (float)u->config->eps;
	return e;
}

MU_LOOP
static void adagrad(const struct mu_update *u, size_t n, float *restrict w, const float *restrict g,
		    float *restrict h)
{
	const struct mu_element e = element(u);

	for (size_t i = 0; i < mu_lanes(n); i++)
		mu_element_adagrad(&e, g[i], &w[i], &h[i]);
}

static void update(const struct mu_update *u, size_t n, float *weights, const float *gradients,
		   float *const *states)
{
	adagrad(u, n, weights, gradients, states[0]);
}

static const struct mu_setting settings[] = {
	MU_SETTINGS_COMMON,
	MU_SETTING("epsilon", eps, 1e-7),
	MU_SETTINGS_END,
};

const struct mu_rule mu_rule_adagrad = {
	.name = "adagrad",
	.lr = 0.01,
	.help = "rates divided by the root of the sum of squared gradients",
	.settings = settings,
	.n_states = 1,
	.state_names = {"history"},
	.update = update,
	.element = element,
};
