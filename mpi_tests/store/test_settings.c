/* SPDX-License-Identifier: Apache-2.0 */
/* @np 3 @np-full 2 3 4 */
/*
 * Ranks that ask for different things: a clear error on all of them, and no hang. And steps of a
 * model before its weights.
 */
#include "keys_job.h"

static const struct mu_slice slice = {.name = "a_weight", .n = 640, .n_padded = 640};

static struct mu_kv_config config_of(const struct mu_members *m)
{
	return (struct mu_kv_config){
		.type = m->num_servers > 0 ? "dist_sync" : "dist_allreduce",
		.members = m,
		.slices = m->role == MU_ROLE_WORKER ? &slice : NULL,
		.n_slices = m->role == MU_ROLE_WORKER,
		.optim = {.name = "sgd", .mom = 0.9},
		.schedule = {.lr = 0.1, .factor = 0.5, .n_steps = 1, .steps = {100}},
	};
}

/* The last rank's config, if it is odd there: every rank is told what differs, where and how. */
static void differs(const struct mu_kv_config *config, const char *part)
{
	struct mu_kv *kv = NULL;
	char text[256];

	const char *hole = strstr(part, "%d");

	snprintf(text, sizeof text, "%s", part);
	if (hole)
		snprintf(text, sizeof text, "%.*s%d%s", (int)(hole - part), part, size - 1,
			 hole + 2);
	fails(mu_kv_new(&kv, config), MU_ERR_ARGUMENT, text);
	CHECK(!kv);
}

static void test_settings(const struct mu_members *m)
{
	const bool odd = rank == size - 1;
	struct mu_kv_config config = config_of(m);

	config.bucket_bytes = odd ? 1000 : 2000;
	differs(&config, "bucket_bytes is 1000 on rank %d, and 2000 on rank 0");
	config = config_of(m);
	config.optim.mom = odd ? 0.5 : 0.25;
	differs(&config, "optim.mom is 0.5 on rank %d, and 0.25 on rank 0");
	config = config_of(m);
	config.optim.name = odd ? "nag" : "sgd";
	differs(&config, "optim.name is nag on rank %d, and sgd on rank 0");
	config = config_of(m);
	config.optim.wd_gamma = odd;
	differs(&config, "optim.wd_gamma is 1 on rank %d, and 0 on rank 0");
	config = config_of(m);
	config.schedule.steps[0] = odd ? 200 : 100;
	differs(&config, "schedule is kind 0, 200 on rank %d, and kind 0, 100 on rank 0");
	config = config_of(m);
	config.node_reduce = odd ? MU_KV_NODE_NONE : MU_KV_NODE_AUTO;
	differs(&config, "node_reduce is 3 on rank %d");
	config = config_of(m);
	config.progress = odd ? 1e-300 : 0;
	differs(&config, "progress is 1");
}

/* Types that differ, one of which is no type. Both are told on the rank that has it. */
static void test_types(const struct mu_members *m)
{
	const bool odd = rank == size - 1;
	struct mu_kv_config config = config_of(m);
	struct mu_kv *kv = NULL;

	config.type = odd ? "dist_syn" : config.type;
	fails(mu_kv_new(&kv, &config), odd ? MU_ERR_USAGE : MU_ERR_PEER,
	      odd ? "'dist_syn' is not known" : "reported an error");
	CHECK(!kv);
	config = config_of(m);
	if (odd)
		config.type = m->num_servers > 0 ? "dist_async" : "dist_sharded";
	differs(&config, "type is dist_");
}

/* A model without keys, and settings of a store of keys. */
static void test_keys(const struct mu_members *m)
{
	struct mu_kv_config config = config_of(m);
	struct mu_keys_config of_keys = {.type = config.type, .members = m};
	struct mu_keys *keys = NULL;
	struct mu_kv *kv = NULL;
	char part[128];

	config.slices = NULL;
	config.n_slices = 0;
	fails(mu_kv_new(&kv, &config), MU_ERR_ARGUMENT, "a model of no keys");
	CHECK(!kv);
	of_keys.n_updaters = rank == size - 1;
	snprintf(part, sizeof part, "mu_keys_new: n_updaters is 1 on rank %d, and 0 on rank 0",
		 size - 1);
	fails(mu_keys_new(&keys, &of_keys), MU_ERR_ARGUMENT, part);
	CHECK(!keys);
}

static void test_before_weights(const struct mu_members *m)
{
	struct mu_kv_config config = config_of(m);
	struct mu_kv *kv = NULL;
	char part[128];

	must(mu_kv_new(&kv, &config));
	snprintf(part, sizeof part, "mu_kv_step_begin on rank %d before mu_kv_weights_init", rank);
	if (m->role == MU_ROLE_WORKER) {
		fails(mu_kv_push_ready(kv, 0), MU_ERR_ARGUMENT, "outside a step");
		fails(mu_kv_step_begin(kv, 1), MU_ERR_ARGUMENT, part);
		must(mu_kv_weights_init(kv));
		must(mu_kv_step_begin(kv, 1));
		must(mu_kv_push_ready(kv, 0));
		snprintf(part, sizeof part, "key 0 (a_weight) is pushed twice in step 1 on rank %d",
			 rank);
		fails(mu_kv_push_ready(kv, 0), MU_ERR_ARGUMENT, part);
		snprintf(part, sizeof part, "push of key 1 on rank %d, and there are 1 keys", rank);
		fails(mu_kv_push_ready(kv, 1), MU_ERR_ARGUMENT, part);
		must(mu_kv_finish(kv));
	} else {
		must(mu_kv_serve(kv));
	}
	mu_kv_free(kv);
}

static void test_topology(void)
{
	struct mu_members m;

	fails(mu_members_init(&m, world, rank == 0 ? 0 : 1, MU_PLACEMENT_SPREAD), MU_ERR_ARGUMENT,
	      rank == 0 ? "num_servers is 0 here, and from 0 to 1" : "num_servers is 1 here");
	fails(mu_members_init(&m, world, 1, rank == 0 ? MU_PLACEMENT_SPREAD : MU_PLACEMENT_PACKED),
	      MU_ERR_ARGUMENT, "placement is ");
	fails(mu_members_init(&m, world, size, MU_PLACEMENT_SPREAD), MU_ERR_USAGE,
	      "leave no worker");
}

static void each(void)
{
	test_settings(&members);
	test_types(&members);
	test_keys(&members);
	test_before_weights(&members);
}

static void once(void)
{
	test_topology();
	must(mu_members_init(&members, world, 0, MU_PLACEMENT_SPREAD));
	each();
	mu_members_release(&members);
}

int main(int argc, char **argv)
{
	return run_tests(argc, argv, once, each);
}
