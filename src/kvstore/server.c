/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The server end of a store with servers: its memory, its requests and its loop. When to update is
 * the policy's (sync.c, async.c). See wire.h.
 */
#include <string.h>

#include "late.h"
#include "traffic.h"

static enum mu_status copy_parts(struct mu_kv_server *s, struct mu_piece **pieces)
{
	enum mu_status st = MU_OK;
	const struct mu_kv_plan *plan = &s->kv->plan;
	size_t n = 0;

	for (size_t i = 0; i < plan->n_parts; i++)
		n += plan->parts[i].server == s->index;
	MU_TRY(MU_ALLOC(s->parts, n + 1, "parts of a server"));
	MU_TRY(MU_ALLOC(*pieces, n + 1, "pieces of the optimizer"));
	for (size_t i = 0; i < plan->n_parts; i++) {
		const struct mu_kv_part *part = &plan->parts[i];

		if (part->server != s->index)
			continue;
		s->parts[s->n_parts] = *part;
		(*pieces)[s->n_parts] = (struct mu_piece){part->at, part->n, part->local};
		s->n += part->n;
		s->n_parts++;
	}
out:
	return st;
}

/* Orders, or answers, and one for every part and worker. */
static size_t n_requests(const struct mu_kv_server *s)
{
	return s->n_far + s->n_far * s->n_parts;
}

static enum mu_status make_memory(struct mu_kv_server *s)
{
	enum mu_status st = MU_OK;
	size_t n_all = s->n_workers * s->n_parts, n = n_requests(s);

	if (!s->flat)
		MU_TRY(MU_ALLOC(s->weights, s->n + 1, "weights of a server"));
	MU_TRY(MU_ALLOC(s->inbox, s->n_far * s->n + 1, "gradients on a server"));
	if (s->policy->needs_outbox)
		MU_TRY(MU_ALLOC(s->outbox, s->n_far * s->n + 1, "answers of a server"));
	MU_TRY(mu_kv_sum_init(&s->sum, s->kv->topology));
	MU_TRY(MU_ALLOC(s->completed, n + 1, "completed requests"));
	MU_TRY(MU_ALLOC(s->arrived, n_all + 1, "parts that are here"));
	MU_TRY(MU_ALLOC(s->withheld, n_all + 1, "parts that wait for other workers"));
	MU_TRY(MU_ALLOC(s->n_arrived, s->n_parts + 1, "workers of every part"));
	MU_TRY(MU_ALLOC(s->updates, s->n_parts + 1, "updates of every part"));
	MU_TRY(mu_kv_requests_new(&s->orders, n));
	MU_TRY(mu_kv_requests_new(&s->answers, n));
	s->pushes = s->orders + s->n_far;
	s->pulls = s->answers + s->n_far;
out:
	return st;
}

/* Part p's place in the plan gives its tag, for this server counts its own parts only. */
static enum mu_status make_part_requests(struct mu_kv_server *s, size_t p, int tag)
{
	enum mu_status st = MU_OK;
	const struct mu_kv_part *part = &s->parts[p];
	int n = mu_count(part->n);

	for (size_t f = 0; f < s->n_far; f++) {
		size_t w = s->far[f], i = mu_kv_request(s, p, w);
		int rank = s->kv->topology->worker_ranks[w];
		float *out = s->outbox ? mu_kv_outbox(s, p, w) : mu_kv_held(s, p);

		MU_MPI(MPI_Recv_init(mu_kv_inbox(s, p, w), n, MPI_FLOAT, rank, tag, s->kv->comm,
				     &s->pushes[i]));
		MU_MPI(MPI_Send_init(out, n, MPI_FLOAT, rank, tag, s->kv->comm, &s->pulls[i]));
	}
out:
	return st;
}

static enum mu_status make_requests(struct mu_kv_server *s)
{
	enum mu_status st = MU_OK;
	const struct mu_kv_plan *plan = &s->kv->plan;
	size_t p = 0;

	for (size_t f = 0; f < s->n_far; f++) {
		struct mu_kv_peer *peer = &s->peers[s->far[f]];
		int rank = s->kv->topology->worker_ranks[s->far[f]];

		MU_MPI(MPI_Recv_init(&peer->order, sizeof peer->order, MPI_BYTE, rank,
				     WIRE_TAG_ORDER, s->kv->comm, &s->orders[f]));
		MU_MPI(MPI_Send_init(&peer->answer, sizeof peer->answer, MPI_BYTE, rank,
				     WIRE_TAG_ANSWER, s->kv->comm, &s->answers[f]));
	}
	for (size_t i = 0; i < plan->n_parts; i++) {
		if (plan->parts[i].server == s->index)
			MU_TRY(make_part_requests(s, p++, mu_kv_part_tag(i)));
	}
out:
	return st;
}

