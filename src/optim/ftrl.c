/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ftrl: McMahan et al., Ad click prediction: a view from the trenches, KDD 2013, algorithm 1, as
 * MXNet 1.9 (FtrlUpdateKernel), with wd in the place of lambda2:
 *
 *	c = clip(g');  z <- z + c - (sqrt(n + c^2) - sqrt(n)) w / lr;  n <- n + c^2
 *	w <- 0 if |z| <= lamda1, else (sign(z) lamda1 - z) / ((beta + sqrt(n)) / lr + wd)
 *
 * The first update forgets the first weights, which z knows nothing of: this is for models that are
 * linear in their weights. Weights follow from z, to which each update adds in units of 1 / lr: the
 * learning rate has to be constant. It may not be 0: such an update does nothing.
 */
#include <math.h>

#include "rule.h"

MU_LOOP
static void follow(const struct mu_update *u, size_t count, float *restrict w,
		   const float *restrict g, float *const *states)
{
	const float wd = u->wd, rescale = u->rescale, limit = u->clip, per_rate = 1.0f / u->lr;
	const float lamda1 = (float)u->config->lamda1, beta = (float)u->config->beta;
	float *restrict z = states[0];
	float *restrict n = states[1];

	for (size_t i = 0; i < mu_lanes(count); i++) {
		float c = mu_clip(rescale * g[i], limit);
		float more = n[i] + c * c;
		float next;

		z[i] += c - (sqrtf(more) - sqrtf(n[i])) * w[i] * per_rate;
		n[i] = more;
		next = (mu_sign(z[i]) * lamda1 - z[i]) / ((beta + sqrtf(more)) * per_rate + wd);
		w[i] = fabsf(z[i]) > lamda1 ? next : 0.0f;
	}
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
	.help = "follow the regularised leader: sparse weights of linear models",
	.settings = settings,
	.n_states = 2,
	.state_names = {"sum", "squares"},
	.update = update,
};
