/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker end of a store with servers. Gradients leave from the flat array and weights arrive in
 * it. See wire.h.
 */
#include "awaited.h"
#include "kvstore/message_log.h"

/* ---- waiting: meanwhile the server end of this rank, if there is one, and its node go on ---- */

/* What is waited for: requests, and that the server ends of this node have done the same. */
struct wait {
	size_t n;
	MPI_Request *requests;
	bool (*here)(const struct mu_kv *kv, size_t bucket);
	size_t bucket, n_buckets; /* 0: the answers to orders */
	const char *what;
	const struct mu_meeting *meeting; /* a collective of workers; NULL: a wait for servers */
};

/* Large messages move on inside MPI calls only: ask about the push that began last. */
static enum mu_status move_messages(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	int done;

	if (kv->worker->n_parts > 0)
		MU_MPI(MPI_Test(&kv->worker->pushes[kv->worker->last], &done, MPI_STATUS_IGNORE));
out:
	return st;
}

/*
 * What this rank owes others. A hosted end may meet those of all other workers: not before they
 * have this node's sums, which they may need to come there.
 */
static enum mu_status serve_others(struct mu_kv *kv, int *n)
{
	enum mu_status st = MU_OK;

	*n = 0;
	if (kv->server)
		MU_TRY(mu_kv_server_poll(kv->server, n));
	MU_TRY(mu_kv_lead_poll(kv, n));
	if (kv->server && kv->worker->lead.n_unsent == 0)
		MU_TRY(kv->server->policy->settle(kv->server));
out:
	return st;
}

static enum mu_status wait_for(struct mu_kv *kv, const struct wait *wait)
{
	enum mu_status st = MU_OK;
	MPI_Status *volatile ignore = MPI_STATUSES_IGNORE; /* volatile: see mu_wait_all */
	const struct mu_kv_lateness late = {kv, wait->what, wait->bucket, wait->n_buckets};
	struct mu_waiter waiter;
	int done = 0, n = 0;

	mu_waiter_init(&waiter, kv->topology);
	if (wait->meeting)
		mu_meeting_enter(wait->meeting, &waiter);
	waiter.only_woken =
		kv->worker->n_far == 0 && (!kv->server || kv->server->n_far == 0) && wait->n == 0;
	for (;;) {
		MU_TRY(serve_others(kv, &n));
		done = wait->here(kv, wait->bucket);
		if (done && wait->n > 0)
			MU_MPI(MPI_Testall(mu_count(wait->n), wait->requests, &done, ignore));
		if (done)
			break;
		MU_TRY(move_messages(kv));
		if (n > 0) {
			mu_waiter_reset(&waiter);
			continue;
		}
		mu_waiter_nap(&waiter);
		if (wait->meeting)
			MU_TRY(mu_waiter_check(&waiter, mu_awaited_meeting, wait->meeting));
		else
			MU_TRY(mu_waiter_check(&waiter, mu_kv_late_servers, &late));
	}
out:
	return st;
}

static bool part_here(const struct mu_kv *kv, size_t bucket, size_t p)
{
	const struct mu_kv_worker *w = kv->worker;
	const struct mu_kv_part *part = &kv->plan.parts[p];

	switch (w->routes[p].way) {
	case MU_KV_WAY_OWN: return kv->server->updates[part->number] >= kv->step;
	case MU_KV_WAY_SHARED:
		return mu_kv_near_returned(&w->near[part->server], part->number, w->rounds);
	case MU_KV_WAY_LEAD:
	case MU_KV_WAY_LED: return mu_kv_lead_is_back(kv, bucket, p);
	case MU_KV_WAY_SEND: /* its request tells */
	case MU_KV_WAY_GPU: break;
	}
	return true;
}

static bool bucket_here(const struct mu_kv *kv, size_t bucket)
{
	const struct mu_kv_bucket *b = &kv->plan.buckets[bucket];

	for (size_t i = b->first_part; i < b->first_part + b->n_parts; i++)
		if (!part_here(kv, bucket, i))
			return false;
	return true;
}

static bool all_here(const struct mu_kv *kv, size_t bucket)
{
	(void)bucket;
	for (size_t b = 0; b < kv->plan.n_buckets; b++)
		if (!bucket_here(kv, b))
			return false;
	return true;
}

