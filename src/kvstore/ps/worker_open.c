/* SPDX-License-Identifier: Apache-2.0 */
/* The worker end of a store with servers: its memory and its requests. See wire.h. */
#include "dist.h"

static enum mu_status check_tags(const struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	int *highest = NULL;
	int found = 0;

	MU_MPI(MPI_Comm_get_attr(kv->comm, MPI_TAG_UB, &highest, &found));
	if (found && kv->plan.n_parts > (size_t)*highest - WIRE_TAG_PART)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"the model makes %zu messages a step, and this MPI tells %d apart: larger "
			"buckets or messages are needed",
			kv->plan.n_parts, *highest - WIRE_TAG_PART);
out:
	return st;
}

static enum mu_status make_order_requests(struct mu_kv *kv, struct mu_kv_worker *w)
{
	enum mu_status st = MU_OK;
	size_t i = 0;

	for (int s = 0; s < kv->n_servers; s++) {
		int rank = kv->server_ranks[s];

		if (!mu_kv_sends_to(kv, s))
			continue;
		MU_MPI(MPI_Send_init(&w->order, sizeof w->order, MPI_BYTE, rank, WIRE_TAG_ORDER,
				     kv->comm, &w->orders[i]));
		MU_MPI(MPI_Recv_init(&w->received[s], sizeof w->received[s], MPI_BYTE, rank,
				     WIRE_TAG_ANSWER, kv->comm, &w->answers[i]));
		i++;
	}
out:
	return st;
}

static enum mu_status make_part_requests(struct mu_kv *kv, struct mu_kv_worker *w, size_t p,
					 size_t i)
{
	enum mu_status st = MU_OK;
	const struct mu_kv_part *part = &kv->plan.parts[p];
	const struct mu_kv_coded_worker *c = &w->coded;
	int n = mu_count(part->n), tag = mu_kv_part_tag(p), rank = w->routes[p].rank;

	if (c->pushes.data)
		MU_MPI(MPI_Send_init(mu_kv_codes_part(&c->pushes, p, 0),
				     mu_kv_codes_count(&c->pushes, p), MPI_BYTE, rank, tag,
				     kv->comm, &w->pushes[i]));
	else
		MU_MPI(MPI_Send_init(kv->gradients + part->at, n, MPI_FLOAT, rank, tag, kv->comm,
				     &w->pushes[i]));
	if (c->pulls.data)
		MU_MPI(MPI_Recv_init(mu_kv_codes_part(&c->pulls, p, 0),
				     mu_kv_codes_count(&c->pulls, p), MPI_BYTE, rank, tag, kv->comm,
				     &w->pulls[i]));
	else
		MU_MPI(MPI_Recv_init(kv->results + part->at, n, MPI_FLOAT, rank, tag, kv->comm,
				     &w->pulls[i]));
out:
	return st;
}

/* Of a bucket: those of the parts that go this way. */
static enum mu_status make_bucket_requests(struct mu_kv *kv, const struct mu_kv_bucket *bucket,
					   enum mu_kv_way way)
{
	enum mu_status st = MU_OK;
	struct mu_kv_worker *w = kv->worker;

	for (size_t p = bucket->first_part; p < bucket->first_part + bucket->n_parts; p++)
		if (w->routes[p].way == way)
			MU_TRY(make_part_requests(kv, w, p, w->n_parts++));
out:
	return st;
}

/* Of a bucket first what leaves when it is pushed, then what waits for the node's other workers. */
static enum mu_status make_requests(struct mu_kv *kv, struct mu_kv_worker *w)
{
	enum mu_status st = MU_OK;

	MU_TRY(make_order_requests(kv, w));
	for (size_t b = 0; b < kv->plan.n_buckets; b++) {
		w->first[b] = w->n_parts;
		MU_TRY(make_bucket_requests(kv, &kv->plan.buckets[b], MU_KV_WAY_SEND));
		w->led[b] = w->n_parts;
		MU_TRY(make_bucket_requests(kv, &kv->plan.buckets[b], MU_KV_WAY_LEAD));
	}
	w->first[kv->plan.n_buckets] = w->n_parts;
out:
	return st;
}

/* The pipes of the node's other workers to the same server ends. */
static enum mu_status find_others(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	const int n_workers = kv->topology->num_workers;
	struct mu_kv_worker *w = kv->worker;
	struct mu_kv_near other;

	MU_TRY(MU_ALLOC(w->pipes, (size_t)kv->n_servers * (size_t)n_workers, "pipes of a node"));
	for (int s = 0; s < kv->n_servers; s++) {
		w->near[s].others = w->pipes + s * n_workers;
		for (int v = 0; v < n_workers; v++) {
			mu_kv_near_find(kv, v, s, &other);
			if (other.pipe && v != kv->topology->index)
				w->near[s].others[w->near[s].n_others++] = other.pipe;
		}
	}
out:
	return st;
}

enum mu_status mu_kv_worker_open(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct mu_kv_worker *w = NULL;

	MU_TRY(check_tags(kv));
	MU_TRY(MU_ALLOC(w, 1, "worker end of the store"));
	kv->worker = w;
	MU_TRY(MU_ALLOC(w->near, (size_t)kv->n_servers, "servers of this node"));
	for (int s = 0; s < kv->n_servers; s++) {
		mu_kv_near_find(kv, kv->topology->index, s, &w->near[s]);
		w->n_far += mu_kv_sends_to(kv, s);
	}
	MU_TRY(find_others(kv));
	MU_TRY(mu_kv_routes_open(kv));
	MU_TRY(mu_kv_lead_open(kv));
	MU_TRY(MU_ALLOC(w->first, kv->plan.n_buckets + 1, "messages of every bucket"));
	MU_TRY(MU_ALLOC(w->led, kv->plan.n_buckets + 1, "messages of every bucket"));
	MU_TRY(mu_requests_new(&w->pushes, kv->plan.n_parts));
	MU_TRY(mu_requests_new(&w->pulls, kv->plan.n_parts));
	MU_TRY(mu_requests_new(&w->orders, w->n_far));
	MU_TRY(mu_requests_new(&w->answers, w->n_far));
	MU_TRY(MU_ALLOC(w->received, (size_t)kv->n_servers, "answers of the servers"));
	MU_TRY(mu_kv_coded_worker_open(kv));
	MU_TRY(make_requests(kv, w));
out:
	return st;
}

void mu_kv_worker_close(struct mu_kv_worker *w)
{
	if (!w)
		return;
	mu_requests_free(w->pushes, w->n_parts);
	mu_requests_free(w->pulls, w->n_parts);
	mu_requests_free(w->orders, w->n_far);
	mu_requests_free(w->answers, w->n_far);
	mu_kv_lead_close(&w->lead);
	mu_kv_coded_worker_close(&w->coded);
	mu_free(w->routes);
	mu_free(w->groups);
	mu_free(w->near);
	mu_free(w->pipes);
	mu_free(w->first);
	mu_free(w->led);
	mu_free(w->received);
	mu_free(w);
}
