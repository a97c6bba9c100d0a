/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A worker as the leader of parts: it sums its node's gradients of them, sends the sums, and passes
 * the results on. See nodes.h.
 */
#include <string.h>

#include "dist.h"

enum mu_status mu_kv_leader_open(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	const struct mu_members *m = kv->members;
	const struct mu_kv_nodes *nodes = &kv->nodes;
	struct mu_kv_leader *l = &kv->ends.worker->leader;
	const int node = m->topology.my_node;
	const size_t me = (size_t)m->index;

	if (!nodes->reduces[node] || nodes->by_gpus)
		goto out;
	l->workers = nodes->workers + nodes->first[node];
	l->n = nodes->first[node + 1] - nodes->first[node];
	MU_TRY(MU_ALLOC(l->all, l->n, "workers of this node"));
	for (size_t i = 0; i < l->n; i++) {
		if (kv->arrays.window)
			mu_kv_shm_neighbour(kv, mu_count(l->workers[i]), &l->all[i]);
		if (l->workers[i] == me)
			l->me = i;
	}
	MU_TRY(MU_ALLOC(l->sent, kv->model.plan.n_buckets, "buckets that were sent"));
	MU_TRY(MU_ALLOC(l->sources, l->n, "gradients to sum"));
	MU_TRY(MU_ALLOC(l->block, MU_KV_BLOCK, "a block of sums"));
	if (!kv->arrays.window)
		MU_TRY(mu_kv_leader_messages_open(kv));
out:
	return st;
}

void mu_kv_leader_close(struct mu_kv_leader *l)
{
	mu_kv_leader_messages_close(l->messages);
	mu_free(l->all);
	mu_free(l->sent);
	mu_free(l->sources);
	mu_free(l->block);
}

static bool leads_bucket(const struct mu_kv_worker *w, size_t bucket)
{
	return w->first[bucket + 1] > w->first_sum[bucket];
}

enum mu_status mu_kv_leader_begin(struct mu_kv *kv)
{
	struct mu_kv_leader *l = &kv->ends.worker->leader;

	l->n_unsent = 0;
	for (size_t b = 0; l->n > 0 && b < kv->model.plan.n_buckets; b++)
		l->n_unsent += leads_bucket(kv->ends.worker, b);
	l->n_in_flight = 0;
	return l->messages ? mu_kv_leader_messages_begin(l->messages) : MU_OK;
}

bool mu_kv_leader_has_pushed(const struct mu_kv *kv, size_t i, size_t bucket)
{
	const struct mu_kv_leader *l = &kv->ends.worker->leader;

	if (l->messages && i != l->me)
		return mu_kv_leader_has_received(kv, i, bucket);
	return atomic_load(&l->all[i].pushed[bucket]) >= kv->ends.worker->rounds;
}

/* Without shared memory: of the parts that this worker leads. */
static enum mu_status is_pushed(struct mu_kv *kv, size_t bucket, int *all)
{
	enum mu_status st = MU_OK;
	const struct mu_kv_leader *l = &kv->ends.worker->leader;

	*all = mu_kv_leader_has_pushed(kv, l->me, bucket);
	for (size_t i = 0; *all && !l->messages && i < l->n; i++)
		*all = mu_kv_leader_has_pushed(kv, i, bucket);
	if (*all && l->messages)
		MU_TRY(mu_kv_leader_gathered(kv, bucket, all));
out:
	return st;
}

bool mu_kv_leader_is_back(const struct mu_kv *kv, size_t bucket, size_t part)
{
	const struct mu_kv_worker *w = kv->ends.worker;
	const struct mu_kv_route *r = &w->routes[part];
	const size_t i = r->kind == MU_KV_ROUTE_LEADER ? w->leader.me : r->leader;

	return atomic_load_explicit(&w->leader.all[i].back[bucket], memory_order_acquire) >=
	       w->rounds;
}

bool mu_kv_leader_has_summed(const struct mu_kv *kv, size_t bucket, size_t part)
{
	const struct mu_kv_worker *w = kv->ends.worker;
	const struct mu_kv_neighbour *leader = &w->leader.all[w->routes[part].leader];

	return atomic_load_explicit(&leader->summed[bucket], memory_order_acquire) >= w->rounds;
}

void mu_kv_leader_wake(const struct mu_kv *kv)
{
	const struct mu_kv_leader *l = &kv->ends.worker->leader;

	for (size_t i = 0; i < l->n; i++)
		if (i != l->me)
			mu_wake(kv->members, mu_kv_worker_rank(kv, l->workers[i]));
}

