/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 */
/* Update rules against figures of MXNet 1.9.1, schedules, slices, padding and cuts. */
#include <stdlib.h>

#include <muster/optim.h>

#include "check.h"

enum { N = 6, STEPS = 5, LANES = 16 };

/*
 * First weights and gradients, and the weights after each step with rescale_grad 0.25 and wd 0.01:
 * MXNet 1.9.1.
 */
static const float w0[N] = {1.69052565f,  -0.465937376f, 0.0328201652f,
			    0.407516271f, -0.788923025f, 0.00206557289f};
static const float pushed[STEPS][N] = {
	{-0.000890385883f, -1.75472426f, 1.017658f, 0.600498497f, -0.625428975f, -0.171548262f},
	{0.505299389f, -0.261356413f, -0.24274908f, -1.45324147f, 0.554580331f, 0.123880908f},
	{0.274459928f, -1.52652454f, 1.65069973f, 0.154335529f, -0.387139946f, 2.02907228f},
	{-0.0453860313f, -1.45067871f, -0.40522787f, -2.28831506f, 1.04939651f, -0.416474313f},
	{-0.742553532f, 1.07247019f, -1.6510756f, 0.535429358f, -2.06441474f, -0.662159324f},
};

struct trajectory {
	struct mu_optim_config config;
	double lr;
	float weights[STEPS][N];
};

