/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Staleness of dist_async: its figures, and its bound (stale synchronous parallel: Ho et al., More
 * effective distributed ML via a stale synchronous parallel parameter server, NIPS 2013).
 *
 * With the bound k a server answers a worker's step s only when it has received all its parts of
 * step s - k from every other worker that has not finished. A worker waits for the answers of all
 * servers before it reads a weight. So step t + k + 1 begins after all have pushed step t, and its
 * weights include those pushes. Pushes always update at once.
 *
 * No deadlock: let m be the least number of complete steps that a server has from a worker that has
 * not finished. The answer to that worker's step m waits only for steps up to m - k, which all
 * servers have. So the worker continues and pushes step m + 1, whose parts nothing delays.
 */
#include "dist.h"

/* Must worker w's step wait for worker v? */
static bool waits_for(const struct mu_kv_server *s, size_t w, size_t v)
{
	const struct mu_kv_peer *other = &s->from.peers[v];

	return v != w && !other->finished && other->pushed < s->from.peers[w].step &&
	       s->from.peers[w].step - other->pushed > s->kv->rules.max_staleness;
}

bool mu_kv_staleness_is_ahead(const struct mu_kv_server *s, size_t w)
{
	for (size_t v = 0; s->kv->rules.bounded && s->notice == 0 && v < s->from.n_workers; v++)
		if (waits_for(s, w, v))
			return true;
	return false;
}

bool mu_kv_staleness_delays_others(const struct mu_kv_server *s, size_t w)
{
	for (size_t v = 0; s->kv->rules.bounded && v < s->from.n_workers; v++)
		if (s->from.peers[v].waiting && waits_for(s, v, w))
			return true;
	return false;
}

void mu_kv_staleness_count(struct mu_kv_server *s, size_t w)
{
	double stale = s->stale.pushes - s->from.peers[w].seen, most = MU_KV_STALENESS_BINS - 1;

	s->stale.sum += stale;
	s->stale.counts[(size_t)(stale < most ? stale : most)]++;
	if (stale > s->stale.max)
		s->stale.max = stale;
}

void mu_kv_staleness_gather(struct mu_kv *kv, const struct wire_answer *answers)
{
	struct mu_kv_staleness *total = &kv->staleness;
	double sum = 0;

	*total = (struct mu_kv_staleness){0};
	for (int i = 0; i < kv->ends.n_servers; i++) {
		const struct wire_staleness *stale = &answers[i].stale;

		total->pushes += stale->pushes;
		sum += stale->sum;
		if (stale->max > total->max)
			total->max = stale->max;
		for (size_t b = 0; b < MU_KV_STALENESS_BINS; b++)
			total->counts[b] += stale->counts[b];
		if (stale->held_back > total->held_back)
			total->held_back = stale->held_back;
		if (stale->held_back_seconds > total->held_back_seconds)
			total->held_back_seconds = stale->held_back_seconds;
	}
	total->mean = total->pushes > 0 ? sum / total->pushes : 0;
}

void mu_kv_staleness(const struct mu_kv *kv, struct mu_kv_staleness *staleness)
{
	*staleness = kv->staleness;
}
