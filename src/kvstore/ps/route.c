/* SPDX-License-Identifier: Apache-2.0 */
/* Routes: how each part travels between this worker and its server end. See nodes.h. */
#include "dist.h"

static size_t node_index(const struct mu_kv_group *g, size_t w)
{
	size_t i = 0;

	while (g->workers[i] != w)
		i++;
	return i;
}

static enum mu_kv_route_kind kind_of(const struct mu_kv *kv, int server, size_t n_group,
				     bool leader)
{
	if (mu_kv_is_own(kv, server))
		return MU_KV_ROUTE_OWN;
	if (kv->nodes.by_gpus && !leader)
		return MU_KV_ROUTE_GPU;
	if (kv->ends.worker->shm[server].pipe)
		return MU_KV_ROUTE_SHARED;
	if (n_group > 1 && leader && !kv->nodes.by_gpus)
		return MU_KV_ROUTE_LEADER;
	return leader || !kv->arrays.window ? MU_KV_ROUTE_SEND : MU_KV_ROUTE_MEMBER;
}

static struct mu_kv_route find_route(const struct mu_kv *kv, const struct mu_kv_part *part)
{
	const struct mu_kv_group *g = &kv->ends.worker->groups[part->server];
	const size_t leader = mu_kv_group_leader(g, part->number);
	const bool is_leader = leader == (size_t)kv->members->index;
	const bool direct = is_leader || !mu_kv_sends_to(kv, part->server);

	return (struct mu_kv_route){
		.kind = kind_of(kv, part->server, g->n, is_leader),
		.rank = direct ? mu_kv_server_rank(kv, part->server)
			       : mu_kv_worker_rank(kv, leader),
		.leader = node_index(g, leader),
	};
}

enum mu_status mu_kv_routes_open(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct mu_kv_worker *w = kv->ends.worker;

	MU_TRY(MU_ALLOC(w->groups, (size_t)kv->ends.n_servers, "leaders, by server"));
	for (int s = 0; s < kv->ends.n_servers; s++)
		w->groups[s] = mu_kv_group_of(kv, (size_t)kv->members->index, s);
	MU_TRY(MU_ALLOC(w->routes, kv->model.plan.n_parts + 1, "routes of parts"));
	for (size_t p = 0; p < kv->model.plan.n_parts; p++)
		w->routes[p] = find_route(kv, &kv->model.plan.parts[p]);
out:
	return st;
}

/* ---- the requests of parts that go in messages ---- */

static enum mu_status make_part_requests(struct mu_kv *kv, struct mu_kv_worker *w, size_t p,
					 size_t i)
{
	enum mu_status st = MU_OK;
	const struct mu_kv_part *part = &kv->model.plan.parts[p];
	const struct mu_kv_coded_worker *c = &w->coded;
	int n = mu_count(part->n), tag = mu_kv_part_tag(p), rank = w->routes[p].rank;

	if (c->pushes.data)
		MU_MPI(MPI_Send_init(mu_kv_codes_part(&c->pushes, p, 0),
				     mu_kv_codes_count(&c->pushes, p), MPI_BYTE, rank, tag,
				     kv->comm, &w->pushes[i]));
	else
		MU_MPI(MPI_Send_init(kv->arrays.gradients + part->gradient, n, MPI_FLOAT, rank, tag,
				     kv->comm, &w->pushes[i]));
	if (c->pulls.data)
		MU_MPI(MPI_Recv_init(mu_kv_codes_part(&c->pulls, p, 0),
				     mu_kv_codes_count(&c->pulls, p), MPI_BYTE, rank, tag, kv->comm,
				     &w->pulls[i]));
	else /* the workers of a node share the results: where each receives them, all receive the
	      * same bytes, and all have, before one of them pushes the part again */
		MU_MPI(MPI_Recv_init(kv->arrays.results + part->at, n, MPI_FLOAT, rank, tag,
				     kv->comm, &w->pulls[i]));
out:
	return st;
}

/* The requests of a bucket's parts of this kind of route. */
static enum mu_status make_bucket_requests(struct mu_kv *kv, const struct mu_kv_bucket *bucket,
					   enum mu_kv_route_kind kind)
{
	enum mu_status st = MU_OK;
	struct mu_kv_worker *w = kv->ends.worker;

	for (size_t p = bucket->first_part; p < bucket->first_part + bucket->n_parts; p++)
		if (w->routes[p].kind == kind)
			MU_TRY(make_part_requests(kv, w, p, w->n_parts++));
out:
	return st;
}

enum mu_status mu_kv_routes_requests(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct mu_kv_worker *w = kv->ends.worker;

	for (size_t b = 0; b < kv->model.plan.n_buckets; b++) {
		w->first[b] = w->n_parts;
		MU_TRY(make_bucket_requests(kv, &kv->model.plan.buckets[b], MU_KV_ROUTE_SEND));
		w->first_sum[b] = w->n_parts;
		MU_TRY(make_bucket_requests(kv, &kv->model.plan.buckets[b], MU_KV_ROUTE_LEADER));
	}
	w->first[kv->model.plan.n_buckets] = w->n_parts;
out:
	return st;
}
