/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dist_async on a server. Each part of a push updates the weights at once and is answered to its
 * worker only. The answer leaves from a copy: other workers change the weights while it is under
 * way. Samples are counted once per step, when its order comes; the learning rate follows from
 * them. With a rule that needs norms the update waits for all parts of the push, and there is one
 * server.
 */
#include <string.h>

#include "dist.h"

/*
 * Update by worker w's gradients (if any) and copy, block by block, so that the copy reads the
 * cache.
 */
static void update_and_copy(struct mu_kv_server *s, size_t p, size_t w, bool update)
{
	const struct mu_kv_part *part = &s->parts[p];
	const float *gradients = mu_kv_inbox(s, p, w);
	float *weights = mu_kv_held(s, p);
	float *copy = mu_kv_outbox(s, p, w);

	mu_clock_start(MU_CLOCK_UPDATE);
	for (size_t from = 0; from < part->n; from += MU_KV_BLOCK) {
		size_t n = part->n - from < MU_KV_BLOCK ? part->n - from : MU_KV_BLOCK;

		if (update)
			mu_optim_block(s->optim, p, from, n, weights + from, gradients + from);
		memcpy(copy + from, weights + from, n * sizeof *copy);
	}
	mu_clock_stop(MU_CLOCK_UPDATE);
}

static void begin_update(struct mu_kv_server *s, size_t p, size_t w)
{
	mu_optim_begin(s->optim, p, s->peers[w].lr, s->peers[w].count);
	mu_optim_prior(s->optim, p, mu_kv_outbox(s, p, w));
}

/* Send part p to worker w, after its own update if it is in a step. */
static enum mu_status reply(struct mu_kv_server *s, size_t p, size_t w)
{
	enum mu_status st = MU_OK;
	struct mu_kv_peer *peer = &s->peers[w];

	MU_TRY(mu_kv_server_forget(s, p, w));
	update_and_copy(s, p, w, peer->doing == WIRE_STEP);
	if (peer->doing == WIRE_STEP)
		MU_TRY(mu_kv_server_reuse(s, p, w));
	MU_TRY(mu_kv_server_return(s, p, w));
	if (--peer->parts_left == 0) {
		s->pushes_done += peer->doing == WIRE_STEP;
		peer->seen = s->pushes_done;
	}
out:
	return st;
}

static void count_staleness(struct mu_kv_server *s, size_t w)
{
	double stale = s->pushes_done - s->peers[w].seen;

	s->stale_sum += stale;
	if (stale > s->stale_max)
		s->stale_max = stale;
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

/* All parts of worker w's push are here: the norms are those of this push. */
static enum mu_status update_whole(struct mu_kv_server *s, size_t w)
{
	enum mu_status st = MU_OK;
	const struct push push = {.s = s, .w = w};

	count_staleness(s, w);
	for (size_t p = 0; p < s->n_parts; p++)
		begin_update(s, p, w);
	if (s->peers[w].count > 0)
		MU_TRY(mu_kv_norms_measure(&s->norms, s->optim, find, &push));
	for (size_t p = s->n_parts; p-- > 0;) /* the first keys are needed first */
		MU_TRY(reply(s, p, w));
out:
	return st;
}

static enum mu_status part_arrived(struct mu_kv_server *s, size_t p, size_t w)
{
	enum mu_status st = MU_OK;
	struct mu_kv_peer *peer = &s->peers[w];

	if (peer->parts_left == 0 || !s->arrived[p * s->n_workers + w])
		goto out;
	if (s->kv->whole_steps) {
		if (++peer->parts_here == s->n_parts)
			MU_TRY(update_whole(s, w));
		goto out;
	}
	if (peer->parts_left == s->n_parts) /* the first of this push */
		count_staleness(s, w);
	begin_update(s, p, w);
	MU_TRY(reply(s, p, w));
out:
	return st;
}

static enum mu_status step(struct mu_kv_server *s, size_t w)
{
	enum mu_status st = MU_OK;
	struct mu_kv_peer *peer = &s->peers[w];

	peer->lr = mu_schedule_lr(&s->kv->schedule, s->kv->progress, peer->count);
	s->kv->progress += peer->count;
	peer->parts_left = s->n_parts;
	peer->parts_here = 0;
	MU_TRY(mu_kv_server_answer(s, w, peer->lr));
	for (size_t p = 0; p < s->n_parts; p++)
		MU_TRY(part_arrived(s, p, w));
out:
	return st;
}

static enum mu_status pull(struct mu_kv_server *s, size_t w)
{
	enum mu_status st = MU_OK;

	s->peers[w].parts_left = s->n_parts;
	for (size_t p = 0; p < s->n_parts; p++)
		MU_TRY(reply(s, p, w));
	MU_TRY(mu_kv_server_answer(s, w, s->kv->lr));
out:
	return st;
}

static enum mu_status finish(struct mu_kv_server *s, size_t w)
{
	(void)s;
	(void)w;
	return MU_OK;
}

const struct mu_kv_policy mu_kv_policy_async = {
	.needs_outbox = true,
	.step = step,
	.part = part_arrived,
	.pull = pull,
	.finish = finish,
};
