/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dist_sync and dist_sharded. A round opens when the orders of all workers are here, which
 * determine the samples and the learning rate. Then each part is summed, in one order, and updated
 * as soon as all gradients of it are here. Sources are counted, workers or nodes that reduce
 * (nodes.h): each has one inbox per part, and refills it only after its answer.
 *
 * With a rule that needs norms a complete part is only summed, into an inbox. After the last part
 * of the round the servers exchange their sums of squares and update all parts. Every server then
 * has all gradients, so none of them waits for a worker that waits for another server. With shards
 * of gradients (shards.c) the sums are in an array of their own, and the inbox is free at once.
 */
#include "dist.h"

/* Block by block: the update reads a block's sum from the cache. */
static void sum_and_update(struct mu_kv_server *s, size_t p)
{
	const struct mu_kv_part *part = &s->held.parts[p];
	float *held = mu_kv_held(s, p);

	if (s->round.count <= 0)
		return;
	mu_clock_mark((int)p);
	mu_clock_start(MU_CLOCK_UPDATE);
	mu_optim_begin(s->held.optim, p, s->round.lr, s->round.count);
	if (s->kv->rules.replaces)
		mu_kv_sum_part(s, p, held);
	for (size_t from = 0; !s->kv->rules.replaces && from < part->n; from += MU_KV_BLOCK) {
		size_t n = part->n - from < MU_KV_BLOCK ? part->n - from : MU_KV_BLOCK;

		mu_optim_block(s->held.optim, p, from, n, held + from,
			       mu_kv_sum_block(s, p, from, n));
	}
	mu_clock_stop(MU_CLOCK_UPDATE);
}

/* Part p is summed: its inboxes are free. */
static enum mu_status take(struct mu_kv_server *s, size_t p)
{
	enum mu_status st = MU_OK;

	for (size_t i = 0; i < s->from.n; i++)
		MU_TRY(mu_kv_server_receive_next(s, p, mu_kv_source(s, p, i)));
	if (s->shards.taken)
		MU_TRY(mu_kv_server_shards_taken(s, p));
out:
	return st;
}

/* Part p is updated: sends it to the workers. */
static enum mu_status answer_part(struct mu_kv_server *s, size_t p)
{
	enum mu_status st = MU_OK;

	if (!s->shards.sums)
		MU_TRY(take(s, p));
	s->held.updates[p]++;
	if (s->kv->pull_coder.codec)
		mu_kv_coded_answer(s, p, s->from.n_workers);
	for (size_t i = 0; i < s->from.n; i++)
		MU_TRY(mu_kv_server_send_part(s, p, mu_kv_source(s, p, i)));
out:
	return st;
}

static enum mu_status wait_sent(struct mu_kv_server *s, size_t p)
{
	enum mu_status st = MU_OK;

	for (size_t f = 0; f < s->from.n_inboxes; f++)
		MU_TRY(mu_kv_server_wait_sent(s, p, mu_kv_source(s, p, f)));
out:
	return st;
}

/* Where the sum of a part is kept: the first inbox, which shards need for other parts. */
static float *sum_of(const struct mu_kv_server *s, size_t p)
{
	if (s->shards.sums)
		return s->shards.sums + s->held.parts[p].local;
	return mu_kv_inbox(s, p, s->sum.workers[0]);
}

static void find(const void *context, size_t p, const float **weights, const float **gradients)
{
	const struct mu_kv_server *s = context;

	*weights = mu_kv_held(s, p);
	*gradients = sum_of(s, p);
}

/* All parts of the round are summed. Collective over the servers. */
static enum mu_status measure_and_update(struct mu_kv_server *s)
{
	enum mu_status st = MU_OK;

	if (s->round.count <= 0)
		goto out;
	mu_clock_mark(-1);
	mu_clock_start(MU_CLOCK_UPDATE);
	for (size_t p = 0; p < s->held.n_parts; p++)
		mu_optim_begin(s->held.optim, p, s->round.lr, s->round.count);
	st = mu_kv_norms_measure(&s->held.norms, s->held.optim, find, s);
	for (size_t p = 0; st == MU_OK && p < s->held.n_parts; p++)
		mu_optim_block(s->held.optim, p, 0, s->held.parts[p].n, mu_kv_held(s, p),
			       sum_of(s, p));
	mu_clock_stop(MU_CLOCK_UPDATE);
	MU_TRY(st);
out:
	return st;
}

static enum mu_status update_whole(struct mu_kv_server *s)
{
	enum mu_status st = MU_OK;

	for (size_t p = 0; p < s->held.n_parts; p++)
		MU_TRY(wait_sent(s, p));
	MU_TRY(measure_and_update(s));
	for (size_t p = s->held.n_parts; p-- > 0;) /* the first keys are needed first */
		MU_TRY(answer_part(s, p));
out:
	return st;
}

/*
 * A hosted end does this only when its worker waits for weights. Earlier, other workers may need
 * this worker's pushes, or wait for it in a collective of the program: all workers reach those and
 * their pulls in one order, but receive the last gradients at different times.
 */
static enum mu_status finish_round(struct mu_kv_server *s)
{
	if (!s->round.whole_due)
		return MU_OK;
	s->round.whole_due = false;
	return update_whole(s);
}

