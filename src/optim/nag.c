/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nag: Nesterov's accelerated gradient, as MXNet 1.9 (NAGMomKernel), which keeps the learning rate inside the state:
 *
 *	d = lr (clip(g') + wd w)
 *	m <- mom m - d;  w <- w + mom m - d
 */
#include "rule.h"

MU_LOOP
static void nesterov(const struct mu_update *u, size_t n, float *restrict w, const float *restrict g,
		     float *restrict m)
{
	const float lr = u->lr, wd = u->wd, mom = u->mom, rescale = u->rescale, limit = u->clip;

	for (size_t i = 0; i < mu_lanes(n); i++) {
		float d = lr * (mu_clip(rescale * g[i], limit) + wd * w[i]);

		m[i] = mom * m[i] - d;
		w[i] += mom * m[i] - d;
	}
}

static void update(const struct mu_update *u, size_t n, float *weights, const float *gradients, float *const *states)
{
	nesterov(u, n, weights, gradients, states[0]);
}

const struct mu_rule mu_rule_nag = {
	.name = "nag",
	.help = "Nesterov's accelerated gradient",
	.n_states = 1,
	.state_names = {"momentum"},
	.update = update,
};
