/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of a leader with the other workers of its node, if these share no memory. They send
 * to the leader as they would to the server end: see nodes.h, and route.c for their side.
 */
#include "kvstore/message_log.h"

/* Index of the node's i-th worker among the other workers. */
static size_t other_of(const struct mu_kv_leader *l, size_t i)
{
	return i < l->me ? i : i - 1;
}

static size_t worker_of(const struct mu_kv_leader *l, size_t other)
{
	return l->workers[other < l->me ? other : other + 1];
}

static bool is_led_here(const struct mu_kv *kv, size_t part)
{
	return kv->ends.worker->routes[part].kind == MU_KV_ROUTE_LEADER;
}

static enum mu_status make_memory(struct mu_kv *kv, struct mu_kv_leader_messages *r)
{
	enum mu_status st = MU_OK;
	const struct mu_kv_plan *plan = &kv->model.plan;
	size_t n_parts = 0;
	void *counters = NULL;

	MU_TRY(MU_ALLOC(r->first, plan->n_buckets + 1, "parts that a worker leads"));
	for (size_t b = 0; b < plan->n_buckets; b++) {
		const struct mu_kv_bucket *bucket = &plan->buckets[b];

		r->first[b] = n_parts;
		for (size_t p = bucket->first_part; p < bucket->first_part + bucket->n_parts; p++) {
			if (!is_led_here(kv, p))
				continue;
			n_parts++;
			r->n += r->n_others * mu_pad(plan->parts[p].n);
		}
	}
	r->first[plan->n_buckets] = n_parts;
	r->n_pairs = n_parts * r->n_others;
	MU_TRY(MU_ALLOC(r->memory, r->n + 1, "gradients of the node's other workers"));
	MU_TRY(MU_ALLOC(r->inboxes, r->n_pairs + 1, "gradients of the node's other workers"));
	MU_TRY(mu_requests_new(&r->gathers, r->n_pairs));
	MU_TRY(mu_requests_new(&r->forwards, r->n_pairs));
	MU_TRY(MU_ALLOC(r->forwarded, plan->n_buckets, "buckets that are forwarded"));
	MU_TRY(mu_alloc(&counters, 3 * plan->n_buckets * sizeof *r->counters,
			"buckets pushed and back"));
	r->counters = counters;
out:
	return st;
}

static enum mu_status make_requests(struct mu_kv *kv, struct mu_kv_leader_messages *r)
{
	enum mu_status st = MU_OK;
	float *at = r->memory;
	size_t pair = 0;

	for (size_t p = 0; p < kv->model.plan.n_parts; p++) {
		const struct mu_kv_part *part = &kv->model.plan.parts[p];
		const int n = mu_count(part->n), tag = mu_kv_part_tag(p);

		for (size_t j = 0; is_led_here(kv, p) && j < r->n_others; j++) {
			const size_t w = worker_of(&kv->ends.worker->leader, j);
			const int rank = mu_kv_worker_rank(kv, w);

			MU_MPI(MPI_Recv_init(at, n, MPI_FLOAT, rank, tag, kv->comm,
					     &r->gathers[pair]));
			MU_MPI(MPI_Send_init(kv->arrays.results + part->at, n, MPI_FLOAT, rank, tag,
					     kv->comm, &r->forwards[pair]));
			r->inboxes[pair++] = at;
			at += mu_pad(part->n);
		}
	}
out:
	return st;
}

enum mu_status mu_kv_leader_messages_open(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct mu_kv_leader *l = &kv->ends.worker->leader;
	struct mu_kv_leader_messages *r = NULL;

	MU_TRY(MU_ALLOC(r, 1, "messages of a leader"));
	l->messages = r;
	r->n_others = l->n - 1;
	MU_TRY(make_memory(kv, r));
	MU_TRY(make_requests(kv, r));
	l->all[l->me] = (struct mu_kv_neighbour){
		.gradients = kv->arrays.gradients,
		.pushed = r->counters,
		.back = r->counters + kv->model.plan.n_buckets,
		.summed = r->counters + 2 * kv->model.plan.n_buckets,
	};
out:
	return st;
}

void mu_kv_leader_messages_close(struct mu_kv_leader_messages *r)
{
	bool complete = true;

	if (!r)
		return;
	for (size_t i = 0; r->gathers && i < r->n_pairs; i++)
		complete = complete && mu_request_is_complete(r->gathers[i]);
	mu_requests_free(r->gathers, r->n_pairs);
	mu_requests_free(r->forwards, r->n_pairs);
	mu_free(r->first);
	if (complete) /* else a message of a failed job may still arrive */
		mu_free(r->memory);
	mu_free(r->inboxes);
	mu_free(r->forwarded);
	mu_free(r->counters);
	mu_free(r);
}

