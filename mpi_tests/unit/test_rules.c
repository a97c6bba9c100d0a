/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/*
 * Every rule against the formula of its paper, computed here once more, plainly, in double
 * precision and key by key; with each kind of clipping; and that padding stays zero.
 */
#include <stdlib.h>

#include <muster/optim.h>

#include "../lib/check.h"

enum { KEYS = 4, N = 160, STEPS = 6, COUNT = 4 };

static const struct mu_slice slices[KEYS] = {
	{.name = "a_weight", .at = 0, .n = 70, .n_padded = 80},
	{.name = "a_bias", .at = 80, .n = 7, .n_padded = 16},
	{.name = "b_gamma", .at = 96, .n = 20, .n_padded = 32},
	{.name = "b_weight", .at = 128, .n = 25, .n_padded = 32},
};

/* A run in double precision: mean gradients of a step, states. */
struct plain {
	const struct mu_optim_config *config;
	double w[N], g[N], a[N], b[N], c[N];
	double lr, last_lr;
	int t;
};

static double sign(double x)
{
	return (x > 0) - (x < 0);
}

static double clip(const struct plain *p, double x)
{
	double limit = p->config->clip_gradient;

	return limit > 0 ? fmax(-limit, fmin(limit, x)) : x;
}

static double norm(const double *x, size_t n)
{
	double sum = 0;

	for (size_t i = 0; i < n; i++)
		sum += x[i] * x[i];
	return sqrt(sum);
}

typedef void plain_fn(struct plain *p, const struct mu_slice *key, double wd);

#define EACH(key) for (size_t i = (key)->at; i < (key)->at + (key)->n; i++)

static void sgd(struct plain *p, const struct mu_slice *key, double wd)
{
	EACH(key)
	{
		p->a[i] = p->config->mom * p->a[i] - p->lr * (clip(p, p->g[i]) + wd * p->w[i]);
		p->w[i] += p->a[i];
	}
}

static void adam(struct plain *p, const struct mu_slice *key, double wd)
{
	const struct mu_optim_config *c = p->config;
	double inside = c->decoupled ? 0 : wd, beside = c->decoupled ? wd : 0;
	double by1 = 1 - pow(c->beta1, p->t), by2 = 1 - pow(c->beta2, p->t);

	EACH(key)
	{
		double g = clip(p, p->g[i] + inside * p->w[i]);

		p->a[i] = c->beta1 * p->a[i] + (1 - c->beta1) * g;
		p->b[i] = c->beta2 * p->b[i] + (1 - c->beta2) * g * g;
		if (c->decoupled) /* the paper's eps, beside the corrected root */
			p->w[i] -= p->lr * (p->a[i] / by1 / (sqrt(p->b[i] / by2) + c->eps) +
					    beside * p->w[i]);
		else
			p->w[i] -= p->lr * sqrt(by2) / by1 * p->a[i] / (sqrt(p->b[i]) + c->eps);
	}
}

static void adagrad(struct plain *p, const struct mu_slice *key, double wd)
{
	EACH(key)
	{
		double g = clip(p, p->g[i]);

		p->a[i] += g * g;
		p->w[i] -= p->lr * (g / sqrt(p->a[i] + p->config->eps) + wd * p->w[i]);
	}
}

static void adadelta(struct plain *p, const struct mu_slice *key, double wd)
{
	double rho = p->config->rho, eps = p->config->eps;

	EACH(key)
	{
		double g = clip(p, p->g[i]), step;

		p->a[i] = rho * p->a[i] + (1 - rho) * g * g;
		step = sqrt(p->b[i] + eps) / sqrt(p->a[i] + eps) * g;
		p->b[i] = rho * p->b[i] + (1 - rho) * step * step;
		p->w[i] = (1 - wd) * p->w[i] - step;
	}
}

static void rmsprop(struct plain *p, const struct mu_slice *key, double wd)
{
	const struct mu_optim_config *c = p->config;

	EACH(key)
	{
		double g = clip(p, p->g[i] + wd * p->w[i]), centre = 0;

		p->a[i] = c->gamma1 * p->a[i] + (1 - c->gamma1) * g * g;
		p->b[i] = c->gamma1 * p->b[i] + (1 - c->gamma1) * g;
		if (c->centered)
			centre = p->b[i] * p->b[i];
		p->c[i] = (c->centered ? c->gamma2 : 0) * p->c[i] -
			  p->lr * g / sqrt(p->a[i] - centre + c->eps);
		p->w[i] += p->c[i];
	}
}