/* The last part of the round is summed. */
static enum mu_status whole_due(struct mu_kv_server *s)
{
	s->round.whole_due = true;
	return s->self < s->from.n_workers ? MU_OK : finish_round(s);
}

static enum mu_status update_if_complete(struct mu_kv_server *s, size_t p)
{
	enum mu_status st = MU_OK;

	if (s->round.left == 0 || s->arrivals.n_arrived[p] < s->from.n)
		goto out;
	s->round.left--;
	if (s->held.optim && s->kv->rules.whole_steps) {
		mu_kv_sum_part(s, p, sum_of(s, p));
		if (s->shards.sums)
			MU_TRY(take(s, p));
		if (s->round.left == 0)
			MU_TRY(whole_due(s));
		goto out;
	}
	MU_TRY(wait_sent(s, p));
	if (s->held.optim)
		sum_and_update(s, p);
	else if (!s->kv->rules.replaces || s->round.count > 0)
		mu_kv_sum_part(s, p, mu_kv_held(s, p));
	MU_TRY(answer_part(s, p));
out:
	return st;
}

/* With priority the part waits until all arrived messages are handled. */
static enum mu_status complete_part(struct mu_kv_server *s, size_t p)
{
	if (!s->kv->rules.priority || s->kv->rules.whole_steps)
		return update_if_complete(s, p);
	s->round.look = true;
	return MU_OK;
}

/* Updates the complete part of the first keys. */
static enum mu_status update_next(struct mu_kv_server *s, bool *more)
{
	enum mu_status st = MU_OK;
	const size_t left = s->round.left;

	for (size_t p = s->round.look ? s->held.n_parts : 0; p-- > 0 && s->round.left == left;)
		MU_TRY(update_if_complete(s, p));
	*more = s->round.look = s->round.left < left;
out:
	return st;
}

static enum mu_status open_round(struct mu_kv_server *s)
{
	enum mu_status st = MU_OK;

	s->round.n_waiting = 0;
	s->round.count = 0;
	for (size_t w = 0; w < s->from.n_workers; w++) {
		s->from.peers[w].waiting = false;
		s->round.count += s->from.peers[w].count;
	}
	s->round.lr = mu_kv_next_lr(s->kv, s->round.count);
	s->kv->rates.progress += s->round.count;
	s->round.left = s->held.n_parts;
	MU_TRY(mu_kv_server_notice(s, mu_kv_current_notice(s->kv)));
	s->answer_notice = s->notice;
	for (size_t w = 0; w < s->from.n_workers; w++)
		MU_TRY(mu_kv_server_answer(s, w, s->round.lr));
	for (size_t p = 0; p < s->held.n_parts; p++)
		MU_TRY(complete_part(s, p));
	if (s->held.optim && s->kv->rules.whole_steps &&
	    s->held.n_parts == 0) /* the other servers wait for its sums */
		MU_TRY(whole_due(s));
out:
	return st;
}

static enum mu_status step(struct mu_kv_server *s, size_t w)
{
	enum mu_status st = MU_OK;

	if (s->n_finished > 0)
		MU_FAIL(MU_ERR_ARGUMENT,
			"worker %zu begins step %llu, and another has finished: every worker of "
			"dist_sync must take the same number of steps",
			w, (unsigned long long)s->from.peers[w].step);
	s->from.peers[w].waiting = true;
	if (++s->round.n_waiting == s->from.n_workers)
		MU_TRY(open_round(s));
out:
	return st;
}

static enum mu_status part_arrived(struct mu_kv_server *s, size_t p, size_t w)
{
	(void)w;
	return complete_part(s, p);
}

static enum mu_status pull(struct mu_kv_server *s, size_t w)
{
	enum mu_status st = MU_OK;

	(void)s;
	MU_FAIL(MU_ERR_ARGUMENT, "worker %zu pulls outside a step", w);
out:
	return st;
}

static enum mu_status finish(struct mu_kv_server *s, size_t w)
{
	enum mu_status st = MU_OK;

	if (s->round.n_waiting > 0)
		MU_FAIL(MU_ERR_ARGUMENT,
			"worker %zu has finished, and others have begun another step: every "
			"worker of dist_sync must take the same number of steps",
			w);
out:
	return st;
}

const struct mu_kv_policy mu_kv_policy_sync = {
	.step = step,
	.part = part_arrived,
	.next = update_next,
	.pull = pull,
	.finish = finish,
	.finish_round = finish_round,
};

/* ---- the store ---- */

static enum mu_status open_sync(struct mu_kv *kv, const struct mu_kv_config *config)
{
	return mu_kv_ends_open(kv, config, &mu_kv_policy_sync);
}

const struct mu_kv_ops mu_kv_sync = {
	.open = open_sync,
	.init = mu_kv_worker_init,
	.step_begin = mu_kv_worker_step_begin,
	.push = mu_kv_worker_push,
	.poll = mu_kv_worker_poll,
	.pull = mu_kv_worker_pull,
	.taken = mu_kv_worker_taken,
	.step_end = mu_kv_worker_step_end,
	.finish = mu_kv_worker_finish,
	.serve = mu_kv_server_serve,
};
