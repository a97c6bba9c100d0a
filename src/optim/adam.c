/* SPDX-License-Identifier: Apache-2.0 */
/*
 * adam: Kingma and Ba, Adam: a method for stochastic optimization, ICLR 2015, algorithm 1 in the
 * order of section 2's last paragraph, with weight decay added to the gradient before clipping, as
 * MXNet 1.9 (AdamUpdateKernel):
 *
 *	g = clip(g' + wd w);  m <- beta1 m + (1 - beta1) g;  v <- beta2 v + (1 - beta2) g^2
 *	w <- w - lr_t m / (sqrt(v) + eps),  lr_t = lr sqrt(1 - beta2^t) / (1 - beta1^t)
 */
#include <math.h>

#include "rule.h"

MU_LOOP
static void moments(const struct mu_update *u, size_t n, float *restrict w, const float *restrict g,
		    float *const *states)
{
	const float lr = u->lr, wd = u->wd, rescale = u->rescale, limit = u->clip, eps = u->eps;
	const float beta1 = u->beta1, beta2 = u->beta2, rest1 = 1.0f - beta1, rest2 = 1.0f - beta2;
	float *restrict m = states[0];
	float *restrict v = states[1];

	for (size_t i = 0; i < mu_lanes(n); i++) {
		float d = mu_clip(rescale * g[i] + wd * w[i], limit);

		m[i] = beta1 * m[i] + rest1 * d;
		v[i] = beta2 * v[i] + rest2 * d * d;
		w[i] -= lr * m[i] / (sqrtf(v[i]) + eps);
	}
}

static void update(const struct mu_update *u, size_t n, float *weights, const float *gradients,
		   float *const *states)
{
	struct mu_update corrected = *u;
	double t = (double)u->t;

	corrected.lr = (float)(u->lr * sqrt(1 - pow(u->beta2, t)) / (1 - pow(u->beta1, t)));
	moments(&corrected, n, weights, gradients, states);
}

const struct mu_rule mu_rule_adam = {
	.name = "adam",
	.help = "Adam: first and second moments of the gradient",
	.n_states = 2,
	.state_names = {"mean", "variance"},
	.update = update,
};
