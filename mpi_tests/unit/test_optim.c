/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/* Update rules against figures of MXNet 1.9.1, slices, padding and cuts. */
#include <stdlib.h>

#include <muster/optim.h>

#include "../lib/check.h"
#include "optim_table.h"

enum { LANES = 16 };

static void must(enum mu_status st)
{
	if (!CHECK(st == MU_OK)) {
		mu_trace_print(stderr, "test_optim");
		exit(1);
	}
}

/* An optimiser of one slice of n elements, which is one piece. */
static struct mu_optim *make(const struct mu_optim_config *config, const char *name, size_t n)
{
	struct mu_slice slice = {.name = name, .n = n, .n_padded = mu_pad(n)};
	struct mu_piece piece = {0, mu_pad(n), 0};
	struct mu_optim *o = NULL;

	must(mu_optim_new(&o, config, &slice, 1, &piece, 1));
	return o;
}

static void update(struct mu_optim *o, size_t n, float *w, const float *g, double lr, double count)
{
	mu_optim_begin(o, 0, lr, count);
	mu_optim_block(o, 0, 0, n, w, g);
}

static void test_trajectory(const struct optim_trajectory *t)
{
	struct mu_optim_config config;
	struct mu_optim *o;
	float w[LANES] = {0};
	float g[LANES] = {0};

	must(mu_optim_defaults(&config, t->rule));
	config.wd = t->wd;
	config.mom = t->mom;
	config.wd_lh = t->wd_lh;
	o = make(&config, "a_weight", OPTIM_N);
	memcpy(w, optim_first, sizeof optim_first);
	for (int s = 0; s < OPTIM_STEPS; s++) {
		int before = check_failures();

		memcpy(g, optim_pushed[s], sizeof optim_pushed[s]);
		update(o, LANES, w, g, t->lr, t->count);
		for (int e = 0; e < OPTIM_N; e++)
			CHECK_NEAR(w[e], t->weights[s][e], 1e-6);
		for (int e = OPTIM_N; e < LANES; e++)
			CHECK(w[e] == 0);
		if (check_failures() > before)
			fprintf(stderr, "... %s, step %d\n", t->rule, s + 1);
	}
	mu_optim_free(o);
}

/* Decay is for weights, and for gammas if asked for; clipping is of the rescaled gradient. */
static void test_decay_and_clip(void)
{
	static const struct {
		const char *name;
		bool wd_gamma;
		float expected;
	} cases[] = {
		{"a_weight", false, 0.5f}, {"a_bias", true, 1}, {"a_gamma", true, 0.5f},
		{"a_gamma", false, 1},     {"weight", true, 1},
	};
	float g[LANES];

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct mu_optim_config config = {
			.name = "sgd", .wd = 0.5, .wd_gamma = cases[i].wd_gamma};
		struct mu_optim *o = make(&config, cases[i].name, LANES);
		float w[LANES];

		for (int e = 0; e < LANES; e++) {
			w[e] = 1;
			g[e] = 0;
		}
		update(o, LANES, w, g, 1, 1);
		CHECK(w[3] == cases[i].expected);
		mu_optim_free(o);
	}
	for (int rule = 0; rule < 2; rule++) {
		struct mu_optim_config config = {.name = rule ? "nag" : "sgd", .clip_gradient = 2};
		struct mu_optim *o = make(&config, "a_weight", LANES);
		float w[LANES] = {0};

		for (int e = 0; e < LANES; e++)
			g[e] = (float)(e - 8);
		update(o, LANES, w, g, 1, 2);
		CHECK(w[0] == 2 && w[15] == -2 && w[6] == 1 && w[9] == -0.5f);
		mu_optim_free(o);
	}
}

static void test_plain_rules(void)
{
	static const struct {
		const char *name;
		float expected;
	} cases[] = {{"test", 5 + 3.0f / 64}, {"sum", 8}, {"none", 3}};

	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
		struct mu_optim_config config = {.name = cases[i].name,
						 .wd = 1,
						 .clip_gradient = 0.5,
						 .clip_global_norm = 0.1};
		struct mu_optim *o = make(&config, "a_weight", LANES);
		float w[LANES];
		float g[LANES];
		const char *name;
		size_t n;

		for (int e = 0; e < LANES; e++) {
			w[e] = (float)e;
			g[e] = 3;
		}
		CHECK(mu_optim_rounds(o) == 0);
		update(o, LANES, w, g, 0.1, 64);
		CHECK(w[5] == cases[i].expected);
		update(o, LANES, w, g, 0.1, 0); /* no samples: nothing */
		CHECK(w[5] == cases[i].expected);
		CHECK(mu_optim_state(o, 0, &name, &n) == NULL);
		mu_optim_free(o);
	}
}

