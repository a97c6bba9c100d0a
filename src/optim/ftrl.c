/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ftrl: McMahan et al., Ad click prediction: a view from the trenches, KDD 2013, algorithm 1, as
 * MXNet 1.9 (FtrlUpdateKernel), with wd instead of lambda2:
 *
 *	c = clip(g');  z <- z + c - (sqrt(n + c^2) - sqrt(n)) w / lr;  n <- n + c^2
 *	w <- 0 if |z| <= lamda1, else (sign(z) lamda1 - z) / ((beta + sqrt(n)) / lr + wd)
 *
 * The first update discards the initial weights, which are not in z: the rule is for models that
 * are linear in their weights. Weights are computed from z, to which each update adds in units of 1
 * / lr: the learning rate must be constant. With learning rate 0 an update has no effect.
 */
#include "rule.h"

static struct mu_element element(const struct mu_update *u)
{
	struct mu_element e = mu_element_of(u, u->lr > 0 ? MU_ELEMENT_FTRL : MU_ELEMENT_KEEP);

	e.a = (float)u->config->lamda1;
	e.b = (float)u->config->beta;
	return e;
}

MU_LOOP
static void follow(const struct mu_update *u, size_t count, float *restrict w,
		   const float *restrict g, float *const *states)
{
	const struct mu_element e = element(u);
	float *restrict z = states[0];
	float *restrict n = states[1];

	for (size_t i = 0; i < mu_lanes(count); i++)
		mu_element_ftrl(&e, g[i], &w[i], &z[i], &n[i]);
}

static void update(const struct mu_update *u, size_t n, float *weights, const float *gradients,
		   float *const *states)
{
	if (u->lr > 0)
		follow(u, n, weights, gradients, states);
}

static const struct mu_setting settings[] = {
	MU_SETTING_SHARED("lr"),
	MU_SETTINGS_DECAY,
	MU_SETTINGS_CLIP,
	MU_SETTING("lamda1", lamda1, 0.01),
	MU_SETTING("beta", beta, 1),
	MU_SETTINGS_END,
};

const struct mu_rule mu_rule_ftrl = {
	.name = "ftrl",
	.lr = 0.003,
	.help = "follow the regularised leader: sparse weights of linear models",
	.settings = settings,
	.n_states = 2,
	.state_names = {"sum", "squares"},
	.update = update,
	.element = element,
};
