/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The worker end of a store with servers. Gradients leave from the flat array and weights arrive in
 * it. See wire.h.
 */
#include "dist.h"

struct worker {
	MPI_Request *pushes, *pulls;   /* one per part */
	MPI_Request *orders, *answers; /* one per server */
	struct wire_order order;       /* of this step, the same for all servers */
	struct wire_answer *received;  /* one per server */
	int n_servers;
	size_t last; /* part whose push began last */
};

static enum mu_status make_requests(struct mu_kv *kv, struct worker *w)
{
	enum mu_status st = MU_OK;
	const int *ranks = kv->topology->server_ranks;

	for (int s = 0; s < w->n_servers; s++) {
		MU_MPI(MPI_Send_init(&w->order, sizeof w->order, MPI_BYTE, ranks[s], WIRE_TAG_ORDER,
				     kv->comm, &w->orders[s]));
		MU_MPI(MPI_Recv_init(&w->received[s], sizeof w->received[s], MPI_BYTE, ranks[s],
				     WIRE_TAG_ANSWER, kv->comm, &w->answers[s]));
	}
	for (size_t i = 0; i < kv->plan.n_parts; i++) {
		const struct mu_kv_part *part = &kv->plan.parts[i];
		int n = mu_count(part->n);
		int tag = mu_kv_part_tag(i);

		MU_MPI(MPI_Send_init(kv->gradients + part->at, n, MPI_FLOAT, ranks[part->server],
				     tag, kv->comm, &w->pushes[i]));
		MU_MPI(MPI_Recv_init(kv->weights + part->at, n, MPI_FLOAT, ranks[part->server], tag,
				     kv->comm, &w->pulls[i]));
	}
out:
	return st;
}

enum mu_status mu_kv_worker_open(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct worker *w = NULL;

	MU_TRY(MU_ALLOC(w, 1, "worker end of the store"));
	kv->end = w;
	w->n_servers = kv->topology->num_servers;
	MU_TRY(mu_kv_requests_new(&w->pushes, kv->plan.n_parts));
	MU_TRY(mu_kv_requests_new(&w->pulls, kv->plan.n_parts));
	MU_TRY(mu_kv_requests_new(&w->orders, (size_t)w->n_servers));
	MU_TRY(mu_kv_requests_new(&w->answers, (size_t)w->n_servers));
	MU_TRY(MU_ALLOC(w->received, (size_t)w->n_servers, "answers of the servers"));
	MU_TRY(make_requests(kv, w));
out:
	return st;
}

void mu_kv_worker_close(struct mu_kv *kv)
{
	struct worker *w = kv->end;

	mu_kv_requests_free(w->pushes, kv->plan.n_parts);
	mu_kv_requests_free(w->pulls, kv->plan.n_parts);
	mu_kv_requests_free(w->orders, (size_t)w->n_servers);
	mu_kv_requests_free(w->answers, (size_t)w->n_servers);
	mu_free(w->received);
	mu_free(w);
}

static void wake_servers(const struct mu_kv *kv)
{
	for (int s = 0; s < kv->topology->num_servers; s++)
		mu_wake(kv->topology, kv->topology->server_ranks[s]);
}

static enum mu_status send_orders(struct mu_kv *kv, enum wire_kind kind)
{
	enum mu_status st = MU_OK;
	struct worker *w = kv->end;

	w->order = (struct wire_order){.kind = kind, .step = kv->step, .count = kv->count};
	MU_MPI(MPI_Startall(w->n_servers, w->answers));
	MU_MPI(MPI_Startall(w->n_servers, w->orders));
	if (kind != WIRE_STEP) /* the gradients that follow wake them */
		wake_servers(kv);
out:
	return st;
}

/*
 * Every server counts the same samples; for dist_async each in its own order, and server 0 speaks
 * for all.
 */
static enum mu_status take_answers(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct worker *w = kv->end;

	MU_TRY(mu_wait_woken(kv->topology, w->n_servers, w->answers, "the servers' answers"));
	MU_TRY(mu_wait_all(w->n_servers, w->orders, "the servers to take an order"));
	kv->progress = w->received[0].progress;
	kv->lr = w->received[0].lr;
out:
	return st;
}

