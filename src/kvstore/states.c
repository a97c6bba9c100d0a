/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The optimiser's states of servers, to and from workers, for checkpoints (snapshot.c).
 *
 * A worker sends an order with a range of elements. A server sends, or receives, its counts and
 * then its states in that range, part by part and array by array. Both sides use this order, so one
 * tag is enough. A server handles nothing else until these messages are complete: the worker has
 * posted its side before it sent the order, and no update can come between.
 */
#include <string.h>

#include "kvstore/ps/dist.h"

/* ---- both sides ---- */

/* The elements of a part that are in [from, to), if any. */
static bool clip(const struct mu_kv_part *part, size_t from, size_t to, size_t *at, size_t *n)
{
	size_t end = part->at + part->n < to ? part->at + part->n : to;

	*at = part->at > from ? part->at : from;
	*n = end > *at ? end - *at : 0;
	return *n > 0;
}

/* dist_async: the weights are sent with their states, since both change at any time. */
static bool with_weights(const struct mu_kv *kv, enum wire_kind kind)
{
	return kv->kind.own_weights && kind == WIRE_SAVE;
}

/* Messages with one rank. */
struct link {
	MPI_Comm comm;
	int rank;
	bool sends;
	MPI_Request *requests;
	size_t n;
};

static enum mu_status move(struct link *link, void *data, size_t nbytes)
{
	enum mu_status st = MU_OK;
	MPI_Request *request = &link->requests[link->n];

	if (link->sends)
		MU_MPI(MPI_Isend(data, mu_count(nbytes), MPI_BYTE, link->rank, WIRE_TAG_STATE,
				 link->comm, request));
	else
		MU_MPI(MPI_Irecv(data, mu_count(nbytes), MPI_BYTE, link->rank, WIRE_TAG_STATE,
				 link->comm, request));
	link->n++;
out:
	return st;
}

/* ---- worker ---- */

static enum mu_status move_part(const struct mu_kv *kv, enum wire_kind kind, struct link *link,
				const struct mu_kv_part *part)
{
	enum mu_status st = MU_OK;
	struct mu_kv_snapshot *x = kv->saved.states;
	size_t at, n;

	if (!clip(part, x->from, x->to, &at, &n))
		goto out;
	if (with_weights(kv, kind))
		MU_TRY(move(link, x->weights + (at - x->from), n * sizeof(float)));
	for (int i = 0; i < kv->saved.n_names; i++)
		MU_TRY(move(link, x->arrays[i] + (at - x->from), n * sizeof(float)));
out:
	return st;
}

enum mu_status mu_kv_transfer_begin(struct mu_kv *kv, enum wire_kind kind, struct mu_kv_transfer *p)
{
	enum mu_status st = MU_OK;
	const struct mu_kv_plan *plan = &kv->model.plan;
	size_t most = (size_t)kv->ends.n_servers + (1 + MU_KV_MAX_STATES) * plan->n_parts;
	struct link link = {.comm = kv->comm, .sends = kind == WIRE_LOAD};

	MU_TRY(MU_ALLOC(p->counts, (size_t)kv->ends.n_servers, "counts of the servers"));
	MU_TRY(mu_requests_new(&p->requests, most));
	link.requests = p->requests;
	for (int s = 0; s < kv->ends.n_servers; s++) {
		if (mu_kv_is_own(kv, s))
			continue;
		link.rank = mu_kv_server_rank(kv, s);
		p->counts[s] = (struct wire_counts){kv->saved.states->updates,
						    kv->saved.states->last_lr, 0};
		MU_TRY(move(&link, &p->counts[s], sizeof p->counts[s]));
		for (size_t i = 0; i < plan->n_parts; i++)
			if (plan->parts[i].server == s)
				MU_TRY(move_part(kv, kind, &link, &plan->parts[i]));
	}
out:
	p->n = link.n;
	return st;
}

/* Servers of dist_async count separately: the progress is server 0's. */
void mu_kv_transfer_end(struct mu_kv *kv, enum wire_kind kind, const struct mu_kv_transfer *p)
{
	struct mu_kv_snapshot *x = kv->saved.states;

	if (kind == WIRE_LOAD)
		return;
	for (int s = 0; s < kv->ends.n_servers; s++) {
		if (mu_kv_is_own(kv, s))
			continue;
		if (p->counts[s].updates >= x->updates) {
			x->updates = p->counts[s].updates;
			x->last_lr = p->counts[s].last_lr;
		}
		if (s == 0)
			x->progress = p->counts[s].progress;
	}
}

