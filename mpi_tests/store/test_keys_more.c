/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 3 @np-full 1 2 3 4 5 */
/*
 * The store of keys: how the keys of a model lie on servers, multipliers of single keys, and a
 * store that is opened without a topology.
 */
#include "keys_job.h"

static void run(const char *type, const struct mu_members *m, void (*worker)(struct mu_keys *))
{
	const struct mu_keys_config config = {.type = type, .members = m};
	struct mu_keys *keys = NULL;

	must(mu_keys_new(&keys, &config));
	if (m->role == MU_ROLE_SERVER) {
		must(mu_keys_serve(keys));
	} else {
		worker(keys);
		must(mu_keys_finish(keys));
	}
	mu_keys_free(keys);
}

/* ---- placement ---- */

/* LeNet: one key has 0.93 of the elements. */
static void lenet(struct mu_keys *keys)
{
	static const size_t sizes[] = {500, 20, 25000, 50, 400000, 500, 5000, 10};
	enum { KEYS = sizeof sizes / sizeof *sizes };
	static float data[400000];
	struct mu_array arrays[KEYS];
	struct mu_kv_item items[KEYS];
	struct mu_keys_layout layout;

	for (size_t k = 0; k < KEYS; k++) {
		arrays[k] = floats(data, sizes[k]);
		items[k] = item_of((int)k, &arrays[k]);
	}
	must(mu_keys_init(keys, KEYS, items));
	mu_keys_layout(keys, &layout);
	CHECK(layout.bytes_per_owner_max - layout.bytes_per_owner_min <= 65536);
	CHECK((double)layout.bytes_per_owner_max * mu_keys_num_servers(keys) <
	      1.1 * (double)layout.bytes);
}

/* ---- multipliers ---- */

/*
 * Plain sgd of a key that is cut and of one that is not: w <- w - lr * lr_mult * (g + wd * wd_mult
 * * w), with numbers that floats hold exactly.
 */
static void multiply(struct mu_keys *keys)
{
	enum { LARGE = 20000, SMALL = 3, KEYS = 3 };
	static float data[KEYS][LARGE];
	const size_t sizes[KEYS] = {LARGE, SMALL, SMALL};
	const double factors[KEYS][2] = {{0.5, 0}, {1, 1}, {2, 0.5}};
	const struct mu_kv_optimizer sgd = {.optim = {.name = "sgd", .wd = 0.5, .mom = 0.5},
					    .schedule = {.lr = 0.25},
					    .rescale = 1.0 / mu_keys_num_workers(keys)};
	const struct mu_kv_multiplier list[] = {{.key = 0, .lr = 0.5, .wd = 0},
						{.key = 2, .lr = 2, .wd = 0.5}};
	const struct mu_kv_multiplier unknown = {.key = 9, .lr = 1, .wd = 1};
	const struct mu_kv_multiplier negative = {.key = 1, .lr = 1, .wd = -1};
	const enum mu_status wrong =
		mu_keys_rank(keys) == 0 ? MU_ERR_ARGUMENT : MU_ERR_PEER;
	float w[KEYS], m[KEYS] = {0};
	struct mu_array arrays[KEYS];
	struct mu_kv_item items[KEYS];
	size_t n_wrong = 0;

	for (size_t k = 0; k < KEYS; k++) {
		w[k] = 4;
		for (size_t i = 0; i < sizes[k]; i++)
			data[k][i] = w[k];
		arrays[k] = floats(data[k], sizes[k]);
		items[k] = item_of((int)k, &arrays[k]);
	}
	must(mu_keys_init(keys, KEYS, items));
	must(mu_keys_set_optimizer(keys, &sgd));
	for (size_t step = 0; step < 4; step++) {
		for (size_t k = 0; k < KEYS; k++) {
			/* In the first step there are no multipliers: momentum and weights stay. */
			const float lr = 0.25f * (float)(step ? factors[k][0] : 1);
			const float wd = 0.5f * (float)(step ? factors[k][1] : 1);

			m[k] = 0.5f * m[k] - lr * (8 + wd * w[k]);
			w[k] += m[k];
			for (size_t i = 0; i < sizes[k]; i++)
				data[k][i] = 8;
		}
		must(mu_keys_push(keys, KEYS, items, 0));
		if (step == 0)
			must(mu_keys_set_multipliers(keys, 2, list));
		if (step == 1) /* they stay */
			must(mu_keys_set_optimizer(keys, &sgd));
		fails(mu_keys_set_multipliers(keys, 1, &unknown), wrong, "multipliers of key 9");
		fails(mu_keys_set_multipliers(keys, 1, &negative), wrong, "not below 0");
		must(mu_keys_pull(keys, KEYS, items, 0));
		for (size_t k = 0; k < KEYS; k++) {
			for (size_t i = 0; i < sizes[k]; i++)
				n_wrong += data[k][i] != w[k];
		}
	}
	CHECK(n_wrong == 0);
}

/* ---- a store without a topology of the caller's ---- */

static void test_open(const char *type, int num_servers, int expected_servers)
{
	struct mu_keys *keys = NULL;
	float x = 2;
	struct mu_array array = floats(&x, 1);
	const struct mu_kv_item item = item_of(5, &array);

	must(mu_keys_open(&keys, world, type, num_servers));
	CHECK(mu_keys_num_servers(keys) == expected_servers);
	CHECK(mu_keys_num_workers(keys) == size - expected_servers);
	if (mu_keys_is_server(keys)) {
		must(mu_keys_serve(keys));
	} else {
		must(mu_keys_init(keys, 1, &item));
		must(mu_keys_pushpull(keys, 1, &item, 0));
		CHECK(x == (float)(2 * mu_keys_num_workers(keys)));
		must(mu_keys_finish(keys));
	}
	mu_keys_free(keys);
}

static void once(void)
{
	struct mu_keys *keys = NULL;

	fails(mu_keys_open(&keys, world, "dist", MU_SERVERS_DEFAULT), MU_ERR_USAGE,
	      "kv-store 'dist' is not known: local, ");
	fails(mu_keys_open(&keys, world, NULL, 0), MU_ERR_USAGE, "dist_sync");
	fails(mu_keys_open(&keys, world, "dist_sync", size), MU_ERR_USAGE, "no worker");
	CHECK(!keys);
	test_open("dist_sharded", MU_SERVERS_DEFAULT, 0);
	if (rank == 0)
		run("local", &alone, multiply);
	if (size == 1) {
		test_open("local", MU_SERVERS_DEFAULT, 0);
		return;
	}
	fails(mu_keys_open(&keys, world, "local", MU_SERVERS_DEFAULT), MU_ERR_USAGE, "one worker");
	fails(mu_keys_open(&keys, world, "dist_sharded", 1), MU_ERR_USAGE, "has no servers");
	CHECK(!keys);
	test_open("dist_sync", 1, 1);
	test_open("dist_sync", MU_SERVERS_DEFAULT, 1);
}

static void each(void)
{
	run("dist_sync", &members, lenet);
	run("dist_sync", &members, multiply);
}

int main(int argc, char **argv)
{
	unsetenv("MXNET_KVSTORE_BIGARRAY_BOUND");
	return run_tests(argc, argv, once, each);
}
