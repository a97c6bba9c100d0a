/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shards of gradients between ranks (mu_kv_config.lives). A server end has inboxes for some buckets
 * at a time: the receives of a bucket start when the parts of the bucket before it in its slot are
 * taken, that is summed. A worker that writes gradients where others were waits until these are
 * taken by the server ends that read them in place, and sent to the others.
 */
#include "dist.h"

/* ---- server end ---- */

/* Where its parts arrive, and how many of each bucket are to be taken in a round. */
enum mu_status mu_kv_server_shards_open(struct mu_kv_server *s)
{
	enum mu_status st = MU_OK;
	const struct mu_kv *kv = s->kv;
	struct mu_kv_shards *h = &s->shards;
	const size_t n_buckets = kv->model.plan.n_buckets;

	s->arrivals.n_inbox = s->held.n;
	for (size_t p = 0; p < s->held.n_parts; p++)
		s->held.parts[p].inbox = s->held.parts[p].local;
	if (!kv->model.lives)
		goto out;
	MU_TRY(mu_kv_slots_of_inbox(&h->slots, &kv->model.plan, kv->model.lives, s->index));
	MU_TRY(MU_ALLOC(h->first, n_buckets + 1, "parts of every bucket"));
	MU_TRY(MU_ALLOC(h->left, n_buckets, "parts that are not summed"));
	MU_TRY(MU_ALLOC(h->taken, s->held.n_parts + 1, "sums of every part"));
	if (kv->rules.whole_steps)
		MU_TRY(MU_ALLOC(h->sums, s->held.n + 1, "sums of gradients"));
	s->arrivals.n_inbox = h->slots.n;
	for (size_t b = 0, p = 0; b < n_buckets; b++) {
		const size_t end = kv->model.plan.buckets[b].at + kv->model.plan.buckets[b].n;

		h->first[b] = p;
		for (; p < s->held.n_parts && s->held.parts[p].at < end &&
		       s->held.parts[p].at >= kv->model.plan.buckets[b].at;
		     p++)
			s->held.parts[p].inbox = h->slots.at[b] + s->held.parts[p].local -
						 s->held.parts[h->first[b]].local;
		h->first[b + 1] = p;
		h->left[b] = p - h->first[b];
	}
out:
	return st;
}

void mu_kv_server_shards_close(struct mu_kv_shards *h)
{
	mu_kv_slots_release(&h->slots);
	mu_free(h->first);
	mu_free(h->left);
	mu_free(h->taken);
	mu_free(h->sums);
}

/* Starts the receives of a bucket, or of the next one of its slot that this server has parts of. */
static enum mu_status pass_on(struct mu_kv_server *s, size_t b)
{
	enum mu_status st = MU_OK;
	const struct mu_kv_shards *h = &s->shards;

	for (size_t i = 0; i < s->kv->model.plan.n_buckets && h->first[b + 1] == h->first[b]; i++)
		b = h->slots.next[b];
	MU_MPI(MPI_Startall(mu_count((h->first[b + 1] - h->first[b]) * s->from.n_inboxes),
			    s->requests.pushes + h->first[b] * s->from.n_inboxes));
out:
	return st;
}

enum mu_status mu_kv_server_shards_start(struct mu_kv_server *s)
{
	enum mu_status st = MU_OK;

	MU_MPI(MPI_Startall(mu_count(s->from.n_remote), s->requests.orders));
	for (size_t b = 0; b < s->kv->model.plan.n_buckets; b++)
		if (s->shards.slots.before[b] == MU_KV_NO_BUCKET)
			MU_TRY(pass_on(s, b));
out:
	return st;
}

enum mu_status mu_kv_server_shards_taken(struct mu_kv_server *s, size_t p)
{
	enum mu_status st = MU_OK;
	struct mu_kv_shards *h = &s->shards;
	const size_t b = mu_kv_plan_bucket(&s->kv->model.plan, s->held.parts[p].at);

	h->taken[p]++;
	if (--h->left[b] > 0)
		goto out;
	h->left[b] = h->first[b + 1] - h->first[b];
	MU_TRY(pass_on(s, h->slots.next[b]));
out:
	return st;
}

/* ---- worker ---- */

bool mu_kv_part_is_taken(const struct mu_kv *kv, size_t bucket, size_t p)
{
	const struct mu_kv_worker *w = kv->ends.worker;
	const struct mu_kv_part *part = &kv->model.plan.parts[p];

	switch (w->routes[p].kind) {
	case MU_KV_ROUTE_OWN: return kv->ends.server->shards.taken[part->number] >= kv->step.number;
	case MU_KV_ROUTE_SHARED:
		return mu_kv_shm_is_taken(&w->shm[part->server], part->number, w->rounds);
	case MU_KV_ROUTE_LEADER: return w->leader.sent[bucket] >= w->rounds;
	case MU_KV_ROUTE_MEMBER: return mu_kv_leader_has_summed(kv, bucket, p);
	case MU_KV_ROUTE_SEND: /* its request shows it */
	case MU_KV_ROUTE_GPU: break;
	}
	return true;
}
