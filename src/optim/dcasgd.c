/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dcasgd: Zheng et al., Asynchronous stochastic gradient descent with delay compensation, ICML
 * 2017, algorithm 2 with a constant lambda, and with momentum as MXNet 1.9 (DCASGD):
 *
 *	c = clip(g');  m <- mom m - lr (c + wd w + lamda c^2 (w - p));  w <- w + m
 *
 * p: the weights at which the gradient was computed, if the store knows them; else, as in MXNet,
 * the weights before the last update (w itself at the first update).
 */
#include <string.h>

#include "rule.h"

MU_LOOP
static void compensate(const struct mu_update *u, size_t n, const float *restrict w,
		       const float *restrict g, const float *restrict prior, float *restrict m)
{
	const float lr = u->lr, wd = u->wd, mom = u->mom, rescale = u->rescale, limit = u->clip;
	const float lamda = (float)u->config->lamda;

	for (size_t i = 0; i < mu_lanes(n); i++) {
		float c = mu_clip(rescale * g[i], limit);

		m[i] = mom * m[i] - lr * (c + wd * w[i] + lamda * c * c * (w[i] - prior[i]));
	}
}

MU_LOOP
static void add_momentum(size_t n, float *restrict w, const float *restrict m)
{
	for (size_t i = 0; i < mu_lanes(n); i++)
		w[i] += m[i];
}

static void update(const struct mu_update *u, size_t n, float *weights, const float *gradients,
		   float *const *states)
{
	const float *prior = u->prior ? u->prior : states[1];

	if (!u->prior && u->t == 1)
		memcpy(states[1], weights, n * sizeof *weights);
	compensate(u, n, weights, gradients, prior, states[0]);
	if (!u->prior)
		memcpy(states[1], weights, n * sizeof *weights);
	add_momentum(n, weights, states[0]);
}

static int count_states(const struct mu_optim_config *config)
{
	return config->prior ? 1 : 2;
}

static const struct mu_setting settings[] = {
	MU_SETTINGS_COMMON,
	MU_SETTING("mom", mom, 0.9),
	MU_SETTING("lamda", lamda, 0.04),
	MU_SETTINGS_END,
};

const struct mu_rule mu_rule_dcasgd = {
	.name = "dcasgd",
	.help = "sgd that makes up for the delay of asynchronous workers",
	.settings = settings,
	.n_states = 2,
	.state_names = {"momentum", "previous"},
	.states = count_states,
	.update = update,
};
