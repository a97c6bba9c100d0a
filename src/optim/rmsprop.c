/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rmsprop: Tieleman and Hinton, Neural networks for machine learning, 2012, lecture 6.5; centred:
 * Graves, Generating sequences with recurrent neural networks, arXiv 1308.0850, equations 38 to 41.
 * As MXNet 1.9 (RMSPropUpdateKernel, RMSPropAlexUpdateKernel), with c = clip(g' + wd w):
 *
 *	plain:    n <- gamma1 n + (1 - gamma1) c^2;  w <- w - lr c / sqrt(n + eps)
 *	centred:  n as above;  m <- gamma1 m + (1 - gamma1) c
 *	          d <- gamma2 d - lr c / sqrt(n - m^2 + eps);  w <- w + d
 *
 * Rounding may leave n - m^2, a variance, below 0: then 0 is taken, where MXNet makes NaN.
 */
#include "rule.h"

static struct mu_element element(const struct mu_update *u)
{
	struct mu_element e =
		mu_element_of(u, u->config->centered ? MU_ELEMENT_CENTERED : MU_ELEMENT_RMSPROP);

	e.a = (float)u->config->gamma1;
	e.b = (float)u->config->gamma2;
	e.eps = (float)u->config->eps;
	return e;
}

MU_LOOP
static void by_squares(const struct mu_update *u, size_t n, float *restrict w,
		       const float *restrict g, float *restrict squares)
{
	const struct mu_element e = element(u);

	for (size_t i = 0; i < mu_lanes(n); i++)
		mu_element_rmsprop(&e, g[i], &w[i], &squares[i]);
}

MU_LOOP
static void by_variance(const struct mu_update *u, size_t n, float *restrict w,
			const float *restrict g, float *const *states)
{
	const struct mu_element e = element(u);
	float *restrict squares = states[0];
	float *restrict mean = states[1];
	float *restrict step = states[2];

	for (size_t i = 0; i < mu_lanes(n); i++)
		mu_element_centered(&e, g[i], &w[i], &squares[i], &mean[i], &step[i]);
}

static void update(const struct mu_update *u, size_t n, float *weights, const float *gradients,
		   float *const *states)
{
	if (u->config->centered)
		by_variance(u, n, weights, gradients, states);
	else
		by_squares(u, n, weights, gradients, states[0]);
}

static int count_states(const struct mu_optim_config *config)
{
	return config->centered ? 3 : 1;
}

static const struct mu_setting settings[] = {
	MU_SETTINGS_COMMON,
	MU_SETTING("gamma1", gamma1, 0.9),
	MU_SETTING("gamma2", gamma2, 0.9),
	MU_SETTING("epsilon", eps, 1e-8),
	MU_SETTING_SHARED("centered"),
	MU_SETTINGS_END,
};

const struct mu_rule mu_rule_rmsprop = {
	.name = "rmsprop",
	.lr = 0.001,
	.help = "rates divided by the root of a running mean of squared gradients",
	.settings = settings,
	.n_states = 3,
	.state_names = {"squares", "mean", "step"},
	.states = count_states,
	.update = update,
	.element = element,
};
