/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adadelta: Zeiler, ADADELTA: an adaptive learning rate method, arXiv 1212.5701, algorithm 1. There
 * is no learning rate. As MXNet 1.9 (AdaDelta.update), whose weight decay has none either:
 *
 *	c = clip(g');  a <- rho a + (1 - rho) c^2;  d = sqrt(b + eps) / sqrt(a + eps) c
 *	b <- rho b + (1 - rho) d^2;  w <- w - d - wd w
 */
#include "rule.h"

static struct mu_element element(const struct mu_update *u)
{
	struct mu_element e = mu_element_of(u, MU_ELEMENT_ADADELTA);

	e.a = (float)u->config->rho;
	e.eps = (float)u->config->eps;
	return e;
}

MU_LOOP
static void adadelta(const struct mu_update *u, size_t n, float *restrict w,
		     const float *restrict g, float *const *states)
{
	const struct mu_element e = element(u);
	float *restrict a = states[0];
	float *restrict b = states[1];

	for (size_t i = 0; i < mu_lanes(n); i++)
		mu_element_adadelta(&e, g[i], &w[i], &a[i], &b[i]);
}

static void update(const struct mu_update *u, size_t n, float *weights, const float *gradients,
		   float *const *states)
{
	adadelta(u, n, weights, gradients, states);
}

static const struct mu_setting settings[] = {
	MU_SETTINGS_DECAY,
	MU_SETTINGS_CLIP,
	MU_SETTING("rho", rho, 0.9),
	MU_SETTING("epsilon", eps, 1e-5),
	MU_SETTINGS_END,
};

const struct mu_rule mu_rule_adadelta = {
	.name = "adadelta",
	.help = "steps in the size of earlier steps, without a learning rate",
	.settings = settings,
	.n_states = 2,
	.state_names = {"squares", "steps"},
	.update = update,
	.element = element,
};
