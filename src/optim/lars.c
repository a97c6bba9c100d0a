/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lars: You, Gitman, Ginsburg, Large batch training of convolutional networks, arXiv 1708.03888,
 * algorithm 1, as MXNet 1.9 (LARS): sgd with the learning rate of a key times
 *
 *	eta |w| / (|g'| + wd |w| + eps)   if |w| and |g'| are above 0, else 1
 *
 * with norms over the whole key. Biases, gammas and betas have the plain learning rate, and weights
 * alone decay. The momentum holds the learning rate, so it is scaled when that changes (Goyal et
 * al., Accurate, large minibatch SGD, 2017, remark 2): mom lr_t / lr_(t-1).
 */
#include <math.h>

#include "rule.h"

static void update(const struct mu_update *u, size_t n, float *weights, const float *gradients,
		   float *const *states)
{
	struct mu_update scaled = *u;

	scaled.lr = u->lr * u->trust;
	mu_rule_sgd.update(&scaled, n, weights, gradients, states);
}

static void measure(const struct mu_update *u, size_t n, const float *weights,
		    const float *gradients, float *const *states, uint64_t *const *sums)
{
	(void)u;
	(void)states;
	mu_norm_squares(sums[0], n, weights);
	mu_norm_squares(sums[1], n, gradients);
}

static double trust(const struct mu_update *u, const double *squares)
{
	double w = sqrt(squares[0]), g = sqrt(squares[1]) * (double)u->rescale;

	if (w == 0 || g == 0)
		return 1;
	return u->config->lars_eta * w / (g + (double)u->wd * w + u->config->eps);
}

static const struct mu_setting settings[] = {
	MU_SETTINGS_RATE,
	MU_SETTING_SHARED("wd"),
	MU_SETTINGS_CLIP,
	MU_SETTING("mom", mom, 0.9),
	MU_SETTING("lars-eta", lars_eta, 0.001),
	MU_SETTING("epsilon", eps, 0),
	MU_SETTINGS_END,
};

const struct mu_rule mu_rule_lars = {
	.name = "lars",
	.lr = 1,
	.help = "sgd with a rate for every layer, for large batches",
	.settings = settings,
	.n_states = 1,
	.state_names = {"momentum"},
	.states = mu_states_of_momentum,
	.update = update,
	.measure = measure,
	.trust = trust,
	.trusts_weights_only = true,
	.corrects_momentum = true,
};
