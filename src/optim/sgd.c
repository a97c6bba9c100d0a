/* SPDX-License-Identifier: Apache-2.0 */
/*
 * sgd: stochastic gradient descent, with momentum if mom is not 0. As MXNet 1.9
 * (src/operator/optimizer_op-inl.h, SGDKernel and SGDMomKernel), weight decay outside the clipping
 * and the learning rate inside the momentum:
 *
 *	mom = 0:  w <- (1 - lr wd) w - lr clip(g')
 *	mom > 0:  m <- mom m - lr wd w - lr clip(g');  w <- w + m
 */
#include "rule.h"

static struct mu_element element(const struct mu_update *u)
{
	return mu_element_of(u, u->mom == 0.0f ? MU_ELEMENT_SGD : MU_ELEMENT_MOMENTUM);
}

MU_LOOP
static void plain(const struct mu_update *u, size_t n, float *restrict w, const float *restrict g)
{
	const struct mu_element e = element(u);

	for (size_t i = 0; i < mu_lanes(n); i++)
		mu_element_sgd(&e, g[i], &w[i]);
}

MU_LOOP
static void momentum(const struct mu_update *u, size_t n, float *restrict w,
		     const float *restrict g, float *restrict m)
{
	const struct mu_element e = element(u);

	for (size_t i = 0; i < mu_lanes(n); i++)
		mu_element_momentum(&e, g[i], &w[i], &m[i]);
}

static void update(const struct mu_update *u, size_t n, float *weights, const float *gradients,
		   float *const *states)
{
	if (u->mom == 0.0f)
		plain(u, n, weights, gradients);
	else
		momentum(u, n, weights, gradients, states[0]);
}

static const struct mu_setting settings[] = {
	MU_SETTINGS_COMMON,
	MU_SETTING("mom", mom, 0.9),
	MU_SETTINGS_END,
};

int mu_states_of_momentum(const struct mu_optim_config *config)
{
	return config->mom != 0;
}

const struct mu_rule mu_rule_sgd = {
	.name = "sgd",
	.help = "stochastic gradient descent, with momentum",
	.settings = settings,
	.n_states = 1,
	.state_names = {"momentum"},
	.states = mu_states_of_momentum,
	.update = update,
	.element = element,
};
