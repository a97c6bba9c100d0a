/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lamb: You et al., Large batch optimization for deep learning: training BERT in 76 minutes, ICLR
 * 2020, algorithm 2, as MXNet 1.9 (lamb_update_phase1, lamb_update_phase2):
 *
 *	c = clip(g');  m <- beta1 m + (1 - beta1) c;  v <- beta2 v + (1 - beta2) c^2
 *	r = m / (1 - beta1^t) / (sqrt(v / (1 - beta2^t)) + eps) + wd w
 *	w <- w - lr |w| / |r| r,  norms over the whole key; 1 for the quotient if one of them is 0
 *
 * |w| is first limited to [lower_bound, upper_bound], where these are above 0. measure advances
 * m and v; update computes r from them again, which needs no memory.
 */
#include <math.h>

#include "rule.h"

enum { CHUNK = 1024 };

/* Factors from the powers of beta. */
struct correction {
	float m, v;
};

static struct correction correct(const struct mu_update *u)
{
	double t = (double)u->t;

	return (struct correction){
		.m = (float)(1 / (1 - pow(u->config->beta1, t))),
		.v = (float)(1 / (1 - pow(u->config->beta2, t))),
	};
}

MU_LOOP
static void lamb_moments(const struct mu_update *u, size_t n, const float *restrict g,
			 float *restrict m, float *restrict v)
{
	const float rescale = u->rescale, limit = u->clip;
	const float beta1 = (float)u->config->beta1, rest1 = 1.0f - beta1;
	const float beta2 = (float)u->config->beta2, rest2 = 1.0f - beta2;

	for (size_t i = 0; i < mu_lanes(n); i++) {
		float c = mu_clip(rescale * g[i], limit);

		m[i] = beta1 * m[i] + rest1 * c;
		v[i] = beta2 * v[i] + rest2 * c * c;
	}
}

/* r of elements [at, at + n), which are at most CHUNK. */
MU_LOOP
static void lamb_direction(const struct mu_update *u, size_t at, size_t n, const float *weights,
			   float *const *states, float *restrict r)
{
	const struct correction by = correct(u);
	const float wd = u->wd, eps = (float)u->config->eps;
	const float *restrict w = weights + at;
	const float *restrict m = states[0] + at;
	const float *restrict v = states[1] + at;

	for (size_t i = 0; i < mu_lanes(n); i++)
		r[i] = by.m * m[i] / (sqrtf(by.v * v[i]) + eps) + wd * w[i];
}

MU_LOOP
static void lamb_step(float rate, size_t n, float *restrict w, const float *restrict r)
{
	for (size_t i = 0; i < mu_lanes(n); i++)
		w[i] -= rate * r[i];
}

static void measure(const struct mu_update *u, size_t n, const float *weights,
		    const float *gradients, float *const *states, uint64_t *const *sums)
{
	float r[CHUNK];

	lamb_moments(u, n, gradients, states[0], states[1]);
	mu_norm_squares(sums[0], n, weights);
	for (size_t at = 0; at < n; at += CHUNK) {
		size_t run = n - at < CHUNK ? n - at : CHUNK;

		lamb_direction(u, at, run, weights, states, r);
		mu_norm_squares(sums[1], run, r);
	}
}

static double trust(const struct mu_update *u, const double *squares)
{
	double w = sqrt(squares[0]), r = sqrt(squares[1]);

	if (w < u->config->lower_bound)
		w = u->config->lower_bound;
	if (u->config->upper_bound > 0 && w > u->config->upper_bound)
		w = u->config->upper_bound;
	return w == 0 || r == 0 ? 1 : w / r;
}

static void update(const struct mu_update *u, size_t n, float *weights, const float *gradients,
		   float *const *states)
{
	float r[CHUNK];

	(void)gradients;
	for (size_t at = 0; at < n; at += CHUNK) {
		size_t run = n - at < CHUNK ? n - at : CHUNK;

		lamb_direction(u, at, run, weights, states, r);
		lamb_step(u->lr * u->trust, run, weights + at, r);
	}
}

static const struct mu_setting settings[] = {
	MU_SETTINGS_COMMON,
	MU_SETTING("beta1", beta1, 0.9),
	MU_SETTING("beta2", beta2, 0.999),
	MU_SETTING("epsilon", eps, 1e-6),
	MU_SETTING("lower-bound", lower_bound, 0),
	MU_SETTING("upper-bound", upper_bound, 0),
	MU_SETTINGS_END,
};

const struct mu_rule mu_rule_lamb = {
	.name = "lamb",
	.lr = 0.001,
	.help = "adam with a rate for every layer, for large batches",
	.settings = settings,
	.n_states = 2,
	.state_names = {"mean", "variance"},
	.update = update,
	.measure = measure,
	.trust = trust,
};
