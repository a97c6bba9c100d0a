/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 3 @np-full 1 2 3 4 5 */
/*
 * The store of keys: how the keys of a model lie on servers, multipliers of single keys, and a
 * store that is opened without a topology.
 */
#include "keys_job.h"

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

static void run(const char *type, const struct mu_topology *t, void (*worker)(struct mu_keys *))
{
	const struct mu_keys_config config = {.type = type, .topology = t};
	struct mu_keys *keys = NULL;

	must(mu_keys_new(&keys, &config));
	if (t->role == MU_ROLE_SERVER) {
		must(mu_keys_serve(keys));
	} else {
		worker(keys);
		must(mu_keys_finish(keys));
	}
	mu_keys_free(keys);
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
	run("dist_sync", &topology, lenet);
}

int main(int argc, char **argv)
{
	unsetenv("MXNET_KVSTORE_BIGARRAY_BOUND");
	return run_tests(argc, argv, once, each);
}