static void ftrl(struct plain *p, const struct mu_slice *key, double wd)
{
	const struct mu_optim_config *c = p->config;

	EACH(key)
	{
		double g = clip(p, p->g[i]);
		double sigma = (sqrt(p->b[i] + g * g) - sqrt(p->b[i])) / p->lr;

		p->a[i] += g - sigma * p->w[i];
		p->b[i] += g * g;
		p->w[i] = fabs(p->a[i]) <= c->lamda1
				  ? 0
				  : (sign(p->a[i]) * c->lamda1 - p->a[i]) /
					    ((c->beta + sqrt(p->b[i])) / p->lr + wd);
	}
}

static void signum(struct plain *p, const struct mu_slice *key, double wd)
{
	const struct mu_optim_config *c = p->config;

	EACH(key)
	{
		double g = clip(p, p->g[i]);

		p->a[i] = c->mom * p->a[i] - (1 - c->mom) * (wd * p->w[i] + g);
		if (c->mom > 0)
			p->w[i] += p->lr * (sign(p->a[i]) - c->wd_lh * p->w[i]);
		else
			p->w[i] -= p->lr * (sign(g) + (wd + c->wd_lh) * p->w[i]);
	}
}

static void lars(struct plain *p, const struct mu_slice *key, double wd)
{
	const struct mu_optim_config *c = p->config;
	double w = norm(p->w + key->at, key->n), g = norm(p->g + key->at, key->n), rate = p->lr;
	double mom = p->last_lr > 0 ? c->mom * p->lr / p->last_lr : c->mom;

	if (strcmp(key->name + 1, "_weight") != 0)
		wd = 0;
	else
		rate *= c->lars_eta * w / (g + wd * w + c->eps);
	EACH(key)
	{
		p->a[i] = mom * p->a[i] - rate * (clip(p, p->g[i]) + wd * p->w[i]);
		p->w[i] += p->a[i];
	}
}

static void lamb(struct plain *p, const struct mu_slice *key, double wd)
{
	const struct mu_optim_config *c = p->config;
	double by1 = 1 - pow(c->beta1, p->t), by2 = 1 - pow(c->beta2, p->t);
	double w = norm(p->w + key->at, key->n), r;

	EACH(key)
	{
		double g = clip(p, p->g[i]);

		p->a[i] = c->beta1 * p->a[i] + (1 - c->beta1) * g;
		p->b[i] = c->beta2 * p->b[i] + (1 - c->beta2) * g * g;
		p->c[i] = p->a[i] / by1 / (sqrt(p->b[i] / by2) + c->eps) + wd * p->w[i];
	}
	r = norm(p->c + key->at, key->n);
	w = fmax(w, c->lower_bound);
	if (c->upper_bound > 0)
		w = fmin(w, c->upper_bound);
	EACH(key)
	p->w[i] -= p->lr * w / r * p->c[i];
}

static void dcasgd(struct plain *p, const struct mu_slice *key, double wd)
{
	const struct mu_optim_config *c = p->config;

	EACH(key)
	{
		double g = clip(p, p->g[i]), prior = p->t == 1 ? p->w[i] : p->b[i];

		p->a[i] = c->mom * p->a[i] -
			  p->lr * (g + wd * p->w[i] + c->lamda * g * g * (p->w[i] - prior));
		p->b[i] = p->w[i];
		p->w[i] += p->a[i];
	}
}

static const struct {
	const char *rule;
	plain_fn *plain;
	double lr;
	struct mu_optim_config settings; /* those that are not 0 replace the defaults */
} cases[] = {
	{"sgd", sgd, 0.1, {.mom = 0.8}},
	{"adam", adam, 0.01, {.beta2 = 0.99}},
	{"adam", adam, 0.01, {.decoupled = true, .eps = 1e-3}},
	{"adagrad", adagrad, 0.1, {.eps = 1e-3}},
	{"adadelta", adadelta, 0, {.rho = 0.8, .eps = 1e-3}},
	{"rmsprop", rmsprop, 0.01, {.gamma1 = 0.8}},
	{"rmsprop", rmsprop, 0.01, {.centered = true, .gamma2 = 0.7}},
	{"ftrl", ftrl, 0.1, {.lamda1 = 0.2, .beta = 0.5}},
	{"signum", signum, 0.01, {.wd_lh = 0.05}},
	{"signum", signum, 0.01, {.wd_lh = 0.05, .mom = -1}}, /* -1: none */
	{"lars", lars, 0.5, {.lars_eta = 0.1, .eps = 1e-2}},
	{"lars", lars, 0.5, {.lars_eta = 0.1, .mom = -1}},
	{"lamb", lamb, 0.02, {.eps = 1e-3}},
	{"lamb", lamb, 0.02, {.lower_bound = 4, .upper_bound = 5}},
	{"dcasgd", dcasgd, 0.1, {.lamda = 0.5}},
};