/* Running statistics: w <- momentum w + (1 - momentum) g / count, whatever the rule. */
static void test_average(void)
{
	struct mu_slice slices[2] = {
		{.name = "a_weight", .n = 20, .n_padded = 32},
		{.name = "a_moving_mean",
		 .at = 32,
		 .n = 7,
		 .n_padded = 16,
		 .rule = MU_SLICE_AVERAGE,
		 .momentum = 0.75f},
	};
	struct mu_piece piece = {0, 48, 0};
	struct mu_optim_config config = {.name = "sgd", .mom = 0.5};
	struct mu_optim *o = NULL;
	float w[48], g[48];
	float *m;
	const char *name = NULL;
	size_t n = 0;

	must(mu_optim_new(&o, &config, slices, 2, &piece, 1));
	for (int i = 0; i < 48; i++) {
		w[i] = 8;
		g[i] = 16;
	}
	update(o, 48, w, g, 0.5, 4);
	CHECK(w[0] == 6 && w[31] == 6 && w[32] == 7 && w[47] == 7);
	m = mu_optim_state(o, 0, &name, &n);
	CHECK(m && n == 48 && m[0] == -2 && m[32] == 0);
	CHECK_TEXT(name, "momentum");
	CHECK(!mu_optim_state(o, 1, &name, &n));
	mu_optim_free(o);
}

enum { BIG = 4096, CUTS = 5 };

/* One update of pieces cut into blocks, the last piece first. */
static void update_pieces(struct mu_optim *o, const struct mu_piece *pieces, size_t n_pieces,
			  size_t block, float *w, const float *g)
{
	uint64_t *sums = calloc(mu_optim_words(o), sizeof *sums);

	for (size_t p = 0; p < n_pieces; p++)
		mu_optim_begin(o, p, 0.1, 3);
	for (int r = 0; r < mu_optim_rounds(o) && sums; r++) {
		memset(sums, 0, mu_optim_words(o) * sizeof *sums);
		for (size_t p = 0; p < n_pieces; p++)
			mu_optim_measure(o, r, p, w + pieces[p].local, g + pieces[p].local, sums);
		mu_optim_norms_set(o, r, sums);
	}
	for (size_t p = n_pieces; p-- > 0;)
		for (size_t at = 0; at < pieces[p].n; at += block) {
			size_t n = pieces[p].n - at < block ? pieces[p].n - at : block;

			mu_optim_block(o, p, at, n, w + pieces[p].local + at,
				       g + pieces[p].local + at);
		}
	free(sums);
}

/* Weights after some steps when the array is cut into pieces and each piece into blocks. */
static void run_cut(const struct mu_optim_config *config, const size_t *cut, float *w)
{
	struct mu_slice slices[3] = {
		{.name = "a_weight", .n = 999, .n_padded = 1008},
		{.name = "a_bias", .at = 1008, .n = 16, .n_padded = 16},
		{.name = "b_weight", .at = 1040, .n = BIG - 1040, .n_padded = BIG - 1040},
	};
	struct mu_piece pieces[BIG / 16];
	struct mu_random key = {.seed = 1, .purpose = MU_RANDOM_TEST};
	struct mu_optim *o = NULL;
	static float g[BIG];
	size_t n_pieces = 0;

	for (size_t at = 0; at < BIG; at += cut[0])
		pieces[n_pieces++] =
			(struct mu_piece){at, BIG - at < cut[0] ? BIG - at : cut[0], at};
	must(mu_optim_new(&o, config, slices, 3, pieces, n_pieces));
	for (size_t i = 0; i < BIG; i++)
		w[i] = mu_random_normal(&key, i);
	for (int step = 1; step <= 3; step++) {
		key.sample = (uint64_t)step;
		for (size_t i = 0; i < BIG; i++)
			g[i] = mu_random_normal(&key, i);
		update_pieces(o, pieces, n_pieces, cut[1], w, g);
	}
	mu_optim_free(o);
}

