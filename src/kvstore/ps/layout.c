/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of the model in the store, and what the links between ranks allow at best. */
#include "dist.h"

/* Bytes of the weights that the servers keep for workers, on all servers. */
static size_t copies(const struct mu_kv *kv)
{
	size_t n = 0;

	for (int s = 0; !kv->kind.synchronous && s < kv->ends.n_servers; s++)
		for (size_t w = 0; w < (size_t)kv->ends.n_workers; w++)
			if (!kv->arrays.window ||
			    mu_kv_worker_node(kv, w) != mu_kv_server_node(kv, s))
				n += mu_kv_plan_load(&kv->model.plan, s);
	return n * sizeof(float);
}

static struct mu_kv_memory memory_of(const struct mu_kv *kv)
{
	const struct mu_kv_server *s = kv->ends.server;
	const struct mu_kv_worker *w = kv->ends.worker;
	struct mu_kv_memory m = {.gradients = 0};

	if (kv->members->role == MU_ROLE_WORKER)
		m.gradients = kv->model.n_gradients * sizeof(float);
	if (w && w->leader.messages)
		m.led = w->leader.messages->n * sizeof(float);
	if (s) {
		m.arrived = s->from.n_inboxes * s->arrivals.n_inbox * sizeof(float);
		m.sums = s->shards.sums ? s->held.n * sizeof(float) : 0;
		m.copies = s->arrivals.outbox ? s->from.n_inboxes * s->held.n * sizeof(float) : 0;
	}
	return m;
}

void mu_kv_layout(const struct mu_kv *kv, struct mu_kv_layout *layout)
{
	*layout = (struct mu_kv_layout){
		.n_keys = kv->model.n_slices,
		.n_buckets = kv->model.plan.n_buckets,
		.bytes = kv->model.plan.n * sizeof(float),
		.bytes_copies = copies(kv),
		.memory = memory_of(kv),
		.shares_memory = kv->arrays.window != NULL,
		.sums_on_node = kv->nodes.reduces[kv->members->topology.my_node],
		.bytes_pushed = mu_kv_message_bytes(kv, &kv->push_coder),
		.bytes_pulled = mu_kv_message_bytes(kv, &kv->pull_coder),
	};
	for (int s = 0; s < kv->ends.n_servers; s++) {
		size_t nbytes = mu_kv_plan_load(&kv->model.plan, s) * sizeof(float);

		if (s == 0 || nbytes < layout->bytes_per_server_min)
			layout->bytes_per_server_min = nbytes;
		if (nbytes > layout->bytes_per_server_max)
			layout->bytes_per_server_max = nbytes;
	}
}

/* ---- before there is a store ---- */

/* How many workers and nodes send messages to a server end. */
static size_t count_sources(const struct mu_kv *kv, bool shared, int server)
{
	const struct mu_kv_nodes *nodes = &kv->nodes;
	const int home = mu_kv_server_node(kv, server);
	size_t n = 0;

	for (int node = 0; node < kv->members->topology.num_nodes; node++) {
		const size_t workers = nodes->first[node + 1] - nodes->first[node];

		if (node != home)
			n += nodes->reduces[node] ? 1 : workers;
		else if (!shared)
			n += workers - kv->kind.hosted; /* one is on the same rank */
	}
	return n;
}

/* Gradients of the other workers of a node, which these send to its leaders: of the worker that
 * leads most. led: 0 for every worker. */
static enum mu_status count_led(const struct mu_kv *kv, int node, size_t *led, size_t *most)
{
	enum mu_status st = MU_OK;
	const struct mu_kv_nodes *nodes = &kv->nodes;
	struct mu_kv_group *groups = NULL;

	if (!nodes->reduces[node])
		goto out;
	MU_TRY(MU_ALLOC(groups, (size_t)kv->ends.n_servers + 1, "leaders, by server"));
	for (int s = 0; s < kv->ends.n_servers; s++)
		groups[s] = mu_kv_group_of(kv, nodes->workers[nodes->first[node]], s);
	for (size_t p = 0; p < kv->model.plan.n_parts; p++) {
		const struct mu_kv_part *part = &kv->model.plan.parts[p];
		const struct mu_kv_group *g = &groups[part->server];
		size_t *n = &led[mu_kv_group_leader(g, part->number)];

		*n += (g->n - 1) * mu_pad(part->n);
		*most = *n > *most ? *n : *most;
	}
out:
	mu_free(groups);
	return st;
}

