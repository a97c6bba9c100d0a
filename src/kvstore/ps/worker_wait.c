/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The waits of a worker. Meanwhile it works for others: as the server end of this rank, if it holds
 * one, and as a leader of its node.
 */
#include "awaited.h"

/* Large messages progress only inside MPI calls: test the push that began last. */
static enum mu_status move_messages(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	int done;

	if (kv->ends.worker->n_parts > 0)
		MU_MPI(MPI_Test(&kv->ends.worker->pushes[kv->ends.worker->last], &done,
				MPI_STATUS_IGNORE));
out:
	return st;
}

/*
 * A hosted server end finishes the round only when this worker has pushed all, and has sent its
 * node's sums: that is collective over the server ends, and others may need them to get there.
 */
static enum mu_status serve_others(struct mu_kv *kv, int *n)
{
	enum mu_status st = MU_OK;

	*n = 0;
	if (kv->ends.server)
		MU_TRY(mu_kv_server_poll(kv->ends.server, n));
	MU_TRY(mu_kv_leader_poll(kv, n));
	if (kv->ends.server && kv->ends.worker->leader.n_unsent == 0 && kv->step.buckets_left == 0)
		MU_TRY(kv->ends.server->policy->finish_round(kv->ends.server));
out:
	return st;
}

static bool part_here(const struct mu_kv *kv, size_t bucket, size_t p)
{
	const struct mu_kv_worker *w = kv->ends.worker;
	const struct mu_kv_part *part = &kv->model.plan.parts[p];

	switch (w->routes[p].kind) {
	case MU_KV_ROUTE_OWN: return kv->ends.server->held.updates[part->number] >= kv->step.number;
	case MU_KV_ROUTE_SHARED:
		return mu_kv_shm_is_returned(&w->shm[part->server], part->number, w->rounds);
	case MU_KV_ROUTE_LEADER:
	case MU_KV_ROUTE_MEMBER: return mu_kv_leader_is_back(kv, bucket, p);
	case MU_KV_ROUTE_SEND: /* its request shows it */
	case MU_KV_ROUTE_GPU: break;
	}
	return true;
}

static bool bucket_here(const struct mu_kv *kv, const struct mu_kv_wait *wait, size_t bucket)
{
	const struct mu_kv_bucket *b = &kv->model.plan.buckets[bucket];

	for (size_t i = b->first_part; i < b->first_part + b->n_parts; i++)
		if (wait->for_gradients ? !mu_kv_part_is_taken(kv, bucket, i)
					: !part_here(kv, bucket, i))
			return false;
	return true;
}

static bool answers_here(const struct mu_kv *kv)
{
	for (int s = 0; s < kv->ends.n_servers; s++) {
		if (mu_kv_is_own(kv, s) &&
		    !kv->ends.server->from.peers[kv->ends.server->self].answered)
			return false;
		if (kv->ends.worker->shm[s].pipe &&
		    !mu_kv_shm_is_answered(&kv->ends.worker->shm[s]))
			return false;
	}
	return true;
}

/* Apart from the requests: have the server ends of this node done it, too? */
static bool is_here(const struct mu_kv *kv, const struct mu_kv_wait *wait)
{
	if (wait->for_answers)
		return answers_here(kv);
	for (size_t b = wait->bucket; b < wait->bucket + wait->n_buckets; b++)
		if (!bucket_here(kv, wait, b))
			return false;
	return true;
}

enum mu_status mu_kv_worker_wait(struct mu_kv *kv, const struct mu_kv_wait *wait)
{
	enum mu_status st = MU_OK;
	MPI_Status *volatile ignore = MPI_STATUSES_IGNORE; /* volatile: see mu_wait_all */
	const struct mu_kv_awaited_servers servers = {kv, wait};
	struct mu_waiter waiter;
	int done = 0, n = 0;

	mu_waiter_init(&waiter, kv->members);
	if (wait->meeting)
		mu_meeting_enter(wait->meeting, &waiter);
	waiter.only_woken = kv->ends.worker->n_remote == 0 &&
			    (!kv->ends.server || kv->ends.server->from.n_remote == 0) &&
			    wait->n == 0;
	for (;;) {
		MU_TRY(serve_others(kv, &n));
		done = is_here(kv, wait);
		if (done && wait->n > 0)
			MU_MPI(MPI_Testall(mu_count(wait->n), wait->requests, &done, ignore));
		if (done)
			break;
		MU_TRY(move_messages(kv));
		if (n > 0) {
			mu_waiter_reset(&waiter);
			continue;
		}
		mu_waiter_nap(&waiter);
		if (wait->meeting)
			MU_TRY(mu_waiter_check(&waiter, mu_awaited_meeting, wait->meeting));
		else
			MU_TRY(mu_waiter_check(&waiter, mu_kv_awaited_servers, &servers));
	}
out:
	return st;
}

enum mu_status mu_kv_worker_poll(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	int n = 0;

	MU_TRY(mu_kv_leader_poll(kv, &n));
	MU_TRY(kv->ends.server ? mu_kv_server_poll(kv->ends.server, &n) : move_messages(kv));
out:
	return st;
}
