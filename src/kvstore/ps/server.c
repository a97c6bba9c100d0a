/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server end of a store with servers: its loop, and the calls of policies, which decide when to
 * update (sync.c, async.c). See wire.h.
 */
#include <string.h>

#include "awaited.h"
#include "kvstore/message_log.h"

enum mu_status mu_kv_server_receive_next(struct mu_kv_server *s, size_t p, size_t w)
{
	enum mu_status st = MU_OK;

	s->arrivals.arrived[p * s->from.n_workers + w] = false;
	s->arrivals.n_arrived[p]--;
	if (mu_kv_is_remote(s, w) && !s->shards.taken)
		MU_MPI(MPI_Start(&s->requests.pushes[mu_kv_request(s, p, w)]));
	if (s->from.peers[w].shm.pipe && s->shards.taken) {
		mu_kv_shm_take(&s->from.peers[w].shm, p);
		if (s->kv->rules.whole_steps) /* else the result follows, and wakes it */
			mu_wake(s->kv->members, mu_kv_worker_rank(s->kv, w));
	}
out:
	return st;
}

enum mu_status mu_kv_server_wait_sent(struct mu_kv_server *s, size_t p, size_t w)
{
	if (!mu_kv_is_remote(s, w))
		return MU_OK;
	return mu_wait_woken(s->kv->members, 1, &s->requests.pulls[mu_kv_request(s, p, w)],
			     "a worker to receive weights");
}

enum mu_status mu_kv_server_send_part(struct mu_kv_server *s, size_t p, size_t w)
{
	enum mu_status st = MU_OK;

	if (mu_kv_is_remote(s, w))
		MU_MPI(MPI_Start(&s->requests.pulls[mu_kv_request(s, p, w)]));
	else if (w != s->self)
		mu_kv_shm_return(&s->from.peers[w].shm, p);
	if (mu_traffic_messages(&s->kv->traffic))
		mu_kv_log_server_part(s, p, w, MU_TRAFFIC_OUT);
	mu_wake(s->kv->members, mu_kv_worker_rank(s->kv, w));
out:
	return st;
}

enum mu_status mu_kv_server_answer(struct mu_kv_server *s, size_t w, double lr)
{
	enum mu_status st = MU_OK;

	MPI_Request *send =
		mu_kv_is_remote(s, w) ? &s->requests.answers[s->from.peers[w].slot] : NULL;

	if (send)
		MU_TRY(mu_wait_woken(s->kv->members, 1, send, "a worker to receive an answer"));
	s->kv->rates.lr = lr;
	s->from.peers[w].answer = (struct wire_answer){
		.progress = s->kv->rates.progress,
		.lr = lr,
		.count = s->round.count,
		.notice = s->answer_notice,
		.stale = s->stale,
	};
	s->from.peers[w].answered = true;
	if (send)
		MU_MPI(MPI_Start(send));
	else if (w != s->self)
		mu_kv_shm_answer(&s->from.peers[w].shm, &s->from.peers[w].answer);
	if (mu_traffic_messages(&s->kv->traffic))
		mu_kv_log_server_answer(s, w);
	/* In a step the weights, which follow, wake the worker. */
	if (s->from.peers[w].doing != WIRE_STEP || s->held.n_parts == 0)
		mu_wake(s->kv->members, mu_kv_worker_rank(s->kv, w));
out:
	return st;
}

/* Worker 0's weights of part p are here. The workers receive them from worker 0. */
static void set_part_weights(struct mu_kv_server *s, size_t p, const float *weights)
{
	const size_t nbytes = s->held.parts[p].n * sizeof *weights;

	if (mu_kv_held(s, p) != weights)
		memcpy(mu_kv_held(s, p), weights, nbytes);
	if (s->coded.sent)
		memcpy(s->coded.sent + s->held.parts[p].local, weights, nbytes);
	for (size_t f = 0; s->arrivals.outbox && f < s->from.n_remote; f++)
		memcpy(mu_kv_outbox(s, p, s->from.remote[f]), weights, nbytes);
}

void mu_kv_server_set_weights(struct mu_kv_server *s, const float *weights)
{
	for (size_t p = 0; p < s->held.n_parts; p++)
		set_part_weights(s, p, weights + s->held.parts[p].at);
}

/* Once, while all workers wait for worker 0: the requests are made here. */
static enum mu_status receive_weights(struct mu_kv_server *s)
{
	enum mu_status st = MU_OK;
	MPI_Request *requests = NULL;