static bool answers_here(const struct mu_kv *kv, size_t bucket)
{
	(void)bucket;
	for (int s = 0; s < kv->n_servers; s++) {
		if (mu_kv_is_own(kv, s) && !kv->server->peers[kv->server->self].answered)
			return false;
		if (kv->worker->near[s].pipe && !mu_kv_near_answered(&kv->worker->near[s]))
			return false;
	}
	return true;
}

/* ---- orders and answers ---- */

static void wake_servers(const struct mu_kv *kv)
{
	for (int s = 0; s < kv->n_servers; s++)
		if (!mu_kv_is_own(kv, s))
			mu_wake(kv->topology, kv->server_ranks[s]);
}

static enum mu_status send_orders(struct mu_kv *kv, enum wire_kind kind)
{
	enum mu_status st = MU_OK;
	struct mu_kv_worker *w = kv->worker;

	w->order = (struct wire_order){.kind = kind, .step = kv->step, .count = kv->count};
	w->order.word = mu_kv_word(kv);
	w->order.rate = kv->replica ? 1 : kv->rate; /* averages have a rate of their own */
	if (kv->states) {
		w->order.from = kv->states->from;
		w->order.to = kv->states->to;
	}
	w->asked = true;
	MU_MPI(MPI_Startall(mu_count(w->n_far), w->answers));
	MU_MPI(MPI_Startall(mu_count(w->n_far), w->orders));
	w->rounds += kind == WIRE_STEP || kind == WIRE_PULL;
	for (int s = 0; s < kv->n_servers; s++)
		if (w->near[s].pipe)
			mu_kv_near_order(&w->near[s], &w->order);
	if (mu_traffic_messages(&kv->traffic))
		mu_kv_log_order(kv, kind);
	if (kind != WIRE_STEP) /* the gradients that follow wake them */
		wake_servers(kv);
	if (kv->server)
		MU_TRY(mu_kv_server_order(kv->server, &w->order));
out:
	return st;
}

/*
 * Every server counts the same samples; for dist_async each in its own order, and server 0 speaks
 * for all.
 */
static enum mu_status take_answers(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct mu_kv_worker *w = kv->worker;
	const struct wait wait = {
		.n = w->n_far,
		.requests = w->answers,
		.here = answers_here,
		.what = "the servers' answers",
	};

	MU_TRY(wait_for(kv, &wait));
	MU_TRY(mu_wait_woken(kv->topology, mu_count(w->n_far), w->orders,
			     "the servers to take an order"));
	for (int s = 0; s < kv->n_servers; s++)
		if (w->near[s].pipe)
			w->received[s] = w->near[s].pipe->answer;
	if (kv->server)
		w->received[kv->server->index] = kv->server->peers[kv->server->self].answer;
	if (mu_traffic_messages(&kv->traffic))
		mu_kv_log_answers(kv);
	w->asked = false;
	kv->progress = w->received[0].progress;
	kv->lr = w->received[0].lr;
	for (int s = 0; s < kv->n_servers; s++)
		if (w->received[s].word > kv->notice)
			kv->notice = w->received[s].word;
out:
	return st;
}

enum mu_status mu_kv_worker_answers(struct mu_kv *kv, double *count)
{
	enum mu_status st = MU_OK;

	if (kv->worker->asked)
		MU_TRY(take_answers(kv));
	*count = kv->worker->received[0].count;
out:
	return st;
}

enum mu_status mu_kv_worker_ask(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;

	MU_TRY(send_orders(kv, WIRE_ASK));
	MU_TRY(take_answers(kv));
out:
	return st;
}

/* ---- a step ---- */

enum mu_status mu_kv_worker_step_begin(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_kv_lead_begin(kv));
	MU_TRY(send_orders(kv, WIRE_STEP));
out:
	return st;
}

/*
 * A synchronous server has nothing to do before all workers have pushed: woken earlier, it would
 * only take a core from a worker that computes. So the last one wakes it.
 */
static void wake_for_parts(const struct mu_kv *kv)
{
	for (int s = 0; s < kv->n_servers; s++)
		if (!mu_kv_is_own(kv, s) &&
		    (!kv->ops->synchronous || mu_kv_near_is_last(&kv->worker->near[s])))
			mu_wake(kv->topology, kv->server_ranks[s]);
}

