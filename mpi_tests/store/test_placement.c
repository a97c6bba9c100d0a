/* SPDX-License-Identifier: Apache-2.0 */
/* @np 3 @np-full 2 3 5 */
/*
 * Synchronous stores give the same bits wherever servers are, however many there are, however large
 * buckets are, with shared memory or messages, and whenever and in whatever order workers push and
 * pull. Over nodes: test_nodes.sh.
 */
#include <time.h>

#include "../lib/store_job.h"

struct way {
	const char *store;
	size_t bucket_bytes;
	enum mu_kv_node node;
	bool overlap; /* pauses between pushes and between pulls, orders that differ */
	bool norms;   /* a rule that updates all keys together */
};

static struct model model;

/* Up to 0.3 ms, of another length on every worker and every time. */
static void pause_a_while(const struct job *j, size_t step, size_t i)
{
	const uint64_t x = (uint64_t)j->worker * 7919 + step * 104729 + i * 1299709;
	const struct timespec t = {0, (long)(x * 2654435761u % 300000)};

	nanosleep(&t, NULL);
}

static void take_step(struct job *j, bool overlap, size_t count, size_t step)
{
	const size_t n = model.n_keys, turn = (size_t)j->worker * 5 + step;

	must(mu_kv_step_begin(j->kv, count));
	for (size_t i = 0; i < n; i++) {
		if (overlap)
			pause_a_while(j, step, i);
		must(mu_kv_push_ready(j->kv, overlap ? n - 1 - i : (i + turn) % n));
	}
	for (size_t i = 0; i < n && overlap; i++) {
		must(mu_kv_pull_end(j->kv, (i + turn) % n));
		pause_a_while(j, step, n + i);
	}
	must(mu_kv_step_end(j->kv));
}

/* all: this worker takes the place of all, whose gradients it sums. */
static uint64_t hash_after_steps(struct job *j, const struct way *way, bool all)
{
	float *w = mu_kv_weights(j->kv), *g = mu_kv_gradients(j->kv);
	const size_t n = mu_kv_n(j->kv);
	float *more = calloc(n, sizeof *more), *node = calloc(n, sizeof *node);

	if (j->worker == 0)
		fill(&model, w, 999, 0);
	must(mu_kv_weights_init(j->kv));
	for (size_t step = 1; step <= 3 && more && node; step++) {
		size_t count = 3 + (size_t)j->worker;

		if (all)
			count = fill_sum(&model, g, more, node, n, step);
		else
			fill(&model, g, step, j->worker);
		take_step(j, way->overlap, count, step);
	}
	must(mu_kv_finish(j->kv));
	free(more);
	free(node);
	return hash_floats(w, n);
}

static uint64_t hash_of(const struct way *way, const struct mu_members *m, bool all)
{
	struct job j = {.config = exact};
	uint64_t hash = 0;

	if (way->norms)
		j.config.optim = (struct mu_optim_config){
			.name = "lars", .mom = 0.9, .wd = 0.01, .lars_eta = 0.01};
	j.config.bucket_bytes = way->bucket_bytes;
	j.config.node_reduce = way->node;
	job_open(&j, &model, way->store, m);
	if (j.is_worker)
		hash = hash_after_steps(&j, way, all);
	else
		must(mu_kv_serve(j.kv));
	mu_kv_free(j.kv);
	return hash;
}

static void test_way(const struct way *way, uint64_t expected)
{
	const uint64_t hash = hash_of(way, &members, false);

	if (!CHECK(members.role == MU_ROLE_SERVER || hash == expected))
		fprintf(stderr,
			"... rank %d of %d, %d nodes: %s, %d servers, buckets of %zu, node %d, "
			"overlap %d, norms %d\n",
			rank, size, members.topology.num_nodes, way->store, members.num_servers,
			way->bucket_bytes, (int)way->node, way->overlap, way->norms);
}

static void test_store(const char *store)
{
	static const size_t buckets[] = {0, 1, 20000};
	static const enum mu_kv_node nodes[] = {MU_KV_NODE_SHM, MU_KV_NODE_MPI, MU_KV_NODE_NONE};

	for (int norms = 0; norms < 2; norms++) {
		const struct way local = {.store = "local", .norms = norms};
		const uint64_t expected = hash_of(&local, &alone, true);

		for (int i = 0; i < 18; i++) {
			const struct way way = {
				.store = store,
				.bucket_bytes = buckets[i % 3],
				.node = nodes[i / 3 % 3],
				.overlap = i / 9,
				.norms = norms,
			};

			if (way.node != MU_KV_NODE_MPI ||
			    members.topology.num_nodes > 1) /* else as NONE */
				test_way(&way, expected);
		}
	}
}

static void test_topology(int servers, enum mu_placement placement)
{
	must(mu_members_init(&members, world, servers, placement));
	if (servers == 0) {
		test_store("dist_sharded");
		test_store("dist_allreduce");
	} else {
		test_store("dist_sync");
	}
	mu_members_release(&members);
}

int main(int argc, char **argv)
{
	MPI_Comm self = MPI_COMM_NULL;
	long failed;

	must(mu_world_open(&argc, &argv, &world));
	MPI_Comm_rank(world, &rank);
	MPI_Comm_size(world, &size);
	MPI_Comm_dup(MPI_COMM_SELF, &self);
	must(mu_members_init(&alone, self, 0, MU_PLACEMENT_SPREAD));
	model.name = "keys of many sizes";
	for (size_t i = 0; i < 12; i++)
		model_add(&model, 1 + i * i * 1237 % 9001);
	test_topology(0, MU_PLACEMENT_SPREAD);
	for (int servers = 1; servers <= 3 && servers < size; servers++) {
		test_topology(servers, MU_PLACEMENT_SPREAD);
		test_topology(servers, MU_PLACEMENT_PACKED);
	}
	mu_members_release(&alone);
	MPI_Comm_free(&self);
	failed = check_failures();
	must(mu_allreduce_long(&failed, 1, MPI_SUM, world));
	return mu_world_close(&world, failed ? 1 : 0);
}
