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
#include <math.h>

#include "rule.h"

MU_LOOP
static void by_squares(const struct mu_update *u, size_t n, float *restrict w,
		       const float *restrict g, float *restrict squares)
{
	const float lr = u->lr, wd = u->wd, rescale = u->rescale, limit = u->clip;
	const float gamma1 = (float)u->config->gamma1, rest = 1.0f - gamma1;
	const float eps = (float)u->config->eps;

	for (size_t i = 0; i < mu_lanes(n); i++) {
		float c = mu_clip(rescale * g[i] + wd * w[i], limit);

		squares[i] = gamma1 * squares[i] + rest * c * c;
		w[i] -= lr * c / sqrtf(squares[i] + eps);
	}
}

MU_LOOP
static void by_variance(const struct mu_update *u, size_t n, float *restrict w,
			const float *restrict g, float *const *states)
{
	const float lr = u->lr, wd = u->wd, rescale = u->rescale, limit = u->clip;
	const float gamma1 = (float)u->config->gamma1, rest = 1.0f - gamma1;
	const float gamma2 = (float)u->config->gamma2, eps = (float)u->config->eps;
	float *restrict squares = states[0];
	float *restrict mean = states[1];
	float *restrict step = states[2];

	for (size_t i = 0; i < mu_lanes(n); i++) {
		float c = mu_clip(rescale * g[i] + wd * w[i], limit);
		float variance;

		squares[i] = gamma1 * squares[i] + rest * c * c;
		mean[i] = gamma1 * mean[i] + rest * c;
		variance = squares[i] - mean[i] * mean[i];
		step[i] = gamma2 * step[i] - lr * c / sqrtf((variance > 0 ? variance : 0) + eps);
		w[i] += step[i];
	}
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
	.help = "rates divided by the root of a running mean of squared gradients",
	.settings = settings,
	.n_states = 3,
	.state_names = {"squares", "mean", "step"},
	.states = count_states,
	.update = update,
};