/* The node's i-th worker's gradients of a part, the k-th that this worker leads. */
static const float *gradients_of(const struct mu_kv *kv, const struct mu_kv_part *part, size_t k,
				 size_t i)
{
	const struct mu_kv_leader *l = &kv->ends.worker->leader;

	if (l->messages && i != l->me)
		return mu_kv_leader_inbox(l, k, i);
	return l->all[i].gradients + part->gradient;
}

/* Sums into this worker's own gradients, which nobody else reads, and which are free until the
 * pull. */
static void sum_part(struct mu_kv *kv, const struct mu_kv_part *part, size_t k)
{
	struct mu_kv_leader *l = &kv->ends.worker->leader;

	for (size_t from = 0; from < part->n; from += MU_KV_BLOCK) {
		const size_t n = part->n - from < MU_KV_BLOCK ? part->n - from : MU_KV_BLOCK;

		for (size_t i = 0; i < l->n; i++)
			l->sources[i] = gradients_of(kv, part, k, i) + from;
		mu_optim_sum(l->block, l->sources, l->n, n);
		memcpy(kv->arrays.gradients + part->gradient + from, l->block,
		       n * sizeof *l->block);
	}
}

/* The whole node has pushed the bucket: sums and sends the parts that this worker leads. */
static enum mu_status send_bucket(struct mu_kv *kv, size_t bucket)
{
	enum mu_status st = MU_OK;
	struct mu_kv_worker *w = kv->ends.worker;
	const struct mu_kv_bucket *b = &kv->model.plan.buckets[bucket];
	size_t request = w->first_sum[bucket],
	       k = w->leader.messages ? w->leader.messages->first[bucket] : 0;

	for (size_t p = b->first_part; p < b->first_part + b->n_parts; p++) {
		if (w->routes[p].kind != MU_KV_ROUTE_LEADER)
			continue;
		sum_part(kv, &kv->model.plan.parts[p], k++);
		MU_MPI(MPI_Start(&w->pulls[request]));
		MU_MPI(MPI_Start(&w->pushes[request]));
		w->last = request++;
	}
	w->leader.sent[bucket] = w->rounds;
	atomic_store_explicit(&w->leader.all[w->leader.me].summed[bucket], w->rounds,
			      memory_order_release);
	if (kv->model.lives) /* others may wait to write their gradients */
		mu_kv_leader_wake(kv);
	w->leader.n_unsent--;
	w->leader.n_in_flight++;
out:
	return st;
}

static enum mu_status finish_bucket(struct mu_kv *kv, size_t bucket, int *done)
{
	enum mu_status st = MU_OK;
	struct mu_kv_worker *w = kv->ends.worker;
	MPI_Status *volatile ignore = MPI_STATUSES_IGNORE; /* volatile: see mu_wait_all */
	const size_t first = w->first_sum[bucket];

	MU_MPI(MPI_Testall(mu_count(w->first[bucket + 1] - first), w->pulls + first, done, ignore));
	if (*done && w->leader.messages)
		MU_TRY(mu_kv_leader_forward(kv, bucket, done));
	if (!*done)
		goto out;
	atomic_store_explicit(&w->leader.all[w->leader.me].back[bucket], w->rounds,
			      memory_order_release);
	w->leader.n_in_flight--;
	if (!w->leader.messages)
		mu_kv_leader_wake(kv);
out:
	return st;
}

enum mu_status mu_kv_leader_poll(struct mu_kv *kv, int *n)
{
	enum mu_status st = MU_OK;
	struct mu_kv_worker *w = kv->ends.worker;
	struct mu_kv_leader *l = &w->leader;
	int done;

	for (size_t b = 0; l->n_unsent + l->n_in_flight > 0 && b < kv->model.plan.n_buckets; b++) {
		done = 0;
		if (!leads_bucket(w, b))
			continue;
		if (l->sent[b] < w->rounds) {
			MU_TRY(is_pushed(kv, b, &done));
			if (done)
				MU_TRY(send_bucket(kv, b));
		} else if (l->sent[b] == w->rounds &&
			   atomic_load(&l->all[l->me].back[b]) < w->rounds) {
			MU_TRY(finish_bucket(kv, b, &done));
		}
		*n += done;
	}
out:
	return st;
}

/*
 * The counters are sequentially consistent: of workers that push at the same time at least one sees
 * that all have pushed.
 */
enum mu_status mu_kv_leader_push(struct mu_kv *kv, size_t bucket)
{
	enum mu_status st = MU_OK;
	struct mu_kv_leader *l = &kv->ends.worker->leader;
	int n = 0, all = 1;

	atomic_store(&l->all[l->me].pushed[bucket], kv->ends.worker->rounds);
	if (!l->messages)
		MU_TRY(is_pushed(kv, bucket, &all));
	if (all)
		mu_kv_leader_wake(kv);
	MU_TRY(mu_kv_leader_poll(kv, &n));
out:
	return st;
}
