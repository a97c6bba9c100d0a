/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dist_async. Each part of a push updates the weights at once; the new weights are sent to its
 * worker only, from a copy: other workers change the weights during the send. Samples are counted
 * once per step, when its order arrives; they determine the learning rate. Rules that need norms
 * update when all parts of a push are here, and there is one server. With a bound of staleness
 * (staleness.c) pushes update as without, and the answer to a worker that is too far ahead waits.
 */
#include <string.h>

#include "comm/icollective.h"
#include "dist.h"

#define ASK_SECONDS 0.5 /* how often a worker that waits for others asks the servers */

/*
 * Updates by worker w's gradients, if there are any, and copies the weights, if it is answered now.
 * Block by block: the copy reads from the cache.
 */
static void update_and_copy(struct mu_kv_server *s, size_t p, size_t w, bool update, bool copy)
{
	const struct mu_kv_part *part = &s->held.parts[p];
	const float *gradients = mu_kv_inbox(s, p, w);
	float *weights = mu_kv_held(s, p);
	float *out = mu_kv_outbox(s, p, w);

	mu_clock_mark((int)p);
	mu_clock_start(MU_CLOCK_UPDATE);
	for (size_t from = 0; from < part->n; from += MU_KV_BLOCK) {
		size_t n = part->n - from < MU_KV_BLOCK ? part->n - from : MU_KV_BLOCK;

		if (update)
			mu_optim_block(s->held.optim, p, from, n, weights + from, gradients + from);
		if (copy)
			memcpy(out + from, weights + from, n * sizeof *out);
	}
	mu_clock_stop(MU_CLOCK_UPDATE);
}

static void begin_update(struct mu_kv_server *s, size_t p, size_t w)
{
	mu_optim_begin(s->held.optim, p, s->from.peers[w].lr, s->from.peers[w].count);
	mu_optim_prior(s->held.optim, p, mu_kv_outbox(s, p, w));
}

/* Sends part p to worker w, after the update by its gradients if that is not done. */
static enum mu_status reply(struct mu_kv_server *s, size_t p, size_t w, bool update)
{
	enum mu_status st = MU_OK;
	struct mu_kv_peer *peer = &s->from.peers[w];
	const bool coded = s->kv->pull_coder.codec;

	MU_TRY(mu_kv_server_wait_sent(s, p, w));
	update_and_copy(s, p, w, update, !coded);
	if (coded)
		mu_kv_coded_answer(s, p, w);
	if (update)
		MU_TRY(mu_kv_server_receive_next(s, p, w));
	MU_TRY(mu_kv_server_send_part(s, p, w));
	if (--peer->parts_left == 0)
		peer->seen = s->stale.pushes;
out:
	return st;
}

/* Uses worker w's gradients of part p. A worker that is too far ahead is answered later. */
static enum mu_status update_part(struct mu_kv_server *s, size_t p, size_t w)
{
	enum mu_status st = MU_OK;

	if (!s->from.peers[w].waiting) {
		MU_TRY(reply(s, p, w, true));
		goto out;
	}
	update_and_copy(s, p, w, true, false);
	s->arrivals.withheld[p * s->from.n_workers + w] = true;
	MU_TRY(mu_kv_server_receive_next(s, p, w));
out:
	return st;
}

/* Answers worker w's step, which had to wait, with the present weights. */
static enum mu_status release(struct mu_kv_server *s, size_t w)
{
	enum mu_status st = MU_OK;
	struct mu_kv_peer *peer = &s->from.peers[w];

	if (peer->pushed == peer->step) { /* else it did not wait */
		s->stale.held_back++;
		s->stale.held_back_seconds += mu_now() - peer->waits_since;
	}
	peer->waiting = false;
	MU_TRY(mu_kv_server_answer(s, w, peer->lr));
	for (size_t p = s->held.n_parts; p-- > 0;) { /* the first keys are needed first */
		bool *withheld = &s->arrivals.withheld[p * s->from.n_workers + w];

		if (*withheld)
			MU_TRY(reply(s, p, w, false));
		*withheld = false;
	}
out:
	return st;
}

static enum mu_status release_all(struct mu_kv_server *s)
{
	enum mu_status st = MU_OK;

	for (size_t w = 0; w < s->from.n_workers; w++)
		if (s->from.peers[w].waiting && !mu_kv_staleness_is_ahead(s, w))
			MU_TRY(release(s, w));
out:
	return st;
}

/* Worker w's step is complete. Before the last part is answered: its weights include its own
 * push. */
static void count_push(struct mu_kv_server *s, size_t w)
{
	struct mu_kv_peer *peer = &s->from.peers[w];

	s->stale.pushes += s->held.n_parts > 0;
	peer->pushed = peer->step;
	if (peer->waiting)
		peer->waits_since = mu_now();
}

struct push {
	const struct mu_kv_server *s;
	size_t w;
};

static void find(const void *context, size_t p, const float **weights, const float **gradients)
{
	const struct push *push = context;

	*weights = mu_kv_held(push->s, p);
	*gradients = mu_kv_inbox(push->s, p, push->w);
}

/* All parts of worker w's push are here. The norms belong to this push. */
static enum mu_status update_whole(struct mu_kv_server *s, size_t w)
{
	enum mu_status st = MU_OK;
	const struct push push = {.s = s, .w = w};

	for (size_t p = 0; p < s->held.n_parts; p++)
		begin_update(s, p, w);
	if (s->from.peers[w].count > 0)
		MU_TRY(mu_kv_norms_measure(&s->held.norms, s->held.optim, find, &push));
	for (size_t p = s->held.n_parts; p-- > 0;) /* the first keys are needed first */
		MU_TRY(update_part(s, p, w));
out:
	return st;
}

