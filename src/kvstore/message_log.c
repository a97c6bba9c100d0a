/* SPDX-License-Identifier: Apache-2.0 */
/* The log of connections, placement and messages of a model. See message_log.h. */
#include <stdio.h>

#include "message_log.h"

/* ---- connections ---- */

/* "worker 0 (rank 0, node17) and server 1 (rank 3, node17): shared memory" */
static void log_connection(const struct mu_kv *kv, int s)
{
	const size_t n = kv->ends.worker->groups[s].n;
	char mine[128], other[128], messages[64] = "messages";

	if (n > 1)
		snprintf(messages, sizeof messages, "messages for all %zu workers of the node", n);
	mu_members_who(kv->members, mine, sizeof mine);
	mu_members_name(kv->members, mu_kv_server_rank(kv, s), other, sizeof other);
	mu_log_info("connection: %s and %s: %s", mine, other,
		    mu_kv_is_own(kv, s)            ? "calls within the rank"
		    : kv->ends.worker->shm[s].pipe ? "memory that the node shares"
						   : messages);
}

static void log_placement(const struct mu_kv_server *s)
{
	char mine[128];
	size_t buckets = 0;

	for (size_t b = 0; b < s->kv->model.plan.n_buckets; b++) {
		const struct mu_kv_bucket *bucket = &s->kv->model.plan.buckets[b];
		bool any = false;

		for (size_t p = 0; p < bucket->n_parts && !any; p++)
			any = s->kv->model.plan.parts[bucket->first_part + p].server == s->index;
		buckets += any;
	}
	mu_members_who(s->kv->members, mine, sizeof mine);
	mu_log_info("placement: %s serves %zu of %zu bytes, %zu parts of %zu buckets", mine,
		    s->held.n * sizeof(float), s->kv->model.plan.n * sizeof(float), s->held.n_parts,
		    buckets);
}

void mu_kv_log_connections(const struct mu_kv *kv)
{
	char mine[128];

	if (!mu_traffic_connections(&kv->traffic))
		return;
	mu_members_who(kv->members, mine, sizeof mine);
	mu_log_info("role: %s", mine);
	for (int s = 0; kv->ends.worker && s < kv->ends.n_servers; s++)
		log_connection(kv, s);
	if (kv->ends.server)
		log_placement(kv->ends.server);
}

/* ---- messages ---- */

static const char *const kinds[] = {
	[WIRE_STEP] = "step",          [WIRE_PULL] = "pull", [WIRE_ASK] = "ask",
	[WIRE_INIT] = "first weights", [WIRE_SAVE] = "save", [WIRE_LOAD] = "load",
	[WIRE_FINISH] = "finish",
};

static const char *kind_name(enum wire_kind kind)
{
	const size_t i = kind;

	return i < sizeof kinds / sizeof *kinds ? kinds[i] : "unknown";
}

void mu_kv_log_order(const struct mu_kv *kv, enum wire_kind kind)
{
	for (int s = 0; s < kv->ends.n_servers; s++)
		if (!mu_kv_is_own(kv, s))
			mu_traffic_write(&kv->traffic, MU_TRAFFIC_OUT, mu_kv_server_rank(kv, s),
					 sizeof(struct wire_order), -1, "order %s of step %llu",
					 kind_name(kind), (unsigned long long)kv->step.number);
}

void mu_kv_log_answers(const struct mu_kv *kv)
{
	for (int s = 0; s < kv->ends.n_servers; s++)
		if (!mu_kv_is_own(kv, s))
			mu_traffic_write(&kv->traffic, MU_TRAFFIC_IN, mu_kv_server_rank(kv, s),
					 sizeof(struct wire_answer), -1, "answer to step %llu",
					 (unsigned long long)kv->step.number);
}

void mu_kv_log_first(const struct mu_kv *kv, const struct mu_kv_part *part,
		     enum mu_traffic_direction direction)
{
	const int rank = direction == MU_TRAFFIC_OUT ? mu_kv_server_rank(kv, part->server)
						     : mu_kv_worker_rank(kv, 0);

	mu_traffic_write(&kv->traffic, direction, rank, part->n * sizeof(float), -1,
			 "first weights of bucket %zu",
			 mu_kv_plan_bucket(&kv->model.plan, part->at));
}