enum mu_status mu_kv_worker_step_begin(struct mu_kv *kv)
{
	return send_orders(kv, WIRE_STEP);
}

enum mu_status mu_kv_worker_push(struct mu_kv *kv, size_t bucket)
{
	enum mu_status st = MU_OK;
	struct worker *w = kv->end;
	const struct mu_kv_bucket *b = &kv->plan.buckets[bucket];

	/* The weights are not read any more in this step: their receive may start. */
	MU_MPI(MPI_Startall(mu_count(b->n_parts), w->pulls + b->first_part));
	MU_MPI(MPI_Startall(mu_count(b->n_parts), w->pushes + b->first_part));
	w->last = b->first_part + b->n_parts - 1;
	wake_servers(kv);
out:
	return st;
}

enum mu_status mu_kv_worker_poll(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct worker *w = kv->end;
	int done;

	/* Large messages move on inside MPI calls only: ask about the push that began last. */
	MU_MPI(MPI_Test(&w->pushes[w->last], &done, MPI_STATUS_IGNORE));
out:
	return st;
}

enum mu_status mu_kv_worker_pull(struct mu_kv *kv, size_t bucket)
{
	enum mu_status st = MU_OK;
	struct worker *w = kv->end;
	const struct mu_kv_bucket *b = &kv->plan.buckets[bucket];

	MU_TRY(mu_wait_woken(kv->topology, mu_count(b->n_parts), w->pulls + b->first_part,
			     b->what));
	MU_TRY(mu_wait_all(mu_count(b->n_parts), w->pushes + b->first_part, b->what));
out:
	return st;
}

enum mu_status mu_kv_worker_step_end(struct mu_kv *kv)
{
	return take_answers(kv);
}

enum mu_status mu_kv_worker_fetch(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct worker *w = kv->end;

	MU_MPI(MPI_Startall(mu_count(kv->plan.n_parts), w->pulls));
	MU_TRY(send_orders(kv, WIRE_PULL));
	MU_TRY(mu_wait_woken(kv->topology, mu_count(kv->plan.n_parts), w->pulls,
			     "the weights from the servers"));
	MU_TRY(take_answers(kv));
out:
	return st;
}

/* Worker 0's weights to the servers. Happens once, so its requests are made here. */
static enum mu_status send_weights(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	MPI_Request *requests = NULL;
	const struct mu_kv_plan *plan = &kv->plan;

	MU_TRY(mu_kv_requests_new(&requests, plan->n_parts));
	MU_TRY(send_orders(kv, WIRE_INIT));
	for (size_t i = 0; i < plan->n_parts; i++) {
		const struct mu_kv_part *part = &plan->parts[i];

		MU_MPI(MPI_Isend(kv->weights + part->at, mu_count(part->n), MPI_FLOAT,
				 kv->topology->server_ranks[part->server], mu_kv_part_tag(i),
				 kv->comm, &requests[i]));
	}
	wake_servers(kv);
	MU_TRY(mu_wait_all(mu_count(plan->n_parts), requests,
			   "the servers to take the first weights"));
	MU_TRY(take_answers(kv));
out:
	mu_free(requests);
	return st;
}

enum mu_status mu_kv_worker_init(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;

	/* The servers have the weights before any worker goes on. */
	if (kv->topology->index == 0)
		MU_TRY(send_weights(kv));
	MU_TRY(mu_bcast(kv->weights, kv->plan.n * sizeof *kv->weights, 0, kv->topology->peers));
out:
	return st;
}

enum mu_status mu_kv_worker_finish(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct worker *w = kv->end;
	struct mu_kv_staleness *total = &kv->staleness;
	double sum = 0;

	MU_TRY(send_orders(kv, WIRE_FINISH));
	MU_TRY(take_answers(kv));
	*total = (struct mu_kv_staleness){0};
	for (int s = 0; s < w->n_servers; s++) {
		total->pushes += w->received[s].pushes;
		sum += w->received[s].stale_sum;
		if (w->received[s].stale_max > total->max)
			total->max = w->received[s].stale_max;
	}
	total->mean = total->pushes > 0 ? sum / total->pushes : 0;
out:
	return st;
}
