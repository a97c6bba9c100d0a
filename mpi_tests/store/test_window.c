/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 3 @np-full 1 2 3 5 */
/*
 * Memory that the ranks of a node share: everyone sees everyone's, zeroed at first; more than there
 * is room for gives none on all ranks, and no error. A store says whether it uses it.
 */
#include <string.h>

#include "../lib/check.h"
#include "../lib/store_job.h"

enum { MOST = 5000 };

/* Ranks ask for different sizes, some for nothing. */
static size_t bytes_of(int node_rank)
{
	return (size_t)(node_rank * 1777 % MOST);
}

static void test_seen(void)
{
	const struct mu_members *m = &members;
	struct mu_window *w = NULL;
	size_t dirty = 0, wrong = 0;
	unsigned char *mine;

	must(mu_window_open(&w, &m->topology, bytes_of(m->topology.node_rank + 1)));
	CHECK(w != NULL);
	if (!w)
		return;
	mine = mu_window_of(w, m->topology.node_rank);
	CHECK((uintptr_t)mine % MU_ALIGN == 0);
	for (size_t i = 0; i < bytes_of(m->topology.node_rank + 1); i++)
		dirty += mine[i] != 0;
	must(mu_barrier(m->topology.node));
	memset(mine, m->topology.node_rank + 1, bytes_of(m->topology.node_rank + 1));
	must(mu_barrier(m->topology.node));
	for (int r = 0; r < m->topology.node_size; r++) {
		const unsigned char *theirs = mu_window_of(w, r);

		for (size_t i = 0; i < bytes_of(r + 1); i++)
			wrong += theirs[i] != r + 1;
	}
	CHECK(dirty == 0);
	CHECK(wrong == 0);
	must(mu_barrier(m->topology.node));
	mu_window_close(w);
}

/* One rank's wish is too large; nobody gets a window, and the next one works. */
static void test_no_room(void)
{
	const struct mu_members *m = &members;
	struct mu_window *w = NULL;

	must(mu_window_open(&w, &m->topology, m->topology.node_rank == 0 ? (size_t)1 << 50 : 64));
	CHECK(!w);
	must(mu_window_open(&w, &m->topology, 0));
	CHECK(!w);
	test_seen();
}

static void test_names(void)
{
	enum mu_kv_node node;

	must(mu_kv_node_find(&node, "none"));
	CHECK(node == MU_KV_NODE_NONE);
	CHECK(mu_kv_node_find(&node, "mpi2") == MU_ERR_USAGE);
	CHECK_HAS(mu_trace_message(), "'mpi2' is not known: auto, shm, mpi, none and nccl are");
	mu_trace_clear();
}

static void sharing_worker(struct job *j, const struct model *m)
{
	struct mu_kv_layout layout;

	(void)m;
	mu_kv_layout(j->kv, &layout);
	CHECK(layout.shares_memory ==
	      (j->config.node_reduce < MU_KV_NODE_MPI && members.topology.node_size > 1));
	CHECK(layout.sums_on_node ==
	      (j->config.node_reduce != MU_KV_NODE_NONE && members.num_servers == 0 &&
	       members.topology.num_nodes > 1 && members.topology.node_num_workers > 1));
	must(mu_kv_weights_init(j->kv));
	must(mu_kv_finish(j->kv));
}

static struct model odd;

static void once(void)
{
	model_odd(&odd);
	test_names();
}

static void each(void)
{
	static const enum mu_kv_node nodes[] = {MU_KV_NODE_AUTO, MU_KV_NODE_SHM, MU_KV_NODE_NONE,
						MU_KV_NODE_MPI};
	const size_t n = members.num_servers > 0 ? 3 : 4; /* not with dist_async */

	test_seen();
	test_no_room();
	for (size_t i = 0; i < n; i++) {
		struct job j = {
			.config = {.type = members.num_servers > 0 ? "dist_async" : "dist_sharded",
				   .optim = {.name = "sgd"},
				   .schedule = {.lr = 1, .factor = 1},
				   .node_reduce = nodes[i]}};

		job_run(&j, &odd, sharing_worker);
	}
}

int main(int argc, char **argv)
{
	return run_tests(argc, argv, once, each);
}