/* What arrives at a server end, in floats. */
static enum mu_status count_end(const struct mu_kv *kv, bool shared, int server, size_t *arrived)
{
	enum mu_status st = MU_OK;
	struct mu_kv_slots inbox = {.n = 0};

	if (kv->model.lives)
		MU_TRY(mu_kv_slots_of_inbox(&inbox, &kv->model.plan, kv->model.lives, server));
	*arrived = (kv->model.lives ? inbox.n : mu_kv_plan_load(&kv->model.plan, server)) *
		   count_sources(kv, shared, server);
out:
	mu_kv_slots_release(&inbox);
	return st;
}

static size_t larger(size_t a, size_t b)
{
	return a > b ? a : b;
}

static enum mu_status count_memory(const struct mu_kv *kv, const struct mu_kv_config *config,
				   struct mu_kv_memory *m)
{
	enum mu_status st = MU_OK;
	const bool shared = mu_kv_shares_memory(kv, config->node_reduce);
	const bool sums = kv->model.lives && mu_optim_needs_norms(&config->optim);
	size_t *led = NULL, n = 0;

	MU_TRY(MU_ALLOC(led, (size_t)kv->ends.n_workers, "what workers lead"));
	m->gradients = kv->model.n_gradients * sizeof(float);
	for (int node = 0; !shared && node < kv->members->topology.num_nodes; node++)
		MU_TRY(count_led(kv, node, led, &n));
	m->led = n * sizeof(float);
	for (int s = 0; s < kv->ends.n_servers; s++) {
		const size_t part = mu_kv_plan_load(&kv->model.plan, s) * sizeof(float);

		MU_TRY(count_end(kv, shared, s, &n));
		m->arrived = larger(m->arrived, n * sizeof(float));
		m->sums = larger(m->sums, sums ? part : 0);
		if (!kv->kind.synchronous)
			m->copies = larger(m->copies, part * count_sources(kv, shared, s));
	}
out:
	mu_free(led);
	return st;
}

enum mu_status mu_kv_memory(const struct mu_kv_config *config, struct mu_kv_memory *memory)
{
	enum mu_status st = MU_OK;
	struct mu_kv kv = {.model.n_slices = config->n_slices};

	*memory = (struct mu_kv_memory){.gradients = 0};
	MU_TRY(mu_kv_config_check(config));
	if (config->n_slices == 0)
		goto out;
	MU_TRY(MU_ALLOC(kv.model.slices, kv.model.n_slices + 1, "slices"));
	for (size_t i = 0; i < kv.model.n_slices; i++)
		kv.model.slices[i] = config->slices[i];
	MU_TRY(mu_kv_outline(&kv, config));
	MU_TRY(mu_kv_lay_out(&kv, config));
	MU_TRY(count_memory(&kv, config, memory));
out:
	mu_kv_nodes_close(&kv.nodes);
	mu_kv_gradients_close(&kv);
	mu_kv_plan_release(&kv.model.plan);
	mu_free(kv.model.slices);
	return st;
}

/* ---- what links allow ---- */

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
	return kv->arrays.window || kv->nodes.reduces[kv->members->topology.my_node];
}

/* Models that the busiest node sends, and receives, if its ranks send one sum, and nothing to each
 * other. */
static double node_models(const struct mu_kv *kv)
{
	const struct mu_members *m = kv->members;
	double most = 0, nodes = 0; /* nodes with workers */

	for (int pass = 0; pass < 2; pass++)
		for (int node = 0; node < m->topology.num_nodes; node++) {
			double part = 0, workers = 0, load;

			if (kv->nodes.first[node + 1] > kv->nodes.first[node])
				workers = 1;
			for (int s = 0; s < kv->ends.n_servers; s++)
				if (mu_kv_server_node(kv, s) == node)
					part += 1.0 / kv->ends.n_servers;
			nodes += pass == 0 ? workers : 0;
			load = workers * (1 - part) + part * (nodes - workers);
			most = pass == 1 && load > most ? load : most;
		}
	return kv->kind.hosted ? 2 * (nodes - 1) / nodes : most;
}

double mu_kv_bound(const struct mu_kv *kv, double bytes_per_second)
{
	double n = kv->ends.n_workers, k = kv->ends.n_servers;
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
	double n = kv->ends.n_workers, k = kv->kind.hosted ? 0 : kv->ends.n_servers;

	if (kv->kind.one_worker || kv->kind.on_gpus || n < 2 ||
	    nodes_are_one(kv))
		return 0;
	return 2 * n * (n - 1) * model_bytes(kv) / ((n * n + k * n - 2 * k) * bytes_per_second);
}
