/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/*
 * Updates element by element (muster/update.h), as GPUs do them, against those of the optimiser:
 * every rule that is written so, keys of several rates and decays, running averages, fixed keys,
 * several pieces. And why a rule is not.
 */
#include <muster/optim.h>

#include "../lib/check.h"

enum { KEYS = 6, N = 320, PIECES = 2, STEPS = 5 };

static const struct mu_slice slices[KEYS] = {
	{.name = "a_weight", .at = 0, .n = 70, .n_padded = 80},
	{.name = "a_bias", .at = 80, .n = 7, .n_padded = 16},
	{.name = "b_weight",
	 .at = 96,
	 .n = 100,
	 .n_padded = 112,
	 .has_lr_mult = true,
	 .lr_mult = 3},
	{.name = "b_mean",
	 .at = 208,
	 .n = 30,
	 .n_padded = 32,
	 .rule = MU_SLICE_AVERAGE,
	 .momentum = 0.75f},
	{.name = "c_weight", .at = 240, .n = 32, .n_padded = 32, .fixed = true},
	{.name = "d_weight", .at = 272, .n = 48, .n_padded = 48},
};
/* A key is cut, and the second piece is stored first. */
static const struct mu_piece pieces[PIECES] = {{0, 144, 176}, {144, 176, 0}};

/* Random numbers for the elements that are no padding. */
static void draw(float *x, uint64_t sample)
{
	const struct mu_random key = {.seed = 5, .purpose = MU_RANDOM_TEST, .sample = sample};

	for (size_t s = 0; s < KEYS; s++)
		for (size_t i = slices[s].at; i < slices[s].at + slices[s].n; i++)
			x[i] = mu_random_normal(&key, i);
}

/* What a GPU does with a piece, whose states and classes lie as the optimiser's. */
static void by_element(const struct mu_optim *o, size_t p, float *w, const float *g,
		       float (*states)[N])
{
	unsigned char classes[N / MU_ELEMENT_RUN];
	struct mu_element of[MU_ELEMENT_CLASSES];
	const size_t n = mu_optim_elements(o, p, of), local = pieces[p].local;
	float *const mine[] = {states[0] + local, states[1] + local, states[2] + local};

	mu_optim_classes(o, p, classes);
	for (size_t i = 0; n > 0 && i < pieces[p].n; i++)
		mu_element_update(&of[classes[i / MU_ELEMENT_RUN]], g[i], &w[i], mine, i);
}

/* Up to the rounding of products, which some processors join with sums. */
static void expect_near(float a, float b)
{
	CHECK_NEAR(a, b, 1e-6 * fmax(1, fabs((double)b)));
}

static void compare(const struct mu_optim_config *config)
{
	struct mu_optim *o = NULL;
	float w[N] = {0}, other[N], g[N] = {0}, states[MU_MAX_STATES][N] = {{0}};
	const char *name;
	char why[128];
	size_t n;

	if (!CHECK(mu_optim_new(&o, config, slices, KEYS, pieces, PIECES) == MU_OK))
		return;
	CHECK(mu_optim_is_by_element(o, why, sizeof why));
	draw(w, 99);
	memcpy(other, w, sizeof w);
	for (int t = 1; t <= STEPS; t++) {
		draw(g, (uint64_t)t);
		for (size_t p = 0; p < PIECES; p++) {
			const size_t at = pieces[p].at;

			mu_optim_begin(o, p, 0.1 / t, t == 3 ? 0 : 4); /* a step without samples */
			by_element(o, p, other + at, g + at, states);
			mu_optim_block(o, p, 0, pieces[p].n, w + at, g + at);
		}
	}
	for (size_t i = 0; i < N; i++)
		expect_near(other[i], w[i]);
	for (int s = 0; s < MU_MAX_STATES; s++) {
		const float *state = mu_optim_state(o, s, &name, &n);

		for (size_t i = 0; state && i < n; i++)
			expect_near(states[s][i], state[i]);
	}
	mu_optim_free(o);
}

static void test_rules(void)
{
	for (size_t k = 0; mu_rule_table[k]; k++)
		for (int variant = 0; variant < 4 && mu_rule_table[k]->element; variant++) {
			struct mu_optim_config config;

			CHECK(mu_optim_defaults(&config, mu_rule_table[k]->name) == MU_OK);
			config.wd = 0.02;
			config.clip_gradient = variant & 1 ? 0.2 : 0;
			config.decoupled = config.centered = variant & 2;
			if (variant & 2)
				config.mom = 0;
			compare(&config);
		}
}

static void expect_reason(const struct mu_optim_config *config, const struct mu_slice *of,
			  size_t n_slices, const char *text)
{
	const struct mu_piece all = {0, 16 * n_slices, 0};
	struct mu_optim *o = NULL;
	char why[128] = "";

	if (!CHECK(mu_optim_new(&o, config, of, n_slices, &all, 1) == MU_OK))
		return;
	CHECK(!mu_optim_is_by_element(o, why, sizeof why));
	CHECK_HAS(why, text);
	mu_optim_free(o);
}

static void test_reasons(void)
{
	struct mu_slice many[MU_ELEMENT_CLASSES + 1];
	struct mu_optim_config config;

	for (size_t k = 0; k <= MU_ELEMENT_CLASSES; k++)
		many[k] = (struct mu_slice){.name = "a_weight",
					    .at = 16 * k,
					    .n = 16,
					    .n_padded = 16,
					    .has_lr_mult = true,
					    .lr_mult = (float)(k + 1)};
	CHECK(mu_optim_defaults(&config, "sgd") == MU_OK);
	expect_reason(&config, many, MU_ELEMENT_CLASSES + 1, "65 kinds of keys");
	config.clip_global_norm = 1;
	expect_reason(&config, many, 2, "sgd with a limit of the norm needs norms");
	CHECK(mu_optim_defaults(&config, "lamb") == MU_OK);
	expect_reason(&config, many, 2, "lamb needs norms over whole keys");
	CHECK(mu_optim_defaults(&config, "dcasgd") == MU_OK);
	expect_reason(&config, many, 2, "dcasgd is not written for one element");
}

int main(void)
{
	test_rules();
	test_reasons();
	return check_failures() ? 1 : 0;
}
