/* SPDX-License-Identifier: Apache-2.0 */
/* The workers of every node, and which nodes reduce. See nodes.h. */

#include "nodes.h"

int mu_kv_worker_node(const struct mu_kv *kv, size_t w)
{
	return kv->members->topology.node_of[mu_kv_worker_rank(kv, w)];
}

int mu_kv_server_node(const struct mu_kv *kv, int s)
{
	return kv->members->topology.node_of[mu_kv_server_rank(kv, s)];
}

static void sort_workers(struct mu_kv *kv, int n_nodes)
{
	struct mu_kv_nodes *nodes = &kv->nodes;
	size_t n = 0;

	for (int node = 0; node < n_nodes; node++) {
		nodes->first[node] = n;
		for (size_t w = 0; w < (size_t)kv->ends.n_workers; w++)
			if (mu_kv_worker_node(kv, w) == node)
				nodes->workers[n++] = w;
	}
	nodes->first[n_nodes] = n;
}

enum mu_status mu_kv_nodes_open(struct mu_kv *kv, enum mu_kv_node node)
{
	enum mu_status st = MU_OK;
	const struct mu_members *m = kv->members;
	const bool by_gpus = kv->kind.below && kv->kind.synchronous;
	const bool by_cpus = m->topology.num_nodes > 1 && node != MU_KV_NODE_NONE &&
			     !kv->kind.on_gpus && !kv->own_weights && !mu_kv_is_coded(kv);
	struct mu_kv_nodes *nodes = &kv->nodes;

	MU_TRY(MU_ALLOC(nodes->workers, (size_t)kv->ends.n_workers, "workers by node"));
	MU_TRY(MU_ALLOC(nodes->first, (size_t)m->topology.num_nodes + 1, "nodes"));
	MU_TRY(MU_ALLOC(nodes->reduces, (size_t)m->topology.num_nodes, "nodes that reduce"));
	sort_workers(kv, m->topology.num_nodes);
	for (int n = 0; n < m->topology.num_nodes; n++)
		nodes->reduces[n] =
			(by_gpus || by_cpus) && nodes->first[n + 1] - nodes->first[n] > 1;
	nodes->by_gpus = by_gpus;
out:
	return st;
}

void mu_kv_nodes_close(struct mu_kv_nodes *nodes)
{
	mu_free(nodes->workers);
	mu_free(nodes->first);
	mu_free(nodes->reduces);
}

/* Number of server ends before this one on other nodes. */
static size_t remote_before(const struct mu_kv *kv, int end, int node)
{
	size_t n = 0;

	for (int s = 0; s < end; s++)
		n += mu_kv_server_node(kv, s) != node;
	return n;
}

struct mu_kv_group mu_kv_group_of(const struct mu_kv *kv, size_t w, int s)
{
	const struct mu_kv_nodes *nodes = &kv->nodes;
	const int node = mu_kv_worker_node(kv, w);
	const size_t *at = nodes->workers + nodes->first[node];
	const bool here = mu_kv_server_node(kv, s) == node;

	if (nodes->by_gpus && kv->kind.hosted && here)
		w = (size_t)s;
	else if (nodes->reduces[node] && (nodes->by_gpus || !here))
		return (struct mu_kv_group){
			.workers = at,
			.n = nodes->first[node + 1] - nodes->first[node],
			.turn = remote_before(kv, s, node),
		};
	while (*at != w)
		at++;
	return (struct mu_kv_group){.workers = at, .n = 1};
}
