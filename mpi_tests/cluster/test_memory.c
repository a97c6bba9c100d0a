/* SPDX-License-Identifier: Apache-2.0 */
/* @np 3 @np-full 2 3 5 */
/*
 * mu_kv_memory says before there is a store what its ranks then hold: for each kind of store, with
 * shared memory or messages. Over nodes: test_nodes.sh.
 */
#include "../lib/store_job.h"

static struct model model;
static struct mu_kv_life lives[MAX_KEYS];

struct way {
	const char *store;
	enum mu_kv_node node;
	bool lives;
	double clip;
	const char *compression;
};

static const struct way ways[] = {
	{"dist_sync", MU_KV_NODE_AUTO, .clip = 0},
	{"dist_sync", MU_KV_NODE_MPI, .clip = 0},
	{"dist_sync", MU_KV_NODE_NONE, .clip = 1},
	{"dist_sync", MU_KV_NODE_AUTO, .compression = "fp16"},
	{"dist_async", MU_KV_NODE_AUTO, .clip = 0},
	{"dist_async", MU_KV_NODE_NONE, .clip = 0},
	{"dist_sharded", MU_KV_NODE_AUTO, .clip = 0},
	{"dist_sharded", MU_KV_NODE_MPI, .clip = 1},
	{"dist_sharded", MU_KV_NODE_NONE, .clip = 0},
	{"dist_sharded", MU_KV_NODE_AUTO, .lives = true, .clip = 1},
	{"dist_sharded", MU_KV_NODE_MPI, .lives = true},
	{"dist_sharded", MU_KV_NODE_NONE, .lives = true, .clip = 1},
	{"dist_allreduce", MU_KV_NODE_AUTO, .clip = 0},
	{"dist_allreduce", MU_KV_NODE_MPI, .clip = 0},
};

enum { N_NUMBERS = sizeof(struct mu_kv_memory) / sizeof(size_t) };

static void numbers_of(const struct mu_kv_memory *m, long numbers[N_NUMBERS])
{
	const size_t all[N_NUMBERS] = {m->gradients, m->led, m->arrived, m->sums, m->copies};

	for (size_t i = 0; i < N_NUMBERS; i++)
		numbers[i] = (long)all[i];
}

/* The most that a rank holds of each kind. */
static void measure(struct job *j, long held[N_NUMBERS])
{
	struct mu_kv_layout layout;

	job_open(j, &model, j->config.type, &members);
	mu_kv_layout(j->kv, &layout);
	numbers_of(&layout.memory, held);
	must(mu_allreduce_long(held, N_NUMBERS, MPI_MAX, world));
	if (j->is_worker) {
		must(mu_kv_weights_init(j->kv));
		must(mu_kv_finish(j->kv));
	} else {
		must(mu_kv_serve(j->kv));
	}
	mu_kv_free(j->kv);
}

static void test_way(const struct way *way)
{
	struct job j = {.config = exact};
	struct mu_kv_memory said;
	long held[N_NUMBERS], numbers[N_NUMBERS];

	j.config.type = way->store;
	j.config.node_reduce = way->node;
	j.config.lives = way->lives ? lives : NULL;
	j.config.optim.clip_global_norm = way->clip;
	j.config.compression.type = way->compression;
	j.config.bucket_bytes = 30000;
	measure(&j, held);
	j.config.slices = model.slices;
	j.config.n_slices = model.n_keys;
	must(mu_kv_memory(&j.config, &said));
	numbers_of(&said, numbers);
	for (size_t i = 0; i < N_NUMBERS; i++)
		if (!CHECK(numbers[i] == held[i]))
			fprintf(stderr, "... %s, node %d, lives %d, number %zu: %ld, not %ld\n",
				way->store, (int)way->node, way->lives, i, numbers[i], held[i]);
}

static void once(void)
{
	model_odd(&model);
	for (size_t k = 0; k < model.n_keys; k++)
		lives[k].from = lives[k].to = (model.n_keys - 1 - k) / 2;
}

static void each(void)
{
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		struct mu_kv_type is;

		must(mu_kv_type_check(ways[i].store, &is));
		if (is.has_servers == (members.num_servers > 0))
			test_way(&ways[i]);
	}
}

int main(int argc, char **argv)
{
	return run_tests(argc, argv, once, each);
}
