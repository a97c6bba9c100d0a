/* SPDX-License-Identifier: Apache-2.0 */
/* How every part of a bucket gets from this worker to its server end and back. See nodes.h. */
#include "dist.h"

static size_t node_index(const struct mu_kv_group *g, size_t w)
{
	size_t i = 0;

	while (g->workers[i] != w)
		i++;
	return i;
}

static enum mu_kv_way way_of(const struct mu_kv *kv, int server, size_t n_group, bool leader)
{
	if (mu_kv_is_own(kv, server))
		return MU_KV_WAY_OWN;
	if (kv->nodes.by_gpus && !leader)
		return MU_KV_WAY_GPU;
	if (kv->worker->near[server].pipe)
		return MU_KV_WAY_SHARED;
	if (n_group > 1 && leader && !kv->nodes.by_gpus)
		return MU_KV_WAY_LEAD;
	return leader || !kv->window ? MU_KV_WAY_SEND : MU_KV_WAY_LED;
}

static struct mu_kv_route find_route(const struct mu_kv *kv, const struct mu_kv_part *part)
{
	const struct mu_kv_group *g = &kv->worker->groups[part->server];
	const size_t leader = mu_kv_leader(g, part->number);
	const bool is_leader = leader == (size_t)kv->topology->index;
	const bool direct = is_leader || !mu_kv_sends_to(kv, part->server);

	return (struct mu_kv_route){
		.way = way_of(kv, part->server, g->n, is_leader),
		.rank = direct ? kv->server_ranks[part->server]
			       : kv->topology->worker_ranks[leader],
		.leader = node_index(g, leader),
	};
}

enum mu_status mu_kv_routes_open(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct mu_kv_worker *w = kv->worker;

	MU_TRY(MU_ALLOC(w->groups, (size_t)kv->n_servers, "leaders towards every server"));
	for (int s = 0; s < kv->n_servers; s++)
		w->groups[s] = mu_kv_group_of(kv, (size_t)kv->topology->index, s);
	MU_TRY(MU_ALLOC(w->routes, kv->plan.n_parts + 1, "routes of parts"));
	for (size_t p = 0; p < kv->plan.n_parts; p++)
		w->routes[p] = find_route(kv, &kv->plan.parts[p]);
out:
	return st;
}