static const struct trajectory trajectories[] = {
	{
		{.name = "sgd", .wd = 0.01},
		0.1,
		{
			{1.68885744f, -0.421603322f, 0.00734589435f, 0.392096281f, -0.772498369f,
			 0.00635221368f},
			{1.67453611f, -0.414647818f, 0.0134072751f, 0.428035229f, -0.785590351f,
			 0.00324883871f},
			{1.66600013f, -0.376070052f, -0.0278736278f, 0.423748791f, -0.775126278f,
			 -0.0474812165f},
			{1.66546881f, -0.339427024f, -0.0177150574f, 0.480532914f, -0.800586045f,
			 -0.0370218754f},
			{1.68236721f, -0.365899354f, 0.0235795472f, 0.466666639f, -0.748175085f,
			 -0.0204308704f},
		},
	},
	{
		{.name = "sgd", .wd = 0.01, .mom = 0.9},
		0.1,
		{
			{1.68885744f, -0.421603322f, 0.00734589435f, 0.392096281f, -0.772498369f,
			 0.00635221368f},
			{1.67303467f, -0.374747157f, -0.00951956771f, 0.414157242f, -0.77080822f,
			 0.00710681546f},
			{1.65025961f, -0.294038773f, -0.0659564584f, 0.429739565f, -0.758837759f,
			 -0.0429479592f},
			{1.62924647f, -0.184840202f, -0.106553003f, 0.500541806f, -0.773540437f,
			 -0.0775424466f},
			{1.62726927f, -0.113188416f, -0.101706445f, 0.550377548f, -0.734388947f,
			 -0.0920459628f},
		},
	},
	{
		{.name = "nag", .wd = 0.01, .mom = 0.9},
		0.1,
		{
			{1.687356f, -0.381702691f, -0.0155809484f, 0.378218323f, -0.757716179f,
			 0.01021019f},
			{1.65879953f, -0.332720667f, -0.0246157181f, 0.434062213f, -0.769340396f,
			 0.00777202938f},
			{1.62982118f, -0.221758515f, -0.116577037f, 0.443763286f, -0.748145759f,
			 -0.0880195275f},
			{1.61049163f, -0.0873001218f, -0.142679319f, 0.564201415f, -0.78691566f,
			 -0.108543456f},
			{1.62576771f, -0.0500127971f, -0.0966756046f, 0.594905615f, -0.699284256f,
			 -0.104789451f},
		},
	},
	{
		{.name = "adam", .wd = 0.01, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
		0.01,
		{
			{1.68052578f, -0.455937326f, 0.0228201114f, 0.397516221f, -0.778922975f,
			 0.0120655652f},
			{1.67235899f, -0.448159069f, 0.0180199444f, 0.401713848f, -0.778321624f,
			 0.0131182782f},
			{1.66367149f, -0.439434439f, 0.0106378021f, 0.404247254f, -0.775056243f,
			 0.00684895413f},
			{1.65637505f, -0.430297673f, 0.00589542277f, 0.410207152f, -0.777520776f,
			 0.0029791235f},
			{1.65591419f, -0.42501086f, 0.00628575869f, 0.414077967f, -0.774116039f,
			 0.00151626964f},
		},
	},
};

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

static void test_trajectories(void)
{
	for (size_t i = 0; i < sizeof trajectories / sizeof *trajectories; i++) {
		const struct trajectory *t = &trajectories[i];
		struct mu_optim *o = make(&t->config, "a_weight", N);
		float w[LANES] = {0};
		float g[LANES] = {0};

		memcpy(w, w0, sizeof w0);
		for (int s = 0; s < STEPS; s++) {
			memcpy(g, pushed[s], sizeof pushed[s]);
			update(o, LANES, w, g, t->lr, 4);
			for (int e = 0; e < N; e++)
				CHECK_NEAR(w[e], t->weights[s][e], 1e-6);
			for (int e = N; e < LANES; e++)
				CHECK(w[e] == 0);
		}
		mu_optim_free(o);
	}
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
	static const char *const names[] = {"test", "none"};

	for (int i = 0; i < 2; i++) {
		struct mu_optim_config config = {.name = names[i], .wd = 1, .clip_gradient = 0.5};
		struct mu_optim *o = make(&config, "a_weight", LANES);
		float w[LANES];
		float g[LANES];
		const char *name;
		size_t n;

		for (int e = 0; e < LANES; e++) {
			w[e] = (float)e;
			g[e] = 3;
		}
		update(o, LANES, w, g, 0.1, 64);
		CHECK(w[5] == (i ? 3 : 8));
		update(o, LANES, w, g, 0.1, 0); /* no samples: nothing */
		CHECK(w[5] == (i ? 3 : 8));
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

/* Weights after some steps when the array is cut into pieces and each piece into blocks. */
static void run_cut(const char *rule, size_t piece_n, size_t block, float *w)
{
	const struct mu_optim_config config = {rule, 0.9, 0.001, 0.9, 0.999, 1e-8, 0.4, true};
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

	for (size_t at = 0; at < BIG; at += piece_n)
		pieces[n_pieces++] =
			(struct mu_piece){at, BIG - at < piece_n ? BIG - at : piece_n, at};
	must(mu_optim_new(&o, &config, slices, 3, pieces, n_pieces));
	for (size_t i = 0; i < BIG; i++)
		w[i] = mu_random_normal(&key, i);
	for (int step = 1; step <= 3; step++) {
		key.sample = (uint64_t)step;
		for (size_t i = 0; i < BIG; i++)
			g[i] = mu_random_normal(&key, i);
		for (size_t p = n_pieces; p-- > 0;) {
			mu_optim_begin(o, p, 0.1, 3);
			for (size_t at = 0; at < pieces[p].n; at += block)
				mu_optim_block(o, p, at,
					       pieces[p].n - at < block ? pieces[p].n - at : block,
					       w + pieces[p].at + at, g + pieces[p].at + at);
		}
	}
	mu_optim_free(o);
}

static void test_cuts(void)
{
	static const size_t cuts[CUTS][2] = {
		{BIG, BIG}, {BIG, 16}, {64, 64}, {1008, 48}, {272, 160}};
	static float expected[BIG], w[BIG];

	for (size_t r = 0; mu_rule_table[r]; r++) {
		for (size_t c = 0; c < CUTS; c++) {
			run_cut(mu_rule_table[r]->name, cuts[c][0], cuts[c][1],
				c == 0 ? expected : w);
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

/* MXNet 1.9: MultiFactorScheduler(step=[4, 7], factor=0.1, base_lr=0.05), updates 1 to 10. */
static void test_schedule(void)
{
	static const double expected[10] = {0.05,  0.05,  0.05,   0.05,   0.005,
					    0.005, 0.005, 0.0005, 0.0005, 0.0005};
	struct mu_schedule s = {.lr = 0.05, .factor = 0.1};

	must(mu_schedule_parse(&s, "4,7", 100));
	CHECK(s.n_steps == 2);
	for (int i = 0; i < 10; i++)
		CHECK_NEAR(mu_schedule_lr(&s, 100.0 * i), expected[i], 1e-12);
	s.factor = 1;
	CHECK(mu_schedule_lr(&s, 1e9) == 0.05);
	must(mu_schedule_parse(&s, "", 100));
	CHECK(s.n_steps == 0);
	must(mu_schedule_parse(&s, NULL, 100));
	must(mu_schedule_parse(&s, "0.5", 100));
	CHECK(s.n_steps == 1 && s.steps[0] == 50);
}

static void test_errors(void)
{
	static const char *const bad[] = {"a",  "1,",  ",1",  "2,1", "1,1", "0",
					  "-1", "1;2", "nan", "1,x", "1 2"};
	struct mu_schedule s = {.lr = 1};
	const struct mu_optim_config config = {.name = "sgdd"};
	struct mu_optim_config fine = {.name = "sgd"};
	struct mu_slice slice = {.name = "a", .n = 32, .n_padded = 32};
	struct mu_piece piece = {0, 32, 0};
	struct mu_optim *o = NULL;

	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		CHECK(mu_schedule_parse(&s, bad[i], 10) == MU_ERR_USAGE);
		mu_trace_clear();
	}
	CHECK(mu_optim_new(&o, &config, &slice, 1, &piece, 1) == MU_ERR_USAGE && !o);
	CHECK_HAS(mu_trace_message(), "'sgdd' is not known: sgd, nag, adam, test, none are");
	mu_trace_clear();
	piece.at = 8;
	CHECK(mu_optim_new(&o, &fine, &slice, 1, &piece, 1) == MU_ERR_ARGUMENT && !o);
	mu_trace_clear();
}

int main(void)
{
	test_trajectories();
	test_decay_and_clip();
	test_plain_rules();
	test_average();
	test_cuts();
	test_sum();
	test_schedule();
	test_errors();
	return check_failures() ? 1 : 0;
}