enum mu_status mu_kv_leader_messages_begin(struct mu_kv_leader_messages *r)
{
	enum mu_status st = MU_OK;

	MU_MPI(MPI_Startall(mu_count(r->n_pairs), r->gathers));
out:
	return st;
}

/* The pairs of a bucket. */
struct pairs {
	size_t first, n;
};

static struct pairs pairs_of(const struct mu_kv_leader_messages *r, size_t bucket)
{
	return (struct pairs){
		.first = r->first[bucket] * r->n_others,
		.n = (r->first[bucket + 1] - r->first[bucket]) * r->n_others,
	};
}

/* What is in the pairs of a bucket, a line for each. */
static void log_parts(const struct mu_kv *kv, size_t bucket, enum mu_traffic_direction direction)
{
	const struct mu_kv_leader *l = &kv->ends.worker->leader;
	const struct mu_kv_bucket *b = &kv->model.plan.buckets[bucket];

	for (size_t i = 0; i < b->n_parts; i++) {
		const struct mu_kv_part *part = &kv->model.plan.parts[b->first_part + i];

		for (size_t j = 0; is_led_here(kv, b->first_part + i) && j < l->messages->n_others;
		     j++)
			mu_traffic_write(
				&kv->traffic, direction, mu_kv_worker_rank(kv, worker_of(l, j)),
				part->n * sizeof(float), -1, "%s bucket %zu, part %zu",
				direction == MU_TRAFFIC_IN ? "push of" : "pull of", bucket, i);
	}
}

enum mu_status mu_kv_leader_gathered(struct mu_kv *kv, size_t bucket, int *all)
{
	enum mu_status st = MU_OK;
	MPI_Status *volatile ignore = MPI_STATUSES_IGNORE; /* volatile: see mu_wait_all */
	const struct mu_kv_leader_messages *r = kv->ends.worker->leader.messages;
	const struct pairs at = pairs_of(r, bucket);

	MU_MPI(MPI_Testall(mu_count(at.n), r->gathers + at.first, all, ignore));
	if (*all && mu_traffic_messages(&kv->traffic))
		log_parts(kv, bucket, MU_TRAFFIC_IN);
out:
	return st;
}

/* Are all requests with the i-th worker complete? */
static bool are_complete(const struct mu_kv *kv, const MPI_Request *requests, size_t i,
			 size_t bucket)
{
	const struct mu_kv_leader *l = &kv->ends.worker->leader;
	const struct pairs at = pairs_of(l->messages, bucket);

	for (size_t k = other_of(l, i); i != l->me && k < at.n; k += l->messages->n_others)
		if (!mu_request_is_complete(requests[at.first + k]))
			return false;
	return true;
}

bool mu_kv_leader_has_received(const struct mu_kv *kv, size_t i, size_t bucket)
{
	return are_complete(kv, kv->ends.worker->leader.messages->gathers, i, bucket);
}

bool mu_kv_leader_has_forwarded(const struct mu_kv *kv, size_t i, size_t bucket)
{
	return are_complete(kv, kv->ends.worker->leader.messages->forwards, i, bucket);
}

const float *mu_kv_leader_inbox(const struct mu_kv_leader *l, size_t k, size_t i)
{
	return l->messages->inboxes[k * l->messages->n_others + other_of(l, i)];
}

enum mu_status mu_kv_leader_forward(struct mu_kv *kv, size_t bucket, int *done)
{
	enum mu_status st = MU_OK;
	MPI_Status *volatile ignore = MPI_STATUSES_IGNORE; /* volatile: see mu_wait_all */
	struct mu_kv_leader_messages *r = kv->ends.worker->leader.messages;
	const struct pairs at = pairs_of(r, bucket);

	if (r->forwarded[bucket] < kv->ends.worker->rounds) {
		r->forwarded[bucket] = kv->ends.worker->rounds;
		MU_MPI(MPI_Startall(mu_count(at.n), r->forwards + at.first));
		mu_kv_leader_wake(kv);
		if (mu_traffic_messages(&kv->traffic))
			log_parts(kv, bucket, MU_TRAFFIC_OUT);
	}
	MU_MPI(MPI_Testall(mu_count(at.n), r->forwards + at.first, done, ignore));
out:
	return st;
}