/* Which workers are near, and which are far. */
static enum mu_status find_workers(struct mu_kv_server *s)
{
	enum mu_status st = MU_OK;

	MU_TRY(MU_ALLOC(s->peers, s->n_workers, "workers of a server"));
	MU_TRY(MU_ALLOC(s->far, s->n_workers, "workers of other nodes"));
	for (size_t w = 0; w < s->n_workers; w++) {
		struct mu_kv_peer *peer = &s->peers[w];

		mu_kv_near_find(s->kv, mu_count(w), s->index, &peer->near);
		if (w == s->self)
			peer->near.gradients = s->kv->gradients;
		if (!mu_kv_is_far(s, w))
			continue;
		peer->slot = s->n_far;
		s->far[s->n_far++] = w;
	}
out:
	return st;
}

enum mu_status mu_kv_server_open(struct mu_kv *kv, const struct mu_kv_config *config,
				 const struct mu_kv_policy *policy, bool hosted)
{
	enum mu_status st = MU_OK;
	struct mu_piece *pieces = NULL;
	struct mu_kv_server *s = NULL;
	struct mu_optim_config optim = config->optim;

	optim.prior = policy->needs_outbox; /* it holds what each worker has pulled */
	MU_TRY(MU_ALLOC(s, 1, "server end of the store"));
	kv->server = s;
	s->kv = kv;
	s->policy = policy;
	s->flat = kv->results;
	s->index = kv->topology->index;
	s->n_workers = (size_t)kv->topology->num_workers;
	s->self = hosted ? (size_t)s->index : s->n_workers;
	MU_TRY(copy_parts(s, &pieces));
	MU_TRY(find_workers(s));
	if (!kv->ops->returns_sums) {
		MU_TRY(mu_optim_new(&s->optim, &optim, kv->slices, kv->n_slices, pieces,
				    s->n_parts));
		MU_TRY(mu_kv_norms_init(&s->norms, s->optim, kv->topology->peers, kv->n_servers));
	}
	MU_TRY(make_memory(s));
	MU_TRY(make_requests(s));
out:
	mu_free(pieces);
	return st;
}

void mu_kv_server_close(struct mu_kv_server *s)
{
	if (!s)
		return;
	mu_kv_requests_free(s->orders, n_requests(s));
	mu_kv_requests_free(s->answers, n_requests(s));
	mu_kv_norms_release(&s->norms);
	mu_optim_free(s->optim);
	mu_free(s->weights);
	mu_free(s->inbox);
	mu_free(s->outbox);
	mu_free(s->far);
	mu_kv_sum_release(&s->sum);
	mu_free(s->parts);
	mu_free(s->peers);
	mu_free(s->completed);
	mu_free(s->arrived);
	mu_free(s->withheld);
	mu_free(s->n_arrived);
	mu_free(s->updates);
	mu_free(s);
}

enum mu_status mu_kv_server_reuse(struct mu_kv_server *s, size_t p, size_t w)
{
	enum mu_status st = MU_OK;

	s->arrived[p * s->n_workers + w] = false;
	s->n_arrived[p]--;
	if (mu_kv_is_far(s, w))
		MU_MPI(MPI_Start(&s->pushes[mu_kv_request(s, p, w)]));
out:
	return st;
}

enum mu_status mu_kv_server_forget(struct mu_kv_server *s, size_t p, size_t w)
{
	if (!mu_kv_is_far(s, w))
		return MU_OK;
	return mu_wait_woken(s->kv->topology, 1, &s->pulls[mu_kv_request(s, p, w)],
			     "a worker to take weights");
}

enum mu_status mu_kv_server_return(struct mu_kv_server *s, size_t p, size_t w)
{
	enum mu_status st = MU_OK;

	if (mu_kv_is_far(s, w))
		MU_MPI(MPI_Start(&s->pulls[mu_kv_request(s, p, w)]));
	else if (w != s->self)
		mu_kv_near_return(&s->peers[w].near, p);
	if (mu_traffic_messages(s->kv))
		mu_traffic_server_part(s, p, w, MU_TRAFFIC_OUT);
	mu_wake(s->kv->topology, s->kv->topology->worker_ranks[w]);
out:
	return st;
}

enum mu_status mu_kv_server_answer(struct mu_kv_server *s, size_t w, double lr)
{
	enum mu_status st = MU_OK;

