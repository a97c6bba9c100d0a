/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker end of a store with servers: orders and answers, pushes and pulls. Messages are sent
 * from and received in the flat arrays. See wire.h.
 */
#include "comm/icollective.h"
#include "awaited.h"
#include "kvstore/message_log.h"

/* ---- orders and answers ---- */

static void wake_servers(const struct mu_kv *kv)
{
	for (int s = 0; s < kv->ends.n_servers; s++)
		if (!mu_kv_is_own(kv, s))
			mu_wake(kv->members, mu_kv_server_rank(kv, s));
}

static enum mu_status send_orders(struct mu_kv *kv, enum wire_kind kind)
{
	enum mu_status st = MU_OK;
	struct mu_kv_worker *w = kv->ends.worker;

	w->order =
		(struct wire_order){.kind = kind, .step = kv->step.number, .count = kv->step.count};
	w->order.notice = mu_kv_current_notice(kv);
	w->order.rate = kv->ends.replica ? 1 : kv->rates.factor; /* of averages: 1 */
	if (kv->saved.states) {
		w->order.from = kv->saved.states->from;
		w->order.to = kv->saved.states->to;
	}
	w->asked = true;
	MU_MPI(MPI_Startall(mu_count(w->n_remote), w->answers));
	MU_MPI(MPI_Startall(mu_count(w->n_remote), w->orders));
	w->rounds += kind == WIRE_STEP || kind == WIRE_PULL;
	for (int s = 0; s < kv->ends.n_servers; s++)
		if (w->shm[s].pipe)
			mu_kv_shm_send_order(&w->shm[s], &w->order);
	if (mu_traffic_messages(&kv->traffic))
		mu_kv_log_order(kv, kind);
	if (kind != WIRE_STEP) /* gradients follow and wake them */
		wake_servers(kv);
	if (kv->ends.server)
		MU_TRY(mu_kv_server_order(kv->ends.server, &w->order));
out:
	return st;
}

/*
 * Every server counts the same samples, in dist_async in its own order: progress and learning rate
 * are server 0's.
 */
static enum mu_status wait_answers(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct mu_kv_worker *w = kv->ends.worker;
	const struct mu_kv_wait wait = {
		.n = w->n_remote,
		.requests = w->answers,
		.for_answers = true,
		.what = "the servers' answers",
	};

	MU_TRY(mu_kv_worker_wait(kv, &wait));
	MU_TRY(mu_wait_woken(kv->members, mu_count(w->n_remote), w->orders,
			     "the servers to receive an order"));
	for (int s = 0; s < kv->ends.n_servers; s++)
		if (w->shm[s].pipe)
			w->received[s] = w->shm[s].pipe->answer;
	if (kv->ends.server)
		w->received[kv->ends.server->index] =
			kv->ends.server->from.peers[kv->ends.server->self].answer;
	if (mu_traffic_messages(&kv->traffic))
		mu_kv_log_answers(kv);
	w->asked = false;
	kv->rates.progress = w->received[0].progress;
	kv->rates.lr = w->received[0].lr;
	for (int s = 0; s < kv->ends.n_servers; s++)
		if (w->received[s].notice > kv->notices.received)
			kv->notices.received = w->received[s].notice;
out:
	return st;
}

enum mu_status mu_kv_worker_answers(struct mu_kv *kv, double *count)
{
	enum mu_status st = MU_OK;

	if (kv->ends.worker->asked)
		MU_TRY(wait_answers(kv));
	*count = kv->ends.worker->received[0].count;
out:
	return st;
}

enum mu_status mu_kv_worker_ask(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;

	MU_TRY(send_orders(kv, WIRE_ASK));
	MU_TRY(wait_answers(kv));
out:
	return st;
}

/* ---- a step ---- */

enum mu_status mu_kv_worker_step_begin(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_kv_leader_begin(kv));
	MU_TRY(send_orders(kv, WIRE_STEP));
out:
	return st;
}

/*
 * A synchronous server has nothing to do before all workers have pushed. Awake earlier, it would
 * only use the core of a worker that computes. So the last worker wakes it.
 */
static void wake_for_parts(const struct mu_kv *kv)
{
	for (int s = 0; s < kv->ends.n_servers; s++)
		if (!mu_kv_is_own(kv, s) &&
		    (!kv->kind.synchronous || mu_kv_shm_is_last(&kv->ends.worker->shm[s])))
			mu_wake(kv->members, mu_kv_server_rank(kv, s));
}