static enum mu_status part_arrived(struct mu_kv_server *s, size_t p, size_t w)
{
	enum mu_status st = MU_OK;
	struct mu_kv_peer *peer = &s->from.peers[w];
	bool whole = s->kv->rules.whole_steps, last;

	if (peer->parts_left == 0 || !s->arrivals.arrived[p * s->from.n_workers + w])
		goto out;
	last = ++peer->parts_here == s->held.n_parts;
	if (whole ? last : peer->parts_here == 1)
		mu_kv_staleness_count(s, w);
	if (last)
		count_push(s, w);
	if (whole && last) {
		MU_TRY(update_whole(s, w));
	} else if (!whole) {
		begin_update(s, p, w);
		MU_TRY(update_part(s, p, w));
	}
	if (last)
		MU_TRY(release_all(s));
out:
	return st;
}

static enum mu_status step(struct mu_kv_server *s, size_t w)
{
	enum mu_status st = MU_OK;
	struct mu_kv_peer *peer = &s->from.peers[w];

	peer->lr = mu_kv_next_lr(s->kv, peer->count);
	s->kv->rates.progress += peer->count;
	peer->parts_left = s->held.n_parts;
	peer->parts_here = 0;
	MU_TRY(mu_kv_server_notice(s, mu_kv_current_notice(s->kv)));
	peer->waiting = mu_kv_staleness_is_ahead(s, w);
	if (!peer->waiting)
		MU_TRY(mu_kv_server_answer(s, w, peer->lr));
	for (size_t p = 0; p < s->held.n_parts; p++)
		MU_TRY(part_arrived(s, p, w));
	if (s->held.n_parts == 0) {
		count_push(s, w);
		MU_TRY(release_all(s));
	}
out:
	return st;
}

static enum mu_status pull(struct mu_kv_server *s, size_t w)
{
	enum mu_status st = MU_OK;

	s->from.peers[w].parts_left = s->held.n_parts;
	for (size_t p = 0; p < s->held.n_parts; p++)
		MU_TRY(reply(s, p, w, false));
	MU_TRY(mu_kv_server_answer(s, w, s->kv->rates.lr));
out:
	return st;
}

/* Workers that have received it may take no more steps: nobody waits for them. */
static enum mu_status notice(struct mu_kv_server *s)
{
	s->answer_notice = s->notice;
	return release_all(s);
}

/* Nobody waits for a worker that has finished. */
static enum mu_status finish(struct mu_kv_server *s, size_t w)
{
	(void)w;
	return release_all(s);
}

const struct mu_kv_policy mu_kv_policy_async = {
	.needs_outbox = true,
	.step = step,
	.part = part_arrived,
	.pull = pull,
	.finish = finish,
	.notice = notice,
};

/* ---- the store ---- */

static enum mu_status open_async(struct mu_kv *kv, const struct mu_kv_config *config)
{
	return mu_kv_ends_open(kv, config, &mu_kv_policy_async);
}

/* With a bound no weight is read before all servers have answered the step. */
static enum mu_status pull_bounded(struct mu_kv *kv, size_t bucket)
{
	enum mu_status st = MU_OK;
	double count;

	if (kv->rules.bounded)
		MU_TRY(mu_kv_worker_answers(kv, &count));
	MU_TRY(mu_kv_worker_pull(kv, bucket));
out:
	return st;
}

/*
 * Waits for all workers. A worker cannot see whether workers on other nodes still train; the
 * servers can: it asks them from time to time how many samples they have counted.
 */
/* *moved: have the servers counted samples since the last call? */
static enum mu_status ask(struct mu_kv *kv, struct mu_waiter *waiter, bool *moved)
{
	enum mu_status st = MU_OK;
	const double before = kv->rates.progress;

	mu_waiter_nest(waiter, true);
	MU_TRY(mu_kv_worker_ask(kv));
	*moved = kv->rates.progress != before;
out:
	mu_waiter_nest(waiter, false);
	return st;
}

static enum mu_status meet(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	const struct mu_meeting meeting = mu_peers_meeting(kv->members, "all workers");
	MPI_Request request = MPI_REQUEST_NULL;
	struct mu_waiter waiter;
	double next = mu_now() + ASK_SECONDS;
	int done = 0;

	MU_TRY(mu_ibarrier(meeting.comm, &request));
	mu_waiter_init(&waiter, NULL);
	mu_meeting_enter(&meeting, &waiter);
	for (;;) {
		bool moved = false;

		MU_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
		if (done)
			break;
		mu_waiter_nap(&waiter);
		if (mu_now() > next) {
			MU_TRY(ask(kv, &waiter, &moved));
			next = mu_now() + ASK_SECONDS;
		}
		if (moved)
			mu_waiter_reset(&waiter);
		else
			MU_TRY(mu_waiter_check(&waiter, mu_awaited_meeting, &meeting));
	}
out:
	return st;
}

const struct mu_kv_ops mu_kv_async = {
	.open = open_async,
	.init = mu_kv_worker_init,
	.step_begin = mu_kv_worker_step_begin,
	.push = mu_kv_worker_push,
	.poll = mu_kv_worker_poll,
	.pull = pull_bounded,
	.step_end = mu_kv_worker_step_end,
	.fetch = mu_kv_worker_fetch,
	.meet = meet,
	.finish = mu_kv_worker_finish,
	.serve = mu_kv_server_serve,
};