	MPI_Request *send = mu_kv_is_far(s, w) ? &s->answers[s->peers[w].slot] : NULL;

	if (send)
		MU_TRY(mu_wait_woken(s->kv->topology, 1, send, "a worker to take an answer"));
	s->kv->lr = lr;
	s->peers[w].answer = (struct wire_answer){
		.progress = s->kv->progress,
		.lr = lr,
		.count = s->round_count,
		.stale = s->stale,
	};
	s->peers[w].answered = true;
	if (send)
		MU_MPI(MPI_Start(send));
	else if (w != s->self)
		mu_kv_near_answer(&s->peers[w].near, &s->peers[w].answer);
	if (mu_traffic_messages(s->kv))
		mu_traffic_server_answer(s, w);
	/* In a step the weights that follow wake the worker: it waits for those. */
	if (s->peers[w].doing != WIRE_STEP || s->n_parts == 0)
		mu_wake(s->kv->topology, s->kv->topology->worker_ranks[w]);
out:
	return st;
}

/* Worker 0's weights of part p are here. The workers get them from worker 0 itself. */
static void take_weights(struct mu_kv_server *s, size_t p, const float *weights)
{
	const size_t nbytes = s->parts[p].n * sizeof *weights;

	if (mu_kv_held(s, p) != weights)
		memcpy(mu_kv_held(s, p), weights, nbytes);
	for (size_t f = 0; s->outbox && f < s->n_far; f++)
		memcpy(mu_kv_outbox(s, p, s->far[f]), weights, nbytes);
}

static enum mu_status take_sent_weights(struct mu_kv_server *s, size_t p)
{
	enum mu_status st = MU_OK;

	take_weights(s, p, mu_kv_inbox(s, p, 0));
	MU_TRY(mu_kv_server_reuse(s, p, 0));
	if (--s->peers[0].parts_left == 0)
		MU_TRY(mu_kv_server_answer(s, 0, s->kv->lr));
out:
	return st;
}

static enum mu_status begin_init(struct mu_kv_server *s, size_t w)
{
	enum mu_status st = MU_OK;

	if (w != 0)
		MU_FAIL(MU_ERR_ARGUMENT, "worker %zu sends first weights: only worker 0 may", w);
	s->peers[0].parts_left = mu_kv_is_far(s, 0) ? s->n_parts : 0;
	for (size_t p = 0; p < s->n_parts; p++) {
		if (!mu_kv_is_far(s, 0))
			take_weights(s, p, s->peers[0].near.results + s->parts[p].at);
		else if (s->arrived[p * s->n_workers])
			MU_TRY(take_sent_weights(s, p));
	}
	if (!mu_kv_is_far(s, 0) || s->n_parts == 0)
		MU_TRY(mu_kv_server_answer(s, 0, s->kv->lr));
out:
	return st;
}

static enum mu_status take_order(struct mu_kv_server *s, size_t w)
{
	enum mu_status st = MU_OK;
	struct mu_kv_peer *peer = &s->peers[w];
	uint64_t step = peer->order.step;

	if (peer->parts_left > 0 || peer->waiting)
		MU_FAIL(MU_ERR_ARGUMENT, "worker %zu gives an order before its step %llu is done",
			w, (unsigned long long)peer->step);
	peer->doing = (enum wire_kind)peer->order.kind;
	peer->count = peer->order.count;
	peer->answered = false;
	if (mu_traffic_messages(s->kv))
		mu_traffic_server_order(s, w);
	if (peer->doing != WIRE_FINISH && mu_kv_is_far(s, w))
		MU_MPI(MPI_Start(&s->orders[peer->slot]));
	switch (peer->doing) {
	case WIRE_STEP:
		if (step != peer->step + 1)
			MU_FAIL(MU_ERR_ARGUMENT, "worker %zu begins step %llu after step %llu", w,
				(unsigned long long)step, (unsigned long long)peer->step);
		peer->step = step;
		MU_TRY(s->policy->step(s, w));
		break;
	case WIRE_PULL: MU_TRY(s->policy->pull(s, w)); break;
	case WIRE_ASK: MU_TRY(mu_kv_server_answer(s, w, s->kv->lr)); break;
	case WIRE_INIT: MU_TRY(begin_init(s, w)); break;
	case WIRE_FINISH:
		peer->finished = true;
		s->n_finished++;
		MU_TRY(s->policy->finish(s, w));
		break;
	default:
		MU_FAIL(MU_ERR_ARGUMENT, "worker %zu gives an order of kind %d, which there is not",
			w, (int)peer->doing);
	}
out:
	return st;
}