/* Parts for the server ends of this node. This rank's own end is last: it may start to update. */
static enum mu_status push_here(struct mu_kv *kv, const struct mu_kv_bucket *b)
{
	enum mu_status st = MU_OK;
	const struct mu_kv_worker *w = kv->ends.worker;
	const struct mu_kv_part *parts = kv->model.plan.parts;
	const size_t end = b->first_part + b->n_parts;

	for (size_t p = b->first_part; p < end; p++)
		if (w->routes[p].kind == MU_KV_ROUTE_SHARED)
			mu_kv_shm_send_part(&w->shm[parts[p].server], parts[p].number);
	wake_for_parts(kv);
	for (size_t p = b->first_part; p < end; p++)
		if (w->routes[p].kind == MU_KV_ROUTE_OWN)
			MU_TRY(mu_kv_server_part(kv->ends.server, parts[p].number));
out:
	return st;
}

/* Parts that this worker sends at once. */
static enum mu_status send_parts(struct mu_kv *kv, size_t bucket)
{
	enum mu_status st = MU_OK;
	struct mu_kv_worker *w = kv->ends.worker;
	size_t first = w->first[bucket], n = w->first_sum[bucket] - first;

	/* The weights are not read again in this step: their receives may start. */
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
	struct mu_kv_worker *w = kv->ends.worker;

	if (mu_kv_log_wants_buckets(kv))
		mu_kv_log_bucket(kv, bucket, MU_TRAFFIC_OUT);
	if (mu_kv_is_coded(kv))
		mu_kv_coded_push(kv, bucket);
	MU_TRY(send_parts(kv, bucket));
	if (w->leader.n > 0)
		MU_TRY(mu_kv_leader_push(kv, bucket));
	MU_TRY(push_here(kv, &kv->model.plan.buckets[bucket]));
out:
	return st;
}

enum mu_status mu_kv_worker_pull(struct mu_kv *kv, size_t bucket)
{
	enum mu_status st = MU_OK;
	struct mu_kv_worker *w = kv->ends.worker;
	size_t first = w->first[bucket], n = w->first[bucket + 1] - first;
	const struct mu_kv_wait wait = {
		.n = n,
		.requests = w->pulls + first,
		.bucket = bucket,
		.n_buckets = 1,
		.what = kv->model.plan.buckets[bucket].what,
	};

	if (kv->step.buckets_left >
	    0) /* if workers push keys in different orders none may be the last */
		wake_servers(kv);
	MU_TRY(mu_kv_worker_wait(kv, &wait));
	MU_TRY(mu_wait_woken(kv->members, mu_count(n), w->pushes + first, wait.what));
	if (kv->pull_coder.codec)
		mu_kv_coded_pulled(kv, bucket);
	if (mu_kv_log_wants_buckets(kv))
		mu_kv_log_bucket(kv, bucket, MU_TRAFFIC_IN);
out:
	return st;
}

enum mu_status mu_kv_worker_taken(struct mu_kv *kv, size_t bucket)
{
	const struct mu_kv_worker *w = kv->ends.worker;
	const struct mu_kv_wait wait = {
		.n = w->first[bucket + 1] - w->first[bucket],
		.requests = w->pushes + w->first[bucket],
		.for_gradients = true,
		.bucket = bucket,
		.n_buckets = 1,
		.what = kv->model.plan.buckets[bucket].what,
	};

	return mu_kv_worker_wait(kv, &wait);
}

enum mu_status mu_kv_worker_step_end(struct mu_kv *kv)
{
	double count;

	return mu_kv_worker_answers(kv, &count);
}

enum mu_status mu_kv_worker_fetch(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct mu_kv_worker *w = kv->ends.worker;
	const struct mu_kv_wait wait = {
		.n = w->n_parts,
		.requests = w->pulls,
		.n_buckets = kv->model.plan.n_buckets,
		.what = "the weights from the servers",
	};

	MU_MPI(MPI_Startall(mu_count(w->n_parts), w->pulls));
	MU_TRY(send_orders(kv, WIRE_PULL));
	MU_TRY(mu_kv_worker_wait(kv, &wait));
	for (size_t b = 0; kv->pull_coder.codec && b < kv->model.plan.n_buckets; b++)
		mu_kv_coded_pulled(kv, b);
	for (size_t b = 0; mu_traffic_messages(&kv->traffic) && b < kv->model.plan.n_buckets; b++)
		mu_kv_log_bucket(kv, b, MU_TRAFFIC_IN);
	MU_TRY(wait_answers(kv));
out:
	return st;
}

