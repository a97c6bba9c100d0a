/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dist_sync on a server. A round opens when every worker's order is here, which fixes the samples
 * and the learning rate; then each part is summed, in worker order, and updated as soon as all
 * workers' gradients of it are here. Workers are counted, not messages: a worker has one place per
 * part, and refills it only after its answer.
 */
#include <string.h>

#include "dist.h"

/* Sum, update, block by block: a block's sum is still in the cache when the update reads it. */
static void sum_and_update(struct mu_kv_server *s, size_t p)
{
	const struct mu_kv_part *part = &s->parts[p];
	float *held = mu_kv_held(s, p);

	if (s->round_count <= 0)
		return;
	mu_clock_start(MU_CLOCK_UPDATE);
	if (s->optim)
		mu_optim_begin(s->optim, p, s->round_lr, s->round_count);
	for (size_t from = 0; from < part->n; from += MU_KV_BLOCK) {
		size_t n = part->n - from < MU_KV_BLOCK ? part->n - from : MU_KV_BLOCK;
		float *out = s->optim ? s->sum : held + from;
		const float *sum = out;

		for (size_t w = 0; w < s->n_workers; w++)
			s->sources[w] = mu_kv_inbox(s, p, w) + from;
		if (s->n_workers > 1)
			mu_optim_sum(out, s->sources, s->n_workers, n);
		else if (s->optim)
			sum = s->sources[0];
		else
			memcpy(out, s->sources[0], n * sizeof *out);
		if (s->optim)
			mu_optim_block(s->optim, p, from, n, held + from, sum);
	}
	mu_clock_stop(MU_CLOCK_UPDATE);
}

static enum mu_status update_if_complete(struct mu_kv_server *s, size_t p)
{
	enum mu_status st = MU_OK;
	MPI_Request *pulls = s->pulls + p * s->n_others;

	if (s->round_left == 0 || s->n_arrived[p] < s->n_workers)
		goto out;
	/*
	 * The workers have the last weights, or they could not have pushed; this only lets MPI
	 * forget the sends.
	 */
	MU_TRY(mu_wait_all(mu_count(s->n_others), pulls, "the workers to take weights"));
	sum_and_update(s, p);
	for (size_t w = 0; w < s->n_workers; w++)
		MU_TRY(mu_kv_server_reuse(s, p, w));
	s->round_left--;
	s->updates[p]++;
	MU_MPI(MPI_Startall(mu_count(s->n_others), pulls));
	for (size_t w = 0; w < s->n_workers; w++)
		mu_wake(s->kv->topology, s->kv->topology->worker_ranks[w]);
out:
	return st;
}

static enum mu_status open_round(struct mu_kv_server *s)
{
	enum mu_status st = MU_OK;

	s->n_waiting = 0;
	s->round_count = 0;
	for (size_t w = 0; w < s->n_workers; w++) {
		s->peers[w].waiting = false;
		s->round_count += s->peers[w].count;
	}
	s->round_lr = mu_schedule_lr(&s->kv->schedule, s->kv->progress);
	s->kv->progress += s->round_count;
	s->round_left = s->n_parts;
	for (size_t w = 0; w < s->n_workers; w++)
		MU_TRY(mu_kv_server_answer(s, w, s->round_lr));
	for (size_t p = 0; p < s->n_parts; p++)
		MU_TRY(update_if_complete(s, p));
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
			w, (unsigned long long)s->peers[w].step);
	s->peers[w].waiting = true;
	if (++s->n_waiting == s->n_workers)
		MU_TRY(open_round(s));
out:
	return st;
}

static enum mu_status part_arrived(struct mu_kv_server *s, size_t p, size_t w)
{
	(void)w;
	return update_if_complete(s, p);
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

	if (s->n_waiting > 0)
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
	.pull = pull,
	.finish = finish,
};