/* Time at which a bucket was pushed; 0: it was not. Allocates the times at the first use. */
static double *pushed_at(struct mu_kv *kv, size_t bucket)
{
	if (!kv->step.pushed_at &&
	    MU_ALLOC(kv->step.pushed_at, kv->model.plan.n_buckets, "times of pushes") != MU_OK) {
		mu_trace_clear();
		return NULL;
	}
	return &kv->step.pushed_at[bucket];
}

/* Ranks that share memory exchange elements, not codes. */
static size_t bytes_of(const struct mu_kv *kv, const struct mu_coder *coder,
		       const struct mu_kv_part *part, bool remote)
{
	return remote ? mu_kv_coded_bytes(kv, coder, part->at, part->n) : part->n * sizeof(float);
}

void mu_kv_log_bucket(struct mu_kv *kv, size_t bucket, enum mu_traffic_direction direction)
{
	const struct mu_kv_bucket *b = &kv->model.plan.buckets[bucket];
	const char *what = direction == MU_TRAFFIC_OUT ? "push of" : "pull of";
	const struct mu_coder *coder =
		direction == MU_TRAFFIC_OUT ? &kv->push_coder : &kv->pull_coder;
	double *at = pushed_at(kv, bucket), seconds = -1, now = mu_now();

	if (at && direction == MU_TRAFFIC_OUT) {
		*at = now;
	} else if (at && *at > 0) {
		seconds = now - *at;
		mu_spans_add(MU_SPAN_BUCKET, (int)bucket, *at, now);
	}
	if (!mu_traffic_messages(&kv->traffic))
		return;
	for (size_t p = b->first_part; p < b->first_part + b->n_parts; p++) {
		const struct mu_kv_part *part = &kv->model.plan.parts[p];
		const struct mu_kv_route *route = &kv->ends.worker->routes[p];

		if (route->kind == MU_KV_ROUTE_OWN || route->kind == MU_KV_ROUTE_GPU)
			continue;
		mu_traffic_write(&kv->traffic, direction, route->rank,
				 bytes_of(kv, coder, part, route->kind != MU_KV_ROUTE_SHARED),
				 seconds, "%s bucket %zu, part %zu", what, bucket,
				 p - b->first_part);
	}
}

void mu_kv_log_server_order(const struct mu_kv_server *s, size_t w)
{
	if (w != s->self)
		mu_traffic_write(&s->kv->traffic, MU_TRAFFIC_IN, mu_kv_worker_rank(s->kv, w),
				 sizeof(struct wire_order), -1, "order %s of step %llu",
				 kind_name(s->from.peers[w].doing),
				 (unsigned long long)s->from.peers[w].order.step);
}

void mu_kv_log_server_answer(const struct mu_kv_server *s, size_t w)
{
	if (w != s->self)
		mu_traffic_write(&s->kv->traffic, MU_TRAFFIC_OUT, mu_kv_worker_rank(s->kv, w),
				 sizeof(struct wire_answer), -1, "answer to step %llu",
				 (unsigned long long)s->from.peers[w].step);
}

void mu_kv_log_server_part(const struct mu_kv_server *s, size_t p, size_t w,
			   enum mu_traffic_direction direction)
{
	const struct mu_kv_plan *plan = &s->kv->model.plan;
	const size_t at = s->held.parts[p].at;
	const size_t b = mu_kv_plan_bucket(plan, at);
	const struct mu_coder *coder =
		direction == MU_TRAFFIC_IN ? &s->kv->push_coder : &s->kv->pull_coder;
	const bool coded = mu_kv_is_remote(s, w) && s->from.peers[w].doing != WIRE_INIT;

	if (w == s->self)
		return;
	for (size_t i = 0; i < plan->buckets[b].n_parts; i++)
		if (plan->parts[plan->buckets[b].first_part + i].at == at)
			mu_traffic_write(&s->kv->traffic, direction, mu_kv_worker_rank(s->kv, w),
					 bytes_of(s->kv, coder, &s->held.parts[p], coded), -1,
					 "%s bucket %zu, part %zu",
					 direction == MU_TRAFFIC_IN ? "push of" : "pull of", b, i);
}