/* The rule's defaults, then what the case sets, then the clipping. */
static struct mu_optim_config config_of(size_t k, double clip_gradient, double clip_norm)
{
	const struct mu_optim_config *from = &cases[k].settings;
	struct mu_optim_config to;
	const struct mu_rule *rule = NULL;

	CHECK(mu_optim_defaults(&to, cases[k].rule) == MU_OK);
	CHECK(mu_rule_find(&rule, cases[k].rule) == MU_OK);
	for (const struct mu_setting *s = rule->settings; s->name; s++) {
		double value;

		memcpy(&value, (const char *)from + s->offset, sizeof value);
		if (s->offset && value != 0) {
			value = value < 0 ? 0 : value;
			memcpy((char *)&to + s->offset, &value, sizeof value);
		}
	}
	to.decoupled = from->decoupled;
	to.centered = from->centered;
	to.wd = 0.02;
	to.clip_gradient = clip_gradient;
	to.clip_global_norm = clip_norm;
	return to;
}

/* A step in double precision. The norm is that of the mean gradient. */
static void plain_step(struct plain *p, size_t k, const float *g)
{
	double limit = p->config->clip_global_norm, size = 0;

	for (size_t i = 0; i < N; i++)
		p->g[i] = (double)g[i] / COUNT;
	size = norm(p->g, N);
	for (size_t i = 0; limit > 0 && size > limit && i < N; i++)
		p->g[i] *= limit / size;
	p->t++;
	for (size_t s = 0; s < KEYS; s++) {
		bool decays = strstr(slices[s].name, "_weight") || strstr(slices[s].name, "_gamma");

		cases[k].plain(p, &slices[s], decays ? p->config->wd : 0);
	}
	p->last_lr = p->lr;
}

static void rule_step(struct mu_optim *o, float *w, const float *g, double lr)
{
	uint64_t *sums = calloc(mu_optim_words(o), sizeof *sums);

	mu_optim_begin(o, 0, lr, COUNT);
	for (int r = 0; r < mu_optim_rounds(o) && sums; r++) {
		memset(sums, 0, mu_optim_words(o) * sizeof *sums);
		mu_optim_measure(o, r, 0, w, g, sums);
		mu_optim_norms_set(o, r, sums);
	}
	mu_optim_block(o, 0, 0, N, w, g);
	free(sums);
}

static size_t count_dirt(const float *x)
{
	size_t dirt = 0;

	for (size_t s = 0; s < KEYS; s++)
		for (size_t i = slices[s].n; i < slices[s].n_padded; i++)
			dirt += x[slices[s].at + i] != 0;
	return dirt;
}

/* Random numbers for the elements that are no padding. */
static void draw(float *x, uint64_t sample)
{
	const struct mu_random key = {.seed = 3, .purpose = MU_RANDOM_TEST, .sample = sample};

	for (size_t s = 0; s < KEYS; s++)
		for (size_t i = slices[s].at; i < slices[s].at + slices[s].n; i++)
			x[i] = mu_random_normal(&key, i);
}

static void compare(size_t k, const struct mu_optim_config *config)
{
	const struct mu_piece piece = {0, N, 0};
	struct mu_optim *o = NULL;
	struct plain p = {.config = config};
	float w[N] = {0}, g[N] = {0};
	const char *name;
	size_t n;
	bool constant = strcmp(cases[k].rule, "ftrl") == 0;

	if (!CHECK(mu_optim_new(&o, config, slices, KEYS, &piece, 1) == MU_OK))
		return;
	draw(w, 99);
	for (size_t i = 0; i < N; i++)
		p.w[i] = (double)w[i];
	for (int t = 1; t <= STEPS; t++) {
		p.lr = constant || t < 4 ? cases[k].lr : 0.3 * cases[k].lr;
		draw(g, (uint64_t)t);
		plain_step(&p, k, g);
		rule_step(o, w, g, p.lr);
	}
	for (size_t s = 0; s < KEYS; s++)
		EACH(&slices[s])
	CHECK_NEAR(w[i], p.w[i], 3e-6);
	CHECK(count_dirt(w) == 0);
	for (int i = 0; i < MU_MAX_STATES; i++) {
		const float *state = mu_optim_state(o, i, &name, &n);

		CHECK(!state || count_dirt(state) == 0);
	}
	mu_optim_free(o);
}

