/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of the model in the store, and what the links between ranks allow at best. */
#include "dist.h"

/* Bytes of the weights that the servers keep for workers, on all servers. */
static size_t copies(const struct mu_kv *kv)
{
	const struct mu_topology *t = kv->topology;
	size_t n = 0;

	for (int s = 0; !kv->kind.synchronous && s < kv->n_servers; s++)
		for (int w = 0; w < t->num_workers; w++)
			if (!kv->window ||
			    t->node_of[t->worker_ranks[w]] != t->node_of[t->server_ranks[s]])
				n += mu_kv_plan_load(&kv->plan, s);
	return n * sizeof(float);
}

/* Bytes of a worker's gradients, of those that arrive on it, and of sums. */
static size_t gradients(const struct mu_kv *kv)
{
	const struct mu_kv_server *s = kv->server;
	size_t n = kv->n_gradients;

	if (s)
		n += s->n_inboxes * s->n_inbox + (s->shards.sums ? s->n : 0);
	return n * sizeof(float);
}

void mu_kv_layout(const struct mu_kv *kv, struct mu_kv_layout *layout)
{
	if (kv->keys) {
		mu_kv_keys_layout(kv, layout);
		return;
	}
	*layout = (struct mu_kv_layout){
		.n_keys = kv->n_slices,
		.n_buckets = kv->plan.n_buckets,
		.bytes = kv->plan.n * sizeof(float),
		.bytes_copies = copies(kv),
		.bytes_gradients = gradients(kv),
		.shares_memory = kv->window != NULL,
		.sums_on_node = kv->nodes.reduces[kv->topology->node_of[kv->topology->rank]],
		.bytes_pushed = mu_kv_message_bytes(kv, &kv->push_coder),
		.bytes_pulled = mu_kv_message_bytes(kv, &kv->pull_coder),
	};
	for (int s = 0; s < kv->n_servers; s++) {
		size_t nbytes = mu_kv_plan_load(&kv->plan, s) * sizeof(float);

		if (s == 0 || nbytes < layout->bytes_per_server_min)
			layout->bytes_per_server_min = nbytes;
		if (nbytes > layout->bytes_per_server_max)
			layout->bytes_per_server_max = nbytes;
	}
}

/* The bytes of the model in the direction with the larger messages. */
static double model_bytes(const struct mu_kv *kv)
{
	const size_t there = mu_kv_message_bytes(kv, &kv->push_coder);
	const size_t back = mu_kv_message_bytes(kv, &kv->pull_coder);

	return (double)(there > back ? there : back);
}

/* Ranks of a node share memory, or add up their gradients before they send. */
static bool nodes_are_one(const struct mu_kv *kv)
{
	return kv->window || kv->nodes.reduces[kv->topology->node_of[kv->topology->rank]];
}

/* Models that the busiest node sends, and receives, if its ranks send one sum, and nothing to each
 * other. */
static double node_models(const struct mu_kv *kv)
{
	const struct mu_topology *t = kv->topology;
	double most = 0, nodes = 0; /* nodes with workers */

	for (int pass = 0; pass < 2; pass++)
		for (int node = 0; node < t->num_nodes; node++) {
			double part = 0, workers = 0, load;

			for (int w = 0; w < t->num_workers; w++)
				if (t->node_of[t->worker_ranks[w]] == node)
					workers = 1;
			for (int s = 0; s < t->num_servers; s++)
				if (t->node_of[t->server_ranks[s]] == node)
					part += 1.0 / t->num_servers;
			nodes += pass == 0 ? workers : 0;
			load = workers * (1 - part) + part * (nodes - workers);
			most = pass == 1 && load > most ? load : most;
		}
	return kv->kind.hosted ? 2 * (nodes - 1) / nodes : most;
}

double mu_kv_bound(const struct mu_kv *kv, double bytes_per_second)
{
	double n = kv->topology->num_workers, k = kv->n_servers;
	double models; /* that the busiest link carries each way */

	if (kv->kind.one_worker || kv->kind.on_gpus)
		return 0;
	if (nodes_are_one(kv))
		models = node_models(kv);
	else if (kv->kind.hosted)
		models = 2 * (n - 1) / n;
	else
		models = n > k ? n / k : 1;
	return models * model_bytes(kv) / bytes_per_second;
}

double mu_kv_bound_split(const struct mu_kv *kv, double bytes_per_second)
{
	double n = kv->topology->num_workers, k = kv->topology->num_servers;

	if (kv->kind.one_worker || kv->kind.on_gpus || n < 2 ||
	    nodes_are_one(kv))
		return 0;
	return 2 * n * (n - 1) * model_bytes(kv) / ((n * n + k * n - 2 * k) * bytes_per_second);
}