enum mu_status mu_kv_worker_states(struct mu_kv *kv, enum wire_kind kind, bool barrier)
{
	enum mu_status st = MU_OK;
	struct mu_kv_transfer transfer = {.n = 0};
	MPI_Request request = MPI_REQUEST_NULL;
	struct mu_kv_wait wait = {.what = "the states of the optimizer"};
	const struct mu_meeting meeting =
		mu_peers_meeting(kv->members, "the other workers to have their states");

	/* Both sides of every message are posted before anybody waits for one. */
	MU_TRY(mu_kv_transfer_begin(kv, kind, &transfer));
	MU_TRY(send_orders(kv, kind));
	wait.requests = transfer.requests;
	wait.n = transfer.n;
	MU_TRY(mu_kv_worker_wait(kv, &wait));
	mu_kv_transfer_end(kv, kind, &transfer);
	MU_TRY(wait_answers(kv));
	if (!barrier)
		goto out;
	/* Not mu_barrier: others may still need the server end of this rank. */
	MU_TRY(mu_ibarrier(meeting.comm, &request));
	wait = (struct mu_kv_wait){.n = 1, .requests = &request};
	wait.what = meeting.what;
	wait.meeting = &meeting;
	MU_TRY(mu_kv_worker_wait(kv, &wait));
out:
	if (st != MU_OK)
		mu_memory_keep(); /* the servers use it until the end of the process */
	mu_kv_transfer_release(&transfer);
	return st;
}

/* Sends worker 0's weights to the servers, parts in their order. Once: the requests are made
 * here. */
static enum mu_status send_weights(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	MPI_Request *requests = NULL;
	const struct mu_kv_plan *plan = &kv->model.plan;
	size_t n = 0;

	MU_TRY(mu_requests_new(&requests, plan->n_parts));
	MU_TRY(send_orders(kv, WIRE_INIT));
	for (size_t i = 0; i < plan->n_parts; i++) {
		const struct mu_kv_part *part = &plan->parts[i];

		if (!mu_kv_sends_to(kv, part->server))
			continue;
		MU_MPI(MPI_Isend(kv->arrays.weights + part->at, mu_count(part->n), MPI_FLOAT,
				 mu_kv_server_rank(kv, part->server), WIRE_TAG_WEIGHTS, kv->comm,
				 &requests[n++]));
		if (mu_traffic_messages(&kv->traffic))
			mu_kv_log_first(kv, part, MU_TRAFFIC_OUT);
	}
	wake_servers(kv);
	MU_TRY(mu_wait_woken(kv->members, mu_count(n), requests,
			     "the servers to receive the first weights"));
	MU_TRY(wait_answers(kv));
out:
	if (st != MU_OK)
		mu_memory_keep();
	mu_free(requests);
	return st;
}

/* Sends worker 0's weights to every worker, or to the first worker of a node that shares them. */
static enum mu_status broadcast_weights(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	const struct mu_members *m = kv->members;
	const bool shared =
		kv->arrays.window && kv->arrays.results == kv->arrays.weights && !kv->own_weights;
	float *unused = NULL, *to = kv->arrays.weights;

	if (shared && m->topology.num_nodes > 1 && m->topology.node_worker > 0) {
		MU_TRY(MU_ALLOC(unused, kv->model.plan.n, "weights that are not used"));
		to = unused;
	}
	if (!shared || m->topology.num_nodes > 1)
		MU_TRY(mu_peers_share(m, to, kv->model.plan.n * sizeof *to));
	MU_TRY(mu_peers_meet(m));
out:
	mu_free(unused);
	return st;
}

enum mu_status mu_kv_worker_init(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;

	/* The servers have the weights before any worker continues; hosted ends use the
	 * worker's. */
	if (kv->ends.server)
		MU_TRY(mu_kv_server_start(kv->ends.server));
	else if (kv->members->index == 0)
		MU_TRY(send_weights(kv));
	MU_TRY(broadcast_weights(kv));
	if (kv->ends.server && kv->ends.server->coded.sent)
		mu_kv_server_set_weights(kv->ends.server, kv->arrays.weights);
out:
	return st;
}

enum mu_status mu_kv_worker_finish(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;

	MU_TRY(send_orders(kv, WIRE_FINISH));
	MU_TRY(wait_answers(kv));
	mu_kv_staleness_gather(kv, kv->ends.worker->received);
out:
	return st;
}

/* ---- life ---- */

static enum mu_status check_tags(const struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	int *highest = NULL;
	int found = 0;

	MU_MPI(MPI_Comm_get_attr(kv->comm, MPI_TAG_UB, &highest, &found));
	if (found && kv->model.plan.n_parts > (size_t)*highest - WIRE_TAG_PART)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"the model makes %zu messages a step, and this MPI has %d tags: larger "
			"buckets or messages are needed",
			kv->model.plan.n_parts, *highest - WIRE_TAG_PART);