	MU_TRY(mu_requests_new(&requests, s->held.n_parts));
	for (size_t p = 0; p < s->held.n_parts; p++)
		MU_MPI(MPI_Irecv(mu_kv_held(s, p), mu_count(s->held.parts[p].n), MPI_FLOAT,
				 mu_kv_worker_rank(s->kv, 0), WIRE_TAG_WEIGHTS, s->kv->comm,
				 &requests[p]));
	MU_TRY(mu_wait_woken(s->kv->members, mu_count(s->held.n_parts), requests,
			     "worker 0's first weights"));
	for (size_t p = 0; p < s->held.n_parts; p++) {
		set_part_weights(s, p, mu_kv_held(s, p));
		if (mu_traffic_messages(&s->kv->traffic))
			mu_kv_log_first(s->kv, &s->held.parts[p], MU_TRAFFIC_IN);
	}
out:
	if (st != MU_OK)
		mu_memory_keep();
	mu_free(requests);
	return st;
}

static enum mu_status begin_init(struct mu_kv_server *s, size_t w)
{
	enum mu_status st = MU_OK;

	if (w != 0)
		MU_FAIL(MU_ERR_ARGUMENT, "worker %zu sends first weights: only worker 0 may", w);
	if (mu_kv_is_remote(s, 0))
		MU_TRY(receive_weights(s));
	else
		mu_kv_server_set_weights(s, s->from.peers[0].shm.results);
	MU_TRY(mu_kv_server_answer(s, 0, s->kv->rates.lr));
out:
	return st;
}

enum mu_status mu_kv_server_notice(struct mu_kv_server *s, uint64_t notice)
{
	if (notice <= s->notice)
		return MU_OK;
	s->notice = notice;
	return s->policy->notice ? s->policy->notice(s) : MU_OK;
}

static enum mu_status handle_order(struct mu_kv_server *s, size_t w)
{
	enum mu_status st = MU_OK;
	struct mu_kv_peer *peer = &s->from.peers[w];
	uint64_t step = peer->order.step;

	if (peer->parts_left > 0 || peer->waiting)
		MU_FAIL(MU_ERR_ARGUMENT, "worker %zu sends an order before its step %llu is done",
			w, (unsigned long long)peer->step);
	peer->doing = (enum wire_kind)peer->order.kind;
	peer->count = peer->order.count;
	s->kv->rates.factor = peer->order.rate;
	peer->answered = false;
	if (mu_traffic_messages(&s->kv->traffic))
		mu_kv_log_server_order(s, w);
	if (peer->doing != WIRE_FINISH && mu_kv_is_remote(s, w))
		MU_MPI(MPI_Start(&s->requests.orders[peer->slot]));
	MU_TRY(mu_kv_server_notice(s, peer->order.notice));
	switch (peer->doing) {
	case WIRE_STEP:
		if (step != peer->step + 1)
			MU_FAIL(MU_ERR_ARGUMENT, "worker %zu begins step %llu after step %llu", w,
				(unsigned long long)step, (unsigned long long)peer->step);
		peer->step = step;
		MU_TRY(s->policy->step(s, w));
		break;
	case WIRE_PULL: MU_TRY(s->policy->pull(s, w)); break;
	case WIRE_ASK: MU_TRY(mu_kv_server_answer(s, w, s->kv->rates.lr)); break;
	case WIRE_INIT: MU_TRY(begin_init(s, w)); break;
	case WIRE_SAVE:
	case WIRE_LOAD:
		MU_TRY(mu_kv_server_states(s, w));
		MU_TRY(mu_kv_server_answer(s, w, s->kv->rates.lr));
		break;
	case WIRE_FINISH:
		peer->finished = true;
		s->n_finished++;
		MU_TRY(s->policy->finish(s, w));
		break;
	default:
		MU_FAIL(MU_ERR_ARGUMENT, "worker %zu sends an order of unknown kind %d", w,
			(int)peer->doing);
	}
out:
	return st;
}

static enum mu_status handle_part(struct mu_kv_server *s, size_t p, size_t w)
{
	s->arrivals.arrived[p * s->from.n_workers + w] = true;
	s->arrivals.n_arrived[p]++;
	if (s->coded.pushes.data && mu_kv_is_remote(s, w))
		mu_kv_coded_arrived(s, p, w);
	if (mu_traffic_messages(&s->kv->traffic))
		mu_kv_log_server_part(s, p, w, MU_TRAFFIC_IN);
	return s->policy->part(s, p, w);
}

enum mu_status mu_kv_server_order(struct mu_kv_server *s, const struct wire_order *order)
{
	s->from.peers[s->self].order = *order;
	return handle_order(s, s->self);
}

enum mu_status mu_kv_server_part(struct mu_kv_server *s, size_t p)
{
	return handle_part(s, p, s->self);
}

static enum mu_status handle_push(struct mu_kv_server *s, size_t request)
{
	const size_t p = request / s->from.n_inboxes;

	return handle_part(s, p, mu_kv_source(s, p, request % s->from.n_inboxes));
}

static enum mu_status handle_messages(struct mu_kv_server *s, int *n)
{
	enum mu_status st = MU_OK;
	MPI_Status *volatile ignore = MPI_STATUSES_IGNORE; /* volatile: see mu_wait_all */
	int n_polled = mu_count(mu_kv_server_requests(s));