void mu_kv_transfer_release(struct mu_kv_transfer *p)
{
	mu_free(p->requests);
	mu_free(p->counts);
}

/* ---- server ---- */

/* After the optimiser's arrays comes MU_KV_EXACT: the weights that the server holds. */
static float *state_of(struct mu_kv_server *s, int i, size_t p, size_t at)
{
	const struct mu_kv_part *part = &s->held.parts[p];
	const char *name;
	size_t n;
	float *state = mu_optim_state(s->held.optim, i, &name, &n);

	return (state ? state + part->local : mu_kv_held(s, p)) + (at - part->at);
}

static void set_counts(struct mu_kv_server *s, const struct wire_counts *counts)
{
	if (s->held.optim)
		mu_optim_set_counts(s->held.optim, counts->updates, counts->last_lr);
}

static struct wire_counts get_counts(const struct mu_kv_server *s)
{
	struct wire_counts counts = {.progress = s->kv->rates.progress};

	if (s->held.optim)
		mu_optim_counts(s->held.optim, &counts.updates, &counts.last_lr);
	return counts;
}

/* The worker is on this rank: copies. */
static void copy_own(struct mu_kv_server *s, enum wire_kind kind)
{
	struct mu_kv_snapshot *x = s->kv->saved.states;
	struct wire_counts counts = {x->updates, x->last_lr, 0};
	size_t at, n;

	if (kind == WIRE_LOAD)
		set_counts(s, &counts);
	else
		counts = get_counts(s);
	x->updates = counts.updates;
	x->last_lr = counts.last_lr;
	for (size_t p = 0; p < s->held.n_parts; p++)
		for (int i = 0;
		     clip(&s->held.parts[p], x->from, x->to, &at, &n) && i < s->kv->saved.n_names;
		     i++) {
			float *held = state_of(s, i, p, at);
			float *other = x->arrays[i] + (at - x->from);

			memcpy(kind == WIRE_LOAD ? held : other, kind == WIRE_LOAD ? other : held,
			       n * sizeof *held);
		}
}

static enum mu_status move_all(struct mu_kv_server *s, const struct wire_order *order,
			       struct link *link, struct wire_counts *counts)
{
	enum mu_status st = MU_OK;
	const bool weights = with_weights(s->kv, (enum wire_kind)order->kind);
	size_t at, n;

	MU_TRY(move(link, counts, sizeof *counts));
	for (size_t p = 0; p < s->held.n_parts; p++) {
		const struct mu_kv_part *part = &s->held.parts[p];

		if (!clip(part, order->from, order->to, &at, &n))
			continue;
		if (weights)
			MU_TRY(move(link, mu_kv_held(s, p) + (at - part->at), n * sizeof(float)));
		for (int i = 0; i < s->kv->saved.n_names; i++)
			MU_TRY(move(link, state_of(s, i, p, at), n * sizeof(float)));
	}
out:
	return st;
}

/* The worker is on another rank: messages. */
static enum mu_status exchange(struct mu_kv_server *s, size_t w)
{
	enum mu_status st = MU_OK;
	const struct wire_order order = s->from.peers[w].order;
	const bool load = order.kind == WIRE_LOAD;
	struct link link = {.comm = s->kv->comm, .sends = !load};
	struct wire_counts *counts = &s->from.peers[w].counts;

	*counts = get_counts(s);
	link.rank = mu_kv_worker_rank(s->kv, w);
	MU_TRY(mu_requests_new(&link.requests, 1 + (1 + MU_KV_MAX_STATES) * s->held.n_parts));
	MU_TRY(move_all(s, &order, &link, counts));
	MU_TRY(mu_wait_woken(s->kv->members, mu_count(link.n), link.requests,
			     "states of the optimizer"));
	if (load)
		set_counts(s, counts);
out:
	if (st != MU_OK)
		mu_memory_keep(); /* the worker has posted its side */
	mu_free(link.requests);
	return st;
}

enum mu_status mu_kv_server_states(struct mu_kv_server *s, size_t w)
{
	enum mu_status st = MU_OK;

	if (w == s->self)
		copy_own(s, (enum wire_kind)s->from.peers[w].order.kind);
	else
		MU_TRY(exchange(s, w));
out:
	return st;
}
