/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adam: Kingma and Ba, Adam: a method for stochastic optimization, ICLR 2015, algorithm 1. Weight
 * decay in one of two ways.
 *
 * l2: in the order of section 2's last paragraph, with weight decay added to the gradient before
 * clipping, as MXNet 1.9 (AdamUpdateKernel):
 *
 *	c = clip(g' + wd w);  m <- beta1 m + (1 - beta1) c;  v <- beta2 v + (1 - beta2) c^2
 *	w <- w - lr_t m / (sqrt(v) + eps),  lr_t = lr sqrt(1 - beta2^t) / (1 - beta1^t)
 *
 * decoupled: Loshchilov and Hutter, Decoupled weight decay regularization, ICLR 2019, algorithm 2:
 *
 *	c = clip(g');  m, v as above
 *	w <- (1 - lr wd) w - lr m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps)
 *
 * MXNet 0.9 decays with lr_t wd in the place of lr wd, and adds eps as in l2; the difference goes
 * as beta2^t does.
 */
#include <math.h>

#include "rule.h"

/* Either wd or keep has no effect. */
static struct mu_element element(const struct mu_update *u)
{
	const struct mu_optim_config *config = u->config;
	struct mu_element e = mu_element_of(u, MU_ELEMENT_ADAM);
	double t = (double)u->t;
	double root = sqrt(1 - pow(config->beta2, t));

	e.lr = (float)((double)u->lr * root / (1 - pow(config->beta1, t)));
	e.a = (float)config->beta1;
	e.b = (float)config->beta2;
	e.eps = (float)config->eps;
	e.keep = 1;
	if (config->decoupled) {
		e.eps = (float)(config->eps * root);
		e.wd = 0;
		e.keep = 1.0f - u->lr * u->wd;
	}
	return e;
}

MU_LOOP
static void moments(const struct mu_element *u, size_t n, float *restrict w,
		    const float *restrict g, float *restrict m, float *restrict v)
{
	const struct mu_element e = *u;

	for (size_t i = 0; i < mu_lanes(n); i++)
		mu_element_adam(&e, g[i], &w[i], &m[i], &v[i]);
}

static void update(const struct mu_update *u, size_t n, float *weights, const float *gradients,
		   float *const *states)
{
	const struct mu_element e = element(u);

	moments(&e, n, weights, gradients, states[0], states[1]);
}

static const struct mu_setting settings[] = {
	MU_SETTINGS_COMMON,
	MU_SETTING("beta1", beta1, 0.9),
	MU_SETTING("beta2", beta2, 0.999),
	MU_SETTING("epsilon", eps, 1e-8),
	MU_SETTING_SHARED("adam-decay"),
	MU_SETTINGS_END,
};

const struct mu_rule mu_rule_adam = {
	.name = "adam",
	.lr = 0.001,
	.help = "Adam: first and second moments of the gradient",
	.settings = settings,
	.n_states = 2,
	.state_names = {"mean", "variance"},
	.update = update,
	.element = element,
};