	*n = 0;
	if (n_polled == 0)
		goto out;
	MU_MPI(MPI_Testsome(n_polled, s->requests.orders, n, s->requests.completed, ignore));
	if (*n == MPI_UNDEFINED)
		*n = 0;
	for (int i = 0; i < *n; i++) {
		const size_t at = (size_t)s->requests.completed[i];

		if (at < s->from.n_remote)
			MU_TRY(handle_order(s, s->from.remote[at]));
		else
			MU_TRY(handle_push(s, at - s->from.n_remote));
	}
out:
	return st;
}

static enum mu_status handle_notes(struct mu_kv_server *s, int *n)
{
	enum mu_status st = MU_OK;

	for (size_t w = 0; w < s->from.n_workers; w++) {
		struct mu_kv_peer *peer = &s->from.peers[w];
		uint32_t note;

		while (peer->shm.pipe && mu_kv_shm_next_note(&peer->shm, &note)) {
			++*n;
			if (note != NOTE_ORDER) {
				MU_TRY(handle_part(s, note, w));
				continue;
			}
			peer->order = peer->shm.pipe->order;
			MU_TRY(handle_order(s, w));
		}
	}
out:
	return st;
}

/* All workers have finished: cancels the receives that were posted for a next step. */
static enum mu_status stop(struct mu_kv_server *s)
{
	enum mu_status st = MU_OK;
	size_t n_all = s->from.n_inboxes * s->held.n_parts;

	for (size_t i = 0; i < n_all; i++)
		if (!mu_request_is_complete(
			    s->requests.pushes[i])) /* shards: not all have started */
			MU_MPI(MPI_Cancel(&s->requests.pushes[i]));
	MU_TRY(mu_wait_woken(s->kv->members, mu_count(n_all), s->requests.pushes,
			     "receives to be cancelled"));
	for (size_t w = 0; w < s->from.n_workers; w++)
		MU_TRY(mu_kv_server_answer(s, w, s->kv->rates.lr));
	MU_TRY(mu_wait_woken(s->kv->members, mu_count(mu_kv_server_requests(s)),
			     s->requests.answers, "the workers to receive the last answers"));
out:
	return st;
}

enum mu_status mu_kv_server_start(struct mu_kv_server *s)
{
	enum mu_status st = MU_OK;

	if (!s->started && s->shards.taken)
		MU_TRY(mu_kv_server_shards_start(s));
	else if (!s->started)
		MU_MPI(MPI_Startall(mu_count(mu_kv_server_requests(s)), s->requests.orders));
	s->started = true;
out:
	return st;
}

enum mu_status mu_kv_server_poll(struct mu_kv_server *s, int *n)
{
	enum mu_status st = MU_OK;
	int n_messages;
	bool more;

	*n = 0;
	if (s->stopped)
		goto out;
	do {
		more = false;
		do { /* MPI_Testsome of MPICH 5 returns one message at a time */
			MU_TRY(handle_messages(s, &n_messages));
			MU_TRY(handle_notes(s, n));
			*n += n_messages;
		} while (s->round.look && n_messages > 0);
		if (s->policy->next)
			MU_TRY(s->policy->next(s, &more));
	} while (more);
	if (s->n_finished == s->from.n_workers) {
		MU_TRY(stop(s));
		s->stopped = true;
	}
out:
	return st;
}

enum mu_status mu_kv_server_serve(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct mu_kv_server *s = kv->ends.server;
	struct mu_waiter waiter;
	int n = 0;

	MU_TRY(mu_kv_server_start(s));
	mu_waiter_init(&waiter, kv->members);
	waiter.only_woken = s->from.n_remote == 0;
	while (!s->stopped) {
		MU_TRY(mu_kv_server_poll(s, &n));
		if (n > 0) {
			mu_waiter_reset(&waiter);
			continue;
		}
		mu_waiter_nap(&waiter);
		MU_TRY(mu_waiter_check(&waiter, mu_kv_awaited_workers, s));
	}
out:
	return st;
}

/* ---- life ---- */

enum mu_status mu_kv_server_open(struct mu_kv *kv, const struct mu_kv_config *config,
				 const struct mu_kv_policy *policy)
{
	enum mu_status st = MU_OK;
	struct mu_kv_server *s = NULL;

	MU_TRY(MU_ALLOC(s, 1, "server end of the store"));
	kv->ends.server = s;
	s->kv = kv;
	s->policy = policy;
	s->held.flat = kv->pull_coder.codec
			       ? NULL
			       : kv->arrays.results; /* workers then have weights of their own */
	s->index = kv->members->index;
	s->from.n_workers = (size_t)kv->ends.n_workers;
	s->self = kv->kind.hosted ? (size_t)s->index : s->from.n_workers;
	MU_TRY(mu_kv_server_parts_open(s, config));
out:
	return st;
}

void mu_kv_server_close(struct mu_kv_server *s)
{
	if (s)
		mu_kv_server_parts_close(s);
	mu_free(s);
}