/* Every rule, with and without a limit of the norm. */
static void test_cuts(void)
{
	static const size_t cuts[CUTS][2] = {
		{BIG, BIG}, {BIG, 16}, {64, 64}, {1008, 48}, {272, 160}};
	static float expected[BIG], w[BIG];

	for (size_t r = 0; mu_rule_table[r]; r++) {
		for (size_t i = 0; i < 2 * CUTS; i++) {
			struct mu_optim_config config;
			size_t c = i % CUTS;

			must(mu_optim_defaults(&config, mu_rule_table[r]->name));
			config.wd = 0.001;
			config.clip_gradient = 0.4;
			config.clip_global_norm = i < CUTS ? 0 : 0.3;
			config.centered = true;
			run_cut(&config, cuts[c], c == 0 ? expected : w);
			CHECK(c == 0 || memcmp(w, expected, sizeof w) == 0);
		}
	}
}

static void test_sum(void)
{
	float a[16], b[16], c[16], out[16];
	const float *in[3] = {a, b, c};

	for (int i = 0; i < 16; i++) {
		a[i] = 1e8f;
		b[i] = -1e8f;
		c[i] = 1.5f + (float)i;
	}
	mu_optim_sum(out, in, 3, 16);
	CHECK(out[0] == 1.5f && out[15] == 16.5f);
	mu_optim_sum(out, in, 2, 16);
	CHECK(out[7] == 0);
	in[0] = c;
	in[2] = a;
	mu_optim_sum(out, in, 3, 16); /* another order, another rounding */
	CHECK(out[0] == 0);
}

/* What a rule cannot work with, and what it needs. */
static void test_config(void)
{
	struct mu_optim_config config;
	const char *names[MU_MAX_STATES];
	char text[256];

	for (size_t r = 0; mu_rule_table[r]; r++) {
		must(mu_optim_defaults(&config, mu_rule_table[r]->name));
		CHECK(mu_optim_check(&config) == MU_OK);
		CHECK(mu_optim_needs_norms(&config) == (mu_rule_table[r]->measure != NULL));
	}
	must(mu_optim_defaults(&config, "adagrad"));
	CHECK(config.eps == 1e-7 && mu_optim_states(&config, names) == 1);
	CHECK_TEXT(names[0], "history");
	config.eps = 1e-60; /* 0 as a float */
	CHECK(mu_optim_check(&config) == MU_ERR_USAGE);
	CHECK_HAS(mu_trace_message(), "adagrad: epsilon 1e-60: more than 0");
	must(mu_optim_defaults(&config, "lamb"));
	config.beta2 = 1;
	CHECK(mu_optim_check(&config) == MU_ERR_USAGE);
	config.beta2 = 0.9;
	config.lower_bound = 2;
	config.upper_bound = 1;
	CHECK(mu_optim_check(&config) == MU_ERR_USAGE);
	mu_trace_clear();
	must(mu_optim_defaults(&config, "rmsprop"));
	CHECK(mu_optim_states(&config, names) == 1);
	config.centered = true;
	CHECK(mu_optim_states(&config, names) == 3);
	must(mu_optim_defaults(&config, "sgd"));
	CHECK(config.mom == 0.9 && mu_optim_states(&config, names) == 1);
	config.mom = 0;
	CHECK(mu_optim_states(&config, names) == 0);
	config.clip_global_norm = 1;
	CHECK(mu_optim_needs_norms(&config));
	must(mu_optim_defaults(&config, "dcasgd"));
	CHECK(mu_optim_states(&config, names) == 2);
	config.prior = true;
	CHECK(mu_optim_states(&config, names) == 1);
	mu_rule_list("mom", text, sizeof text);
	CHECK_TEXT(text, "sgd, nag, signum, lars, dcasgd");
}

static void test_errors(void)
{
	const struct mu_optim_config config = {.name = "sgdd"};
	struct mu_optim_config fine = {.name = "sgd"};
	struct mu_slice slice = {.name = "a", .n = 32, .n_padded = 32};
	struct mu_piece piece = {0, 32, 0};
	struct mu_optim *o = NULL;

	CHECK(mu_optim_new(&o, &config, &slice, 1, &piece, 1) == MU_ERR_USAGE && !o);
	CHECK_HAS(mu_trace_message(), "'sgdd' is not known: sgd, nag, adam, adagrad, ftrl, signum, "
				      "adadelta, rmsprop, lars, lamb, dcasgd, test are");
	mu_trace_clear();
	piece.at = 8;
	CHECK(mu_optim_new(&o, &fine, &slice, 1, &piece, 1) == MU_ERR_ARGUMENT && !o);
	mu_trace_clear();
}

int main(void)
{
	for (const struct optim_trajectory *t = optim_trajectories; t->rule; t++)
		test_trajectory(t);
	test_decay_and_clip();
	test_plain_rules();
	test_average();
	test_cuts();
	test_sum();
	test_config();
	test_errors();
	return check_failures() ? 1 : 0;
}
