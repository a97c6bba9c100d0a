/* SPDX-License-Identifier: Apache-2.0 */
/* @np 2 @np-full 1 2 3 */
/*
 * Keys that are fixed, and multipliers of learning rate and weight decay, with every rule and
 * store: a fixed key keeps its bits, and each other key has those of a run where all keys have its
 * rate and its decay.
 */
#include "../lib/store_job.h"

#include <string.h>

enum { FIXED = 1, SLOW = 2, DECAYED = 3 }; /* k % 4; 0: as without */

#define LR_MULT 0.25 /* a power of two: rounding is the same with and without */

static struct model plain, mixed, all_decayed, slow;

static void make_models(void)
{
	model_odd(&plain);
	mixed = all_decayed = slow = plain;
	for (size_t k = 0; k < plain.n_keys; k++) {
		struct mu_slice *s = &mixed.slices[k];

		s->fixed = k % 4 == FIXED;
		s->has_lr_mult = k % 4 == SLOW;
		s->lr_mult = LR_MULT;
		s->has_wd_mult = k % 4 == DECAYED;
		s->wd_mult = 3;
		s->momentum = 0;
		slow.slices[k].has_lr_mult = true;
		slow.slices[k].lr_mult = LR_MULT;
		snprintf(all_decayed.names[k], sizeof all_decayed.names[k], "layer%zu_weight", k);
	}
	for (size_t k = 0; k < plain.n_keys; k++) {
		mixed.slices[k].name = mixed.names[k];
		slow.slices[k].name = slow.names[k];
		all_decayed.slices[k].name = all_decayed.names[k];
	}
}

static struct mu_kv_config config_of(const char *rule)
{
	struct mu_kv_config config = exact;

	must(mu_optim_defaults(&config.optim, rule));
	config.optim.wd = 0.01;
	return config;
}

/* The weights of train, of workers; NULL on servers. */
static float *run(const struct model *m, const struct mu_kv_config *config, const char *type,
		  const struct mu_members *who)
{
	struct job j = {.config = *config};
	float *copy = NULL;
	const int n_sum = who == &alone ? members.num_workers : 1;

	job_open(&j, m, type, who);
	if (j.is_worker) {
		const size_t nbytes = mu_kv_n(j.kv) * sizeof *copy;

		train(&j, m, n_sum);
		copy = malloc(nbytes);
		if (CHECK(copy))
			memcpy(copy, mu_kv_weights(j.kv), nbytes);
	} else {
		must(mu_kv_serve(j.kv));
	}
	mu_kv_free(j.kv);
	return copy;
}

static bool is_equal(size_t k, const float *a, const float *b)
{
	const struct mu_slice *s = &plain.slices[k];

	return memcmp(a + s->at, b + s->at, s->n * sizeof *a) == 0;
}

static void test_rule(const char *rule, const char *type)
{
	struct mu_kv_config config = config_of(rule), slower = config, decayed = config;
	const size_t n =
		plain.slices[plain.n_keys - 1].at + plain.slices[plain.n_keys - 1].n_padded;
	float *expected[4], *found, *begin = calloc(n, sizeof *begin);

	slower.schedule.lr *= LR_MULT;
	decayed.optim.wd *= 3;
	expected[0] = run(&plain, &config, "local", &alone);
	expected[SLOW] = run(&plain, &slower, "local", &alone);
	expected[DECAYED] = run(&all_decayed, &decayed, "local", &alone);
	expected[FIXED] = begin;
	fill(&plain, begin, 999, 0);
	found = run(&mixed, &config, type, &members);
	for (size_t k = 0; found && k < plain.n_keys; k++) {
		/* Its trust factor is for weights, and these are biases. */
		if (k % 4 == DECAYED && strcmp(rule, "lars") == 0)
			continue;
		if (!CHECK(is_equal(k, found, expected[k % 4])))
			fprintf(stderr, "... %s, %s, key %zu\n", type, rule, k);
		/* The three others are not the same by chance. */
		for (size_t other = 0; k % 4 == FIXED && other < 4; other++)
			CHECK(other == FIXED || !is_equal(k, found, expected[other]));
	}
	for (size_t i = 0; i < 4; i++)
		free(expected[i]);
	free(found);
}

static const char *const rules[] = {"sgd",     "nag",  "adam", "adagrad", "ftrl",
				    "rmsprop", "lars", "lamb", "dcasgd",  "signum"};

static void test_rules(const char *type)
{
	for (size_t i = 0; i < sizeof rules / sizeof *rules; i++)
		test_rule(rules[i], type);
}

/* Rates are the replica's; the average knows of none. */
static void test_local_sgd(const char *type)
{
	struct mu_kv_config config = config_of("sgd"), slower;
	float *found, *expected;

	config.local_sgd = (struct mu_kv_local_sgd){.period = 2, .block_momentum = 0.5};
	slower = config;
	slower.schedule.lr *= LR_MULT;
	found = run(&slow, &config, type, &members);
	expected = run(&plain, &slower, type, &members);
	for (size_t k = 0; found && k < plain.n_keys; k++)
		CHECK(is_equal(k, found, expected));
	free(found);
	free(expected);
	found = run(&mixed, &config, type, &members);
	expected = calloc(plain.slices[plain.n_keys - 1].at + 5000, sizeof *expected);
	fill(&plain, expected, 999, 0);
	for (size_t k = FIXED; found && k < plain.n_keys; k += 4)
		CHECK(is_equal(k, found, expected));
	free(found);
	free(expected);
}

/* What does not change comes back as exactly nothing, also where means of blocks are coded. */
static void test_compression(const char *type)
{
	struct mu_kv_config config = config_of("sgd");
	struct model large = {.name = "large"};
	float *found, *expected;

	for (int k = 0; k < 3; k++)
		model_add(&large, 16384);
	large.slices[1].fixed = true;
	config.compression = (struct mu_compression){.type = "1bit", .pull = true};
	found = run(&large, &config, type, &members);
	expected = calloc(large.slices[2].at + 16384, sizeof *expected);
	fill(&large, expected, 999, 0);
	if (found && CHECK(expected))
		for (size_t k = 0; k < 3; k++)
			CHECK((memcmp(found + 16384 * k, expected + 16384 * k,
				      16384 * sizeof *found) == 0) == (k == 1));
	free(found);
	free(expected);
}

/* The norm is that of the keys that are trained. */
static void test_norm(void)
{
	struct mu_kv_config config = config_of("sgd");
	struct model two = {.name = "two"}, one = {.name = "one"};
	float *a, *b;

	model_add(&two, 100);
	model_add(&two, 100);
	two.slices[1].fixed = true;
	model_add(&one, 100);
	config.optim.clip_global_norm = 0.5;
	a = run(&two, &config, "local", &alone);
	b = run(&one, &config, "local", &alone);
	CHECK(memcmp(a, b, 100 * sizeof *a) == 0);
	free(a);
	free(b);
}

static void once(void)
{
	make_models();
}

static void each(void)
{
	test_norm();
	if (members.num_servers > 0) {
		test_rules("dist_sync");
		test_local_sgd("dist_sync");
		test_compression("dist_sync");
		if (members.num_workers == 1 && members.num_servers == 1)
			test_rule("adam", "dist_async");
		return;
	}
	test_rules("dist_sharded");
	test_rules("dist_allreduce");
	if (members.num_workers == 1)
		test_rules("local");
	test_local_sgd("dist_sharded");
	test_local_sgd("dist_allreduce");
	test_compression("dist_sharded");
	test_compression("dist_allreduce");
}

int main(int argc, char **argv)
{
	return run_tests(argc, argv, once, each);
}
