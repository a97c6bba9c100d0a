/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/* Learning-rate schedules against figures of MXNet 1.9.1, warm-up, parsing. */
#include <stdlib.h>

#include <muster/optim.h>

#include "../lib/check.h"

enum { UPDATES = 12, BATCH = 100 };

/* Rates of updates 1, 2, ... of BATCH samples each; NaN ends them. */
struct rates {
	const char *what;
	struct mu_schedule schedule;
	double expected[UPDATES];
};

static const struct rates cases[] = {
	{"MultiFactorScheduler(step=[4, 7], factor=0.1, base_lr=0.05)",
	 {.lr = 0.05, .factor = 0.1, .n_steps = 2, .steps = {400, 700}},
	 {0.05, 0.05, 0.05, 0.05, 0.005, 0.005, 0.005, 0.0005, 0.0005, 0.0005, NAN}},
	{"FactorScheduler(step=3, factor=0.5, base_lr=1)",
	 {.kind = MU_SCHEDULE_FACTOR, .lr = 1, .factor = 0.5, .step = 300, .final_lr = 1e-8},
	 {1, 1, 1, 0.5, 0.5, 0.5, 0.25, 0.25, 0.25, 0.125, NAN}},
	{"PolyScheduler(max_update=10, base_lr=0.1, pwr=2)",
	 {.kind = MU_SCHEDULE_POLY, .lr = 0.1, .length = 1000, .power = 2},
	 {0.081, 0.064, 0.049, 0.036, 0.025, 0.016, 0.009, 0.004, 0.001, 0, 0, 0}},
	{"CosineScheduler(max_update=10, base_lr=0.1)",
	 {.kind = MU_SCHEDULE_COSINE, .lr = 0.1, .length = 1000},
	 {0.09755282581475769, 0.09045084971874738, 0.07938926261462366, 0.06545084971874737, 0.05,
	  0.03454915028125263, 0.02061073738537635, 0.009549150281252633, 0.0024471741852423235, 0,
	  0, 0}},
	{"MultiFactorScheduler(step=[8], factor=0.1, base_lr=0.1, warmup_steps=5)",
	 {.lr = 0.1, .factor = 0.1, .n_steps = 1, .steps = {800}, .warmup = 500},
	 {0.02, 0.04, 0.06, 0.08, 0.1, 0.1, 0.1, 0.1, 0.01, 0.01, NAN}},
	{"CosineScheduler(max_update=8, base_lr=0.1, final_lr=0.02, warmup_steps=4, "
	 "warmup_begin_lr=0.06)",
	 {.kind = MU_SCHEDULE_COSINE,
	  .lr = 0.1,
	  .length = 800,
	  .final_lr = 0.02,
	  .warmup = 400,
	  .warmup_begin_lr = 0.06},
	 {0.07, 0.08, 0.09, 0.1, 0.08828427124746191, 0.06, 0.03171572875253810, 0.02, 0.02, NAN}},
	/* Not MXNet's, whose warm-up ends one update earlier. */
	{"constant warm-up of 3 updates, then a line down to 0.1 in 5",
	 {.kind = MU_SCHEDULE_POLY,
	  .lr = 0.6,
	  .length = 800,
	  .final_lr = 0.1,
	  .power = 1,
	  .warmup = 300,
	  .warmup_begin_lr = 0.05,
	  .warmup_constant = true},
	 {0.05, 0.05, 0.05, 0.5, 0.4, 0.3, 0.2, 0.1, 0.1, NAN}},
	{"factor stops",
	 {.kind = MU_SCHEDULE_FACTOR, .lr = 1, .factor = 0.1, .step = 100, .final_lr = 0.02},
	 {1, 0.1, 0.02, 0.02, NAN}},
	{"a factor of 1 changes nothing",
	 {.kind = MU_SCHEDULE_FACTOR, .lr = 1, .factor = 1, .step = 100},
	 {1, 1, 1, NAN}},
	{"no boundaries", {.lr = 0.3, .factor = 0.1}, {0.3, 0.3, NAN}},
};

static void must(enum mu_status st)
{
	if (!CHECK(st == MU_OK)) {
		mu_trace_print(stderr, "test_schedule");
		exit(1);
	}
}

static void test_rates(const struct rates *r)
{
	int before = check_failures();

	for (int i = 0; i < UPDATES && !isnan(r->expected[i]); i++)
		CHECK_NEAR(mu_schedule_lr(&r->schedule, BATCH * (double)i, BATCH), r->expected[i],
			   1e-12);
	if (check_failures() > before)
		fprintf(stderr, "... %s\n", r->what);
}

/* Batches of other sizes: an update that begins before a boundary has the old rate. */
static void test_samples(void)
{
	struct mu_schedule s = {.lr = 1, .factor = 0.5, .n_steps = 1, .steps = {250}};

	CHECK(mu_schedule_lr(&s, 249, 100) == 1);
	CHECK(mu_schedule_lr(&s, 250, 1) == 0.5);
	s = (struct mu_schedule){.kind = MU_SCHEDULE_POLY, .lr = 1, .length = 100, .power = 1};
	CHECK_NEAR(mu_schedule_lr(&s, 30, 20), 0.5, 1e-15);
	CHECK_NEAR(mu_schedule_lr(&s, 0, 50), 0.5, 1e-15);
	CHECK(mu_schedule_lr(&s, 90, 70) == 0); /* past the end */
}

static void test_parse(void)
{
	static const char *const bad[] = {"a",  "1,",  ",1",  "2,1", "1,1", "0",
					  "-1", "1;2", "nan", "1,x", "1 2"};
	struct mu_schedule s = {.lr = 0.05, .factor = 0.1};

	must(mu_schedule_parse(&s, "4,7", 100));
	CHECK(s.n_steps == 2 && s.steps[0] == 400 && s.steps[1] == 700);
	s.factor = 1;
	CHECK(mu_schedule_lr(&s, 1e9, 1) == 0.05);
	must(mu_schedule_parse(&s, "", 100));
	CHECK(s.n_steps == 0);
	must(mu_schedule_parse(&s, NULL, 100));
	must(mu_schedule_parse(&s, "0.5", 100));
	CHECK(s.n_steps == 1 && s.steps[0] == 50);
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		CHECK(mu_schedule_parse(&s, bad[i], 10) == MU_ERR_USAGE);
		mu_trace_clear();
	}
}

int main(void)
{
	for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
		test_rates(&cases[i]);
	test_samples();
	test_parse();
	return check_failures() ? 1 : 0;
}