static enum mu_status take_part(struct mu_kv_server *s, size_t p, size_t w)
{
	s->arrived[p * s->n_workers + w] = true;
	s->n_arrived[p]++;
	if (mu_traffic_messages(s->kv))
		mu_traffic_server_part(s, p, w, MU_TRAFFIC_IN);
	if (s->peers[w].doing == WIRE_INIT && s->peers[w].parts_left > 0)
		return take_sent_weights(s, p);
	return s->policy->part(s, p, w);
}

enum mu_status mu_kv_server_order(struct mu_kv_server *s, const struct wire_order *order)
{
	s->peers[s->self].order = *order;
	return take_order(s, s->self);
}

enum mu_status mu_kv_server_part(struct mu_kv_server *s, size_t p)
{
	return take_part(s, p, s->self);
}

static enum mu_status handle_messages(struct mu_kv_server *s, int *n)
{
	enum mu_status st = MU_OK;
	MPI_Status *volatile ignore = MPI_STATUSES_IGNORE; /* volatile: see mu_wait_all */
	int n_polled = mu_count(n_requests(s));

	*n = 0;
	if (n_polled == 0)
		goto out;
	MU_MPI(MPI_Testsome(n_polled, s->orders, n, s->completed, ignore));
	if (*n == MPI_UNDEFINED)
		*n = 0;
	for (int i = 0; i < *n; i++) {
		size_t at = (size_t)s->completed[i];
		size_t w = s->far[at % s->n_far]; /* orders are as many as far workers */

		if (at < s->n_far)
			MU_TRY(take_order(s, w));
		else
			MU_TRY(take_part(s, at / s->n_far - 1, w));
	}
out:
	return st;
}

static enum mu_status handle_notes(struct mu_kv_server *s, int *n)
{
	enum mu_status st = MU_OK;

	for (size_t w = 0; w < s->n_workers; w++) {
		struct mu_kv_peer *peer = &s->peers[w];
		uint32_t note;

		while (peer->near.pipe && mu_kv_near_next(&peer->near, &note)) {
			++*n;
			if (note != NEAR_ORDER) {
				MU_TRY(take_part(s, note, w));
				continue;
			}
			peer->order = peer->near.pipe->order;
			MU_TRY(take_order(s, w));
		}
	}
out:
	return st;
}

/* All workers are done: take the receives back that were posted for a next step. */
static enum mu_status stop(struct mu_kv_server *s)
{
	enum mu_status st = MU_OK;
	size_t n_all = s->n_far * s->n_parts;

	for (size_t i = 0; i < n_all; i++)
		MU_MPI(MPI_Cancel(&s->pushes[i]));
	MU_TRY(mu_wait_woken(s->kv->topology, mu_count(n_all), s->pushes,
			     "receives to be cancelled"));
	for (size_t w = 0; w < s->n_workers; w++)
		MU_TRY(mu_kv_server_answer(s, w, s->kv->lr));
	MU_TRY(mu_wait_woken(s->kv->topology, mu_count(n_requests(s)), s->answers,
			     "the workers to take the last answers"));
out:
	return st;
}

enum mu_status mu_kv_server_start(struct mu_kv_server *s)
{
	enum mu_status st = MU_OK;

	if (!s->started)
		MU_MPI(MPI_Startall(mu_count(n_requests(s)), s->orders));
	s->started = true;
out:
	return st;
}

enum mu_status mu_kv_server_poll(struct mu_kv_server *s, int *n)
{
	enum mu_status st = MU_OK;

	*n = 0;
	if (s->stopped)
		goto out;
	MU_TRY(handle_messages(s, n));
	MU_TRY(handle_notes(s, n));
	if (s->n_finished == s->n_workers) {
		MU_TRY(stop(s));
		s->stopped = true;
	}
out:
	return st;
}

enum mu_status mu_kv_server_serve(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct mu_kv_server *s = kv->server;
	struct mu_waiter waiter;
	int n = 0;

	MU_TRY(mu_kv_server_start(s));
	mu_waiter_init(&waiter, kv->topology);
	waiter.only_woken = s->n_far == 0;
	while (!s->stopped) {
		MU_TRY(mu_kv_server_poll(s, &n));
		if (n > 0) {
			mu_waiter_reset(&waiter);
			continue;
		}
		mu_waiter_nap(&waiter);
		MU_TRY(mu_waiter_check(&waiter, mu_kv_late_workers, s));
	}
out:
	return st;
}