out:
	return st;
}

/* Finds the pipes of the node's other workers to the same server ends. */
static enum mu_status find_others(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	const int n_workers = kv->ends.n_workers;
	struct mu_kv_worker *w = kv->ends.worker;
	struct mu_kv_shm other;

	MU_TRY(MU_ALLOC(w->pipes, (size_t)kv->ends.n_servers * (size_t)n_workers,
			"pipes of a node"));
	for (int s = 0; s < kv->ends.n_servers; s++) {
		w->shm[s].others = w->pipes + s * n_workers;
		for (int v = 0; v < n_workers; v++) {
			mu_kv_shm_find(kv, v, s, &other);
			if (other.pipe && v != kv->members->index)
				w->shm[s].others[w->shm[s].n_others++] = other.pipe;
		}
	}
out:
	return st;
}

static enum mu_status make_order_requests(struct mu_kv *kv, struct mu_kv_worker *w)
{
	enum mu_status st = MU_OK;
	size_t i = 0;

	for (int s = 0; s < kv->ends.n_servers; s++) {
		int rank = mu_kv_server_rank(kv, s);

		if (!mu_kv_sends_to(kv, s))
			continue;
		MU_MPI(MPI_Send_init(&w->order, sizeof w->order, MPI_BYTE, rank, WIRE_TAG_ORDER,
				     kv->comm, &w->orders[i]));
		MU_MPI(MPI_Recv_init(&w->received[s], sizeof w->received[s], MPI_BYTE, rank,
				     WIRE_TAG_ANSWER, kv->comm, &w->answers[i]));
		i++;
	}
out:
	return st;
}

static enum mu_status open_worker(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct mu_kv_worker *w = NULL;

	MU_TRY(check_tags(kv));
	MU_TRY(MU_ALLOC(w, 1, "worker end of the store"));
	kv->ends.worker = w;
	MU_TRY(MU_ALLOC(w->shm, (size_t)kv->ends.n_servers, "servers of this node"));
	for (int s = 0; s < kv->ends.n_servers; s++) {
		mu_kv_shm_find(kv, kv->members->index, s, &w->shm[s]);
		w->n_remote += mu_kv_sends_to(kv, s);
	}
	MU_TRY(find_others(kv));
	MU_TRY(mu_kv_routes_open(kv));
	MU_TRY(mu_kv_leader_open(kv));
	MU_TRY(MU_ALLOC(w->first, kv->model.plan.n_buckets + 1, "messages of every bucket"));
	MU_TRY(MU_ALLOC(w->first_sum, kv->model.plan.n_buckets + 1, "messages of every bucket"));
	MU_TRY(mu_requests_new(&w->pushes, kv->model.plan.n_parts));
	MU_TRY(mu_requests_new(&w->pulls, kv->model.plan.n_parts));
	MU_TRY(mu_requests_new(&w->orders, w->n_remote));
	MU_TRY(mu_requests_new(&w->answers, w->n_remote));
	MU_TRY(MU_ALLOC(w->received, (size_t)kv->ends.n_servers, "answers of the servers"));
	MU_TRY(mu_kv_coded_worker_open(kv));
	MU_TRY(make_order_requests(kv, w));
	MU_TRY(mu_kv_routes_requests(kv));
out:
	return st;
}

void mu_kv_worker_close(struct mu_kv_worker *w)
{
	if (!w)
		return;
	mu_requests_free(w->pushes, w->n_parts);
	mu_requests_free(w->pulls, w->n_parts);
	mu_requests_free(w->orders, w->n_remote);
	mu_requests_free(w->answers, w->n_remote);
	mu_kv_leader_close(&w->leader);
	mu_kv_coded_worker_close(&w->coded);
	mu_free(w->routes);
	mu_free(w->groups);
	mu_free(w->shm);
	mu_free(w->pipes);
	mu_free(w->first);
	mu_free(w->first_sum);
	mu_free(w->received);
	mu_free(w);
}

enum mu_status mu_kv_ends_open(struct mu_kv *kv, const struct mu_kv_config *config,
			       const struct mu_kv_policy *policy)
{
	enum mu_status st = MU_OK;

	if (kv->kind.hosted || kv->members->role == MU_ROLE_SERVER)
		MU_TRY(mu_kv_server_open(kv, config, policy));
	if (kv->members->role == MU_ROLE_WORKER)
		MU_TRY(open_worker(kv));
out:
	return st;
}