/*
 * A large gradient that stays after five steps of another size: its variance goes to 0, and
 * rounding must not take it below.
 */
static void test_no_variance(float before)
{
	struct mu_optim_config config;
	const struct mu_piece piece = {0, N, 0};
	struct mu_optim *o = NULL;
	float w[N] = {0}, drawn[N] = {0}, g[N];
	size_t wrong = 0;

	CHECK(mu_optim_defaults(&config, "rmsprop") == MU_OK);
	config.centered = true;
	if (!CHECK(mu_optim_new(&o, &config, slices, KEYS, &piece, 1) == MU_OK))
		return;
	draw(drawn, 1);
	for (int t = 0; t < 300; t++) {
		for (size_t i = 0; i < N; i++)
			g[i] = drawn[i] * 1e4f * (t < 5 ? before : 1);
		rule_step(o, w, g, 1e-6);
	}
	for (size_t i = 0; i < N; i++)
		wrong += isfinite(w[i]) ? 0 : 1;
	CHECK(wrong == 0);
	mu_optim_free(o);
}

/* dcasgd told what the weights were. */
static void test_prior(void)
{
	struct mu_optim_config config;
	const struct mu_slice slice = {.name = "a_weight", .n = 32, .n_padded = 32};
	const struct mu_piece piece = {0, 32, 0};
	struct mu_optim *o = NULL;
	float w[32], g[32], prior[32];

	CHECK(mu_optim_defaults(&config, "dcasgd") == MU_OK);
	config.mom = 0;
	config.lamda = 0.5;
	config.prior = true;
	if (!CHECK(mu_optim_new(&o, &config, &slice, 1, &piece, 1) == MU_OK))
		return;
	for (int i = 0; i < 32; i++) {
		w[i] = (float)i;
		g[i] = 4;
		prior[i] = (float)(2 * i);
	}
	mu_optim_begin(o, 0, 0.25, 2);
	mu_optim_prior(o, 0, prior);
	for (size_t at = 16; at < 32; at -= 16) /* the second half first */
		mu_optim_block(o, 0, at, 16, w + at, g + at);
	/* w - 0.25 (2 + 0.5 * 4 (w - 2 w)) */
	for (int i = 0; i < 32; i++)
		CHECK(w[i] == (float)i - 0.25f * (2 - 2 * (float)i));
	mu_optim_free(o);
}

/* Every public rule brings weights nearer to where half the squared distance has its least. */
static void test_downhill(const char *name)
{
	struct mu_optim_config config;
	const struct mu_piece piece = {0, N, 0};
	struct mu_optim *o = NULL;
	float w[N] = {0}, g[N] = {0}, aim[N] = {0};
	double first = 0, last = 0;

	CHECK(mu_optim_defaults(&config, name) == MU_OK);
	if (!CHECK(mu_optim_new(&o, &config, slices, KEYS, &piece, 1) == MU_OK))
		return;
	draw(w, 1);
	draw(aim, 2);
	for (size_t i = 0; i < N; i++)
		first += (double)(w[i] - aim[i]) * (double)(w[i] - aim[i]);
	for (int t = 0; t < 100; t++) {
		for (size_t i = 0; i < N; i++)
			g[i] = COUNT * (w[i] - aim[i]);
		rule_step(o, w, g, 0.02);
	}
	for (size_t i = 0; i < N; i++)
		last += (double)(w[i] - aim[i]) * (double)(w[i] - aim[i]);
	if (!CHECK(last < 0.95 * first))
		fprintf(stderr, "... %s: %g to %g\n", name, first, last);
	mu_optim_free(o);
}

int main(void)
{
	/* Limits that take effect: of elements of about 0.25, of a norm of about 2.8. */
	static const double limits[][2] = {{0, 0}, {0.2, 0}, {0, 1}, {0.05, 2}};

	for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
		for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
			struct mu_optim_config config = config_of(k, limits[i][0], limits[i][1]);
			int before = check_failures();

			compare(k, &config);
			if (check_failures() > before)
				fprintf(stderr, "... case %zu, %s, clipping %g, norm %g\n", k,
					cases[k].rule, limits[i][0], limits[i][1]);
		}
	for (size_t i = 0; mu_rule_table[i]; i++)
		if (!mu_rule_table[i]->internal && strcmp(mu_rule_table[i]->name, "test") != 0)
			test_downhill(mu_rule_table[i]->name);
	for (int i = -2; i <= 7; i++)
		test_no_variance((float)i);
	test_prior();
	return check_failures() ? 1 : 0;
}
