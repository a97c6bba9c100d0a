/* SPDX-License-Identifier: Apache-2.0 */
/* The ranks that the two ends of a store of a model wait for. See awaited.h. */
#include <stdio.h>

#include "awaited.h"

/* The workers of a source. Which of a node's workers is late only its leader knows, who reports
 * it. */
static void add_source(const struct mu_kv_server *s, const struct mu_kv_group *g,
		       struct mu_awaited *a)
{
	for (size_t i = 0; i < g->n; i++)
		mu_awaited_add(a, mu_kv_worker_rank(s->kv, g->workers[i]));
	if (g->n > 1)
		a->direct = false;
}

/* Workers whose gradients of a part are missing, while others' are here. */
static void add_missing(const struct mu_kv_server *s, struct mu_awaited *a)
{
	for (size_t p = 0; p < s->held.n_parts; p++) {
		if (s->arrivals.n_arrived[p] == 0)
			continue;
		for (size_t i = 0; i < s->from.n; i++) {
			const size_t w = mu_kv_source(s, p, i);

			if (w == s->self || s->arrivals.arrived[p * s->from.n_workers + w])
				continue;
			if (a->n == 0)
				snprintf(
					a->what, sizeof a->what, "the gradients of bucket %zu",
					mu_kv_plan_bucket(&s->kv->model.plan, s->held.parts[p].at));
			add_source(s, &s->from.groups[i], a);
		}
	}
}

/* A synchronous round waits for all workers. In dist_async a worker waits for another only by the
 * bound of staleness. */
void mu_kv_awaited_workers(const void *context, struct mu_awaited *a)
{
	const struct mu_kv_server *s = context;

	a->direct = s->self == s->from.n_workers; /* a worker also waits for other servers */
	if (s->round.left > 0)
		add_missing(s, a);
	for (size_t w = 0; s->round.n_waiting > 0 && w < s->from.n_workers; w++) {
		if (w == s->self || s->from.peers[w].waiting)
			continue;
		if (a->n == 0)
			snprintf(a->what, sizeof a->what, "all workers to begin step %llu",
				 (unsigned long long)s->from.peers[w].step + 1);
		mu_awaited_add(a, mu_kv_worker_rank(s->kv, w));
	}
	for (size_t w = 0; w < s->from.n_workers; w++) {
		if (!mu_kv_staleness_delays_others(s, w))
			continue;
		if (a->n == 0)
			snprintf(a->what, sizeof a->what, "step %llu of workers that are behind",
				 (unsigned long long)s->from.peers[w].pushed + 1);
		mu_awaited_add(a, mu_kv_worker_rank(s->kv, w));
	}
}

/* The leader of a part has not received its result. */
static void add_leader(const struct mu_kv *kv, size_t bucket, size_t part, struct mu_awaited *a)
{
	const struct mu_kv_leader *l = &kv->ends.worker->leader;
	const size_t before = a->n;

	for (size_t i = 0; i < l->n; i++)
		if (!mu_kv_leader_has_pushed(kv, i, bucket) ||
		    (l->messages && !mu_kv_leader_has_forwarded(kv, i, bucket)))
			mu_awaited_add(a, mu_kv_worker_rank(kv, l->workers[i]));
	if (a->n == before)
		mu_awaited_add(a, kv->ends.worker->routes[part].rank);
}

/* Ranks that have not taken this worker's gradients of a bucket. */
static void add_takers(const struct mu_kv *kv, size_t bucket, struct mu_awaited *a)
{
	const struct mu_kv_worker *w = kv->ends.worker;
	const struct mu_kv_bucket *b = &kv->model.plan.buckets[bucket];
	size_t sent = w->first[bucket], led = w->first_sum[bucket];

	for (size_t p = b->first_part; p < b->first_part + b->n_parts; p++) {
		const struct mu_kv_route *route = &w->routes[p];
		const bool leads = route->kind == MU_KV_ROUTE_LEADER;
		const bool summed = mu_kv_part_is_taken(kv, bucket, p);
		bool left = true; /* this rank, if it is sent */

		if (leads || route->kind == MU_KV_ROUTE_SEND)
			left = mu_request_is_complete(w->pushes[leads ? led++ : sent++]);
		if ((leads || route->kind == MU_KV_ROUTE_MEMBER) && !summed)
			add_leader(kv, bucket, p, a);
		else if (route->kind != MU_KV_ROUTE_OWN && !(summed && left))
			mu_awaited_add(a, route->rank);
	}
}

/* Ranks that are late with parts of a bucket. The requests are those of the parts that this worker
 * sends, in the order of parts. */
static void add_bucket(const struct mu_kv *kv, size_t bucket, struct mu_awaited *a)
{
	const struct mu_kv_worker *w = kv->ends.worker;
	const struct mu_kv_bucket *b = &kv->model.plan.buckets[bucket];
	size_t request = w->first[bucket];

	for (size_t p = b->first_part; p < b->first_part + b->n_parts; p++) {
		const struct mu_kv_part *part = &kv->model.plan.parts[p];
		const struct mu_kv_route *route = &w->routes[p];
		bool here = true; /* own parts: mu_kv_awaited_workers adds the late ranks */

		if (route->kind == MU_KV_ROUTE_SHARED)
			here = mu_kv_shm_is_returned(&w->shm[part->server], part->number,
						     w->rounds);
		else if (route->kind == MU_KV_ROUTE_SEND)
			here = mu_request_is_complete(w->pulls[request++]);
		else if ((route->kind == MU_KV_ROUTE_LEADER || route->kind == MU_KV_ROUTE_MEMBER) &&
			 !mu_kv_leader_is_back(kv, bucket, p))
			add_leader(kv, bucket, p, a);
		if (!here)
			mu_awaited_add(a, route->rank);
	}
}

static void add_answers(const struct mu_kv *kv, struct mu_awaited *a)
{
	const struct mu_kv_worker *w = kv->ends.worker;
	size_t request = 0;

	for (int s = 0; s < kv->ends.n_servers; s++) {
		bool here = true;

		if (w->shm[s].pipe)
			here = mu_kv_shm_is_answered(&w->shm[s]);
		else if (!mu_kv_is_own(kv, s))
			here = mu_request_is_complete(w->answers[request++]);
		if (!here)
			mu_awaited_add(a, mu_kv_server_rank(kv, s));
	}
}

void mu_kv_awaited_servers(const void *context, struct mu_awaited *a)
{
	const struct mu_kv_awaited_servers *servers = context;
	const struct mu_kv *kv = servers->kv;
	const struct mu_kv_wait *wait = servers->wait;

	for (size_t b = wait->bucket; b < wait->bucket + wait->n_buckets; b++)
		if (wait->for_gradients)
			add_takers(kv, b, a);
		else
			add_bucket(kv, b, a);
	if (wait->n_buckets == 0)
		add_answers(kv, a);
	if (kv->ends.server)
		mu_kv_awaited_workers(kv->ends.server, a);
	snprintf(a->what, sizeof a->what, "%s", wait->what);
	a->somebody = true;
	a->patient = kv->ends.worker->order.kind == WIRE_FINISH; /* until the last worker is done */
}