/* Parts for the server ends of this node. The own one comes last: it may begin to work. */
static enum mu_status push_here(struct mu_kv *kv, const struct mu_kv_bucket *b)
{
	enum mu_status st = MU_OK;
	const struct mu_kv_worker *w = kv->worker;
	const struct mu_kv_part *parts = kv->plan.parts;
	const size_t end = b->first_part + b->n_parts;

	for (size_t p = b->first_part; p < end; p++)
		if (w->routes[p].way == MU_KV_WAY_SHARED)
			mu_kv_near_push(&w->near[parts[p].server], parts[p].number);
	wake_for_parts(kv);
	for (size_t p = b->first_part; p < end; p++)
		if (w->routes[p].way == MU_KV_WAY_OWN)
			MU_TRY(mu_kv_server_part(kv->server, parts[p].number));
out:
	return st;
}

/* Parts that this worker sends by itself. */
static enum mu_status send_parts(struct mu_kv *kv, size_t bucket)
{
	enum mu_status st = MU_OK;
	struct mu_kv_worker *w = kv->worker;
	size_t first = w->first[bucket], n = w->led[bucket] - first;

	/* The weights are not read any more in this step: their receive may start. */
	MU_MPI(MPI_Startall(mu_count(n), w->pulls + first));
	MU_MPI(MPI_Startall(mu_count(n), w->pushes + first));
	if (n > 0)
		w->last = first + n - 1;
out:
	return st;
}

enum mu_status mu_kv_worker_push(struct mu_kv *kv, size_t bucket)
{
	enum mu_status st = MU_OK;
	struct mu_kv_worker *w = kv->worker;

	if (mu_kv_log_wants_buckets(kv))
		mu_kv_log_bucket(kv, bucket, MU_TRAFFIC_OUT);
	if (mu_kv_is_coded(kv))
		mu_kv_coded_push(kv, bucket);
	MU_TRY(send_parts(kv, bucket));
	if (w->lead.n > 0)
		MU_TRY(mu_kv_lead_push(kv, bucket));
	MU_TRY(push_here(kv, &kv->plan.buckets[bucket]));
out:
	return st;
}

enum mu_status mu_kv_worker_poll(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	int n = 0;

	MU_TRY(mu_kv_lead_poll(kv, &n));
	MU_TRY(kv->server ? mu_kv_server_poll(kv->server, &n) : move_messages(kv));
out:
	return st;
}

enum mu_status mu_kv_worker_pull(struct mu_kv *kv, size_t bucket)
{
	enum mu_status st = MU_OK;
	struct mu_kv_worker *w = kv->worker;
	size_t first = w->first[bucket], n = w->first[bucket + 1] - first;
	const struct wait wait = {
		.n = n,
		.requests = w->pulls + first,
		.here = bucket_here,
		.bucket = bucket,
		.n_buckets = 1,
		.what = kv->plan.buckets[bucket].what,
	};

	if (kv->buckets_left > 0) /* workers with keys in different orders: none may be the last */
		wake_servers(kv);
	MU_TRY(wait_for(kv, &wait));
	MU_TRY(mu_wait_woken(kv->topology, mu_count(n), w->pushes + first, wait.what));
	if (kv->pull_coder.codec)
		mu_kv_coded_pulled(kv, bucket);
	if (mu_kv_log_wants_buckets(kv))
		mu_kv_log_bucket(kv, bucket, MU_TRAFFIC_IN);
out:
	return st;
}

enum mu_status mu_kv_worker_step_end(struct mu_kv *kv)
{
	double count;

	return mu_kv_worker_answers(kv, &count);
}

enum mu_status mu_kv_worker_fetch(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct mu_kv_worker *w = kv->worker;
	const struct wait wait = {
		.n = w->n_parts,
		.requests = w->pulls,
		.here = all_here,
		.n_buckets = kv->plan.n_buckets,
		.what = "the weights from the servers",
	};

	MU_MPI(MPI_Startall(mu_count(w->n_parts), w->pulls));
	MU_TRY(send_orders(kv, WIRE_PULL));
	MU_TRY(wait_for(kv, &wait));
	for (size_t b = 0; kv->pull_coder.codec && b < kv->plan.n_buckets; b++)
		mu_kv_coded_pulled(kv, b);
	for (size_t b = 0; mu_traffic_messages(&kv->traffic) && b < kv->plan.n_buckets; b++)
		mu_kv_log_bucket(kv, b, MU_TRAFFIC_IN);
	MU_TRY(take_answers(kv));
out:
	return st;
}

static bool nothing_else(const struct mu_kv *kv, size_t bucket)
{
	(void)kv;
	(void)bucket;
	return true;
}

enum mu_status mu_kv_worker_states(struct mu_kv *kv, enum wire_kind kind, bool meet)
{
	enum mu_status st = MU_OK;
	struct mu_kv_parcel parcel = {.n = 0};
	MPI_Request barrier = MPI_REQUEST_NULL;
	struct wait wait = {.here = nothing_else, .what = "the states of the optimizer"};
	const struct mu_meeting meeting = {.comm = kv->topology->peers,
					   .what = "the other workers to have their states"};

	/* Both sides of every message are posted before anybody waits for one. */
	MU_TRY(mu_kv_parcel_begin(kv, kind, &parcel));
	MU_TRY(send_orders(kv, kind));
	wait.requests = parcel.requests;
	wait.n = parcel.n;
	MU_TRY(wait_for(kv, &wait));
	mu_kv_parcel_end(kv, kind, &parcel);
	MU_TRY(take_answers(kv));
	if (!meet)
		goto out;
	/* Not a barrier that only waits: others may still need the server end of this rank. */
	MU_MPI(MPI_Ibarrier(kv->topology->peers, &barrier));
	wait = (struct wait){.n = 1, .requests = &barrier, .here = nothing_else};
	wait.what = meeting.what;
	wait.meeting = &meeting;
	MU_TRY(wait_for(kv, &wait));
out:
	mu_kv_parcel_release(&parcel);
	return st;
}

/* Worker 0's weights to the servers, parts in their order. Happens once, so its requests are made
 * here. */
static enum mu_status send_weights(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	MPI_Request *requests = NULL;
	const struct mu_kv_plan *plan = &kv->plan;
	size_t n = 0;

	MU_TRY(mu_requests_new(&requests, plan->n_parts));
	MU_TRY(send_orders(kv, WIRE_INIT));
	for (size_t i = 0; i < plan->n_parts; i++) {
		const struct mu_kv_part *part = &plan->parts[i];

		if (!mu_kv_sends_to(kv, part->server))
			continue;
		MU_MPI(MPI_Isend(kv->weights + part->at, mu_count(part->n), MPI_FLOAT,
				 kv->server_ranks[part->server], WIRE_TAG_WEIGHTS, kv->comm,
				 &requests[n++]));
		if (mu_traffic_messages(&kv->traffic))
			mu_kv_log_first(kv, part, MU_TRAFFIC_OUT);
	}
	wake_servers(kv);
	MU_TRY(mu_wait_woken(kv->topology, mu_count(n), requests,
			     "the servers to take the first weights"));
	MU_TRY(take_answers(kv));
out:
	mu_free(requests);
	return st;
}

/* Worker 0's weights to every worker, or, where a node's workers share them, to the first one. */
static enum mu_status spread_weights(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	const struct mu_topology *t = kv->topology;
	const bool shared = kv->window && kv->results == kv->weights && !kv->own_weights;
	float *unused = NULL, *to = kv->weights;

	if (shared && t->num_nodes > 1 && t->node_worker > 0) {
		MU_TRY(MU_ALLOC(unused, kv->plan.n, "weights to leave aside"));
		to = unused;
	}
	if (!shared || t->num_nodes > 1)
		MU_TRY(mu_bcast(to, kv->plan.n * sizeof *to, 0, t->peers));
	MU_TRY(mu_barrier(t->peers));
out:
	mu_free(unused);
	return st;
}

enum mu_status mu_kv_worker_init(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;

	/* The servers have the weights before any worker goes on; hosted ends use the worker's. */
	if (kv->server)
		MU_TRY(mu_kv_server_start(kv->server));
	else if (kv->topology->index == 0)
		MU_TRY(send_weights(kv));
	MU_TRY(spread_weights(kv));
	if (kv->server && kv->server->coded.given)
		mu_kv_server_take(kv->server, kv->weights);
out:
	return st;
}

enum mu_status mu_kv_worker_finish(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;

	MU_TRY(send_orders(kv, WIRE_FINISH));
	MU_TRY(take_answers(kv));
	mu_kv_staleness_gather(kv, kv->worker->received);
out:
	return st;
}
