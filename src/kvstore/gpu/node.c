/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL inside a node: a layer over dist_sync, dist_async and dist_sharded, whose messages are sent
 * from the host's arrays and received in them.
 *
 * Synchronous stores: the GPUs of a node's workers are one communicator. Every part of a bucket has
 * a home, one of these GPUs. NCCL sums the node's gradients of the part on its home, during
 * backward. The sum is copied to the host of the home's worker, the only one of the node that
 * pushes the part to its server end and pulls it (nodes.h). The new weights are copied to the home,
 * and from there to the other GPUs. dist_async, where every push is an update: the same with the
 * GPUs of a worker.
 *
 * A bucket is pushed when its sums are on the host; the worker checks that whenever it calls the
 * store. No deadlock: every worker starts all sums of a step before it waits for a server, and
 * works for others while it waits for NCCL.
 */
#include "nccl.h"

#include <muster/base.h>

#include "kvstore/ps/dist.h"

/* ---- NCCL ---- */

static ncclResult_t reduce(const struct mu_kv *kv, const struct nccl_gpu *g, size_t bucket)
{
	const struct mu_nccl *n = kv->ends.nccl;
	const struct mu_kv_bucket *b = &kv->model.plan.buckets[bucket];
	ncclResult_t result = ncclSuccess;

	for (size_t i = 0; i < b->n_parts && nccl_is_taken(result); i++) {
		const size_t p = b->first_part + i;
		float *x = g->gradients + kv->model.plan.parts[p].at;

		result = n->api.ncclReduce(x, x, kv->model.plan.parts[p].n, ncclFloat32, ncclSum,
					   (int)n->homes[p], g->comm, g->stream);
	}
	return result;
}

static ncclResult_t broadcast(const struct mu_kv *kv, const struct nccl_gpu *g, size_t bucket)
{
	const struct mu_nccl *n = kv->ends.nccl;
	const struct mu_kv_bucket *b = &kv->model.plan.buckets[bucket];
	ncclResult_t result = ncclSuccess;

	for (size_t i = 0; i < b->n_parts && nccl_is_taken(result); i++) {
		const size_t p = b->first_part + i;
		float *x = g->weights + kv->model.plan.parts[p].at;

		result = n->api.ncclBroadcast(x, x, kv->model.plan.parts[p].n, ncclFloat32,
					      (int)n->homes[p], g->comm, g->stream);
	}
	return result;
}

/* ---- copies ---- */

/* The home of a part; NULL: it is another worker's. */
static const struct nccl_gpu *home_of(const struct mu_nccl *n, size_t part)
{
	const size_t home = n->homes[part];

	return home >= n->first && home < n->first + n->n_gpus ? &n->gpus[home - n->first] : NULL;
}

/* Parts of a bucket whose home is here: copies sums to the host, or weights from it. */
static enum mu_status copy_parts(struct mu_kv *kv, size_t bucket, bool weights)
{
	enum mu_status st = MU_OK;
	const struct mu_nccl *n = kv->ends.nccl;
	const struct mu_kv_bucket *b = &kv->model.plan.buckets[bucket];

	for (size_t p = b->first_part; p < b->first_part + b->n_parts; p++) {
		const struct mu_kv_part *part = &kv->model.plan.parts[p];
		const struct nccl_gpu *g = home_of(n, p);
		const size_t nbytes = part->n * sizeof(float);

		if (!g)
			continue;
		MU_TRY(mu_nccl_enter(g));
		if (weights)
			NCCL_CU(n, cuMemcpyHtoDAsync, nccl_pointer(g->weights + part->at),
				kv->arrays.weights + part->at, nbytes, g->stream);
		else
			NCCL_CU(n, cuMemcpyDtoHAsync, kv->arrays.gradients + part->at,
				nccl_pointer(g->gradients + part->at), nbytes, g->stream);
	}
out:
	return st;
}

static enum mu_status fetch_sums(struct mu_kv *kv, size_t bucket)
{
	enum mu_status st = MU_OK;
	const struct mu_nccl *n = kv->ends.nccl;

	MU_TRY(copy_parts(kv, bucket, false));
	for (size_t i = 0; i < n->n_gpus; i++) {
		MU_TRY(mu_nccl_enter(&n->gpus[i]));
		NCCL_CU(n, cuEventRecord, n->gpus[i].summed[bucket], n->gpus[i].stream);
	}
out:
	return st;
}

/* ---- a step ---- */

static enum mu_status sum_bucket(struct mu_kv *kv, size_t bucket)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_nccl_after_work(kv));
	MU_TRY(mu_nccl_comm_move(kv, reduce, bucket));
	MU_TRY(fetch_sums(kv, bucket));
out:
	return st;
}

/* Are this worker's sums of a bucket on the host? */
static enum mu_status is_summed(struct mu_kv *kv, size_t bucket, bool *summed)
{
	enum mu_status st = MU_OK;
	const struct mu_nccl *n = kv->ends.nccl;

	*summed = true;
	for (size_t i = 0; i < n->n_gpus && *summed; i++) {
		const CUresult result = n->api.cuEventQuery(n->gpus[i].summed[bucket]);

		if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY)
			MU_TRY(mu_nccl_gpu_failed(n, &n->gpus[i],
						  kv->model.plan.buckets[bucket].what, result));
		*summed = result == CUDA_SUCCESS;
	}
out:
	return st;
}

static enum mu_status push_summed(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct mu_nccl *n = kv->ends.nccl;
	bool summed = true;

	while (n->pushed < n->sent && summed) {
		MU_TRY(is_summed(kv, n->pushed, &summed));
		if (summed)
			MU_TRY(kv->kind.below->push(kv, n->pushed++));
	}
out:
	return st;
}

static enum mu_status poll(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;

	MU_TRY(push_summed(kv));
	MU_TRY(kv->kind.below->poll(kv));
out:
	return st;
}

/* In a wait. A hosted end finishes a round (sync.c) only after its worker has pushed everything. */
static enum mu_status serve(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;

	MU_TRY(poll(kv));
	if (kv->ends.server && kv->ends.nccl->pushed == kv->model.plan.n_buckets)
		MU_TRY(kv->ends.server->policy->finish_round(kv->ends.server));
out:
	return st;
}

static enum mu_status step_begin(struct mu_kv *kv)
{
	struct mu_nccl *n = kv->ends.nccl;

	n->sent = n->pushed = 0;
	n->left = kv->model.plan.n_buckets;
	return kv->kind.below->step_begin(kv);
}

/* Buckets are summed in their order, even if keys are ready in another. */
static enum mu_status push(struct mu_kv *kv, size_t bucket)
{
	enum mu_status st = MU_OK;
	struct mu_nccl *n = kv->ends.nccl;

	(void)bucket;
	for (; n->sent < kv->model.plan.n_buckets && kv->step.keys_left[n->sent] == 0; n->sent++)
		MU_TRY(sum_bucket(kv, n->sent));
	MU_TRY(push_summed(kv));
out:
	return st;
}

/* Waits until all buckets are pushed. */
static enum mu_status push_rest(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct mu_nccl *n = kv->ends.nccl;
	struct mu_waiter waiter;

	mu_waiter_init(&waiter, kv->members);
	waiter.members = NULL; /* GPUs do not wake ranks */
	for (;;) {
		const size_t before = n->pushed;

		MU_TRY(poll(kv));
		if (n->pushed == kv->model.plan.n_buckets)
			break;
		MU_TRY(mu_nccl_comm_check(n, kv->model.plan.buckets[n->pushed].what));
		if (n->pushed > before)
			mu_waiter_reset(&waiter);
		else
			mu_waiter_nap(&waiter);
		MU_TRY(mu_waiter_check(&waiter, NULL, kv->model.plan.buckets[n->pushed].what));
	}
out:
	return st;
}

/* The stream has waited for all work that reads the old weights, before the sums of the step. */
static enum mu_status distribute_bucket(struct mu_kv *kv, size_t bucket)
{
	enum mu_status st = MU_OK;
	const struct mu_nccl *n = kv->ends.nccl;

	MU_TRY(copy_parts(kv, bucket, true));
	MU_TRY(mu_nccl_comm_move(kv, broadcast, bucket));
	for (size_t i = 0; i < n->n_gpus; i++)
		MU_TRY(mu_nccl_order(n, &n->gpus[i], n->gpus[i].stream, &n->gpus[i],
				     n->gpus[i].work));
out:
	return st;
}

/* As in nccl.c: the host waits for the GPUs at the first and at the last bucket. */
static enum mu_status pull(struct mu_kv *kv, size_t bucket)
{
	enum mu_status st = MU_OK;
	struct mu_nccl *n = kv->ends.nccl;
	const bool begins = n->left == kv->model.plan.n_buckets, ends = n->left > 0 && bucket == 0;

	if (begins)
		MU_TRY(push_rest(kv));
	while (n->left > bucket) {
		MU_TRY(kv->kind.below->pull(kv, n->left - 1));
		MU_TRY(distribute_bucket(kv, --n->left));
	}
	if (begins || ends)
		MU_TRY(mu_nccl_wait_idle(kv, "the sums of the node's GPUs"));
out:
	return st;
}

static enum mu_status step_end(struct mu_kv *kv)
{
	return kv->kind.below->step_end(kv);
}

/* ---- life ---- */

/* A part's home: its number among all GPUs. counts: GPUs of each worker of the communicator. */
static size_t find_home(const struct mu_kv *kv, const struct mu_kv_part *part, const size_t *counts)
{
	const struct mu_kv_group *g = &kv->ends.worker->groups[part->server];
	const size_t leader = mu_kv_group_leader(g, part->number);
	const struct mu_members *m = kv->members;
	const struct mu_kv_nodes *nodes = &kv->nodes;
	const int node = m->topology.my_node;
	size_t home = 0, i = 0;

	if (nodes->reduces[node]) /* else the worker is alone */
		for (const size_t *w = nodes->workers + nodes->first[node]; *w != leader; w++)
			home += counts[i++];
	return home + part->number / g->n % counts[i];
}

static enum mu_status find_homes(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct mu_nccl *n = kv->ends.nccl;
	size_t *counts = NULL;
	int me, n_workers;

	MU_TRY(mu_comm_rank(n->comm, &me, &n_workers));
	MU_TRY(MU_ALLOC(counts, (size_t)n_workers, "GPUs of the workers"));
	MU_TRY(MU_ALLOC(n->homes, kv->model.plan.n_parts, "homes of parts"));
	MU_TRY(mu_allgather(&n->n_gpus, counts, sizeof n->n_gpus, n->comm));
	for (size_t p = 0; p < kv->model.plan.n_parts; p++)
		n->homes[p] = find_home(kv, &kv->model.plan.parts[p], counts);
out:
	mu_free(counts);
	return st;
}

/* Workers whose GPUs sum together. */
static enum mu_status split(struct mu_kv *kv)
{
	const struct mu_members *m = kv->members;
	const int node = m->topology.my_node;
	const int first = mu_count(kv->nodes.workers[kv->nodes.first[node]]);

	kv->ends.nccl->comm = MPI_COMM_NULL;
	return mu_peers_split(m, kv->nodes.reduces[node] ? first : m->index, &kv->ends.nccl->comm);
}

static enum mu_status join(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_nccl_comm_open(kv));
	MU_TRY(find_homes(kv));
out:
	return st;
}

static enum mu_status set_devices(struct mu_kv *kv, const struct mu_kv_device *devices, size_t n)
{
	enum mu_status st = MU_OK;
	const struct mu_members *m = kv->members;

	MU_TRY(mu_peers_agree(m, mu_nccl_open_gpus(kv, devices, n)));
	MU_TRY(mu_peers_agree(m, split(kv)));
	MU_TRY(mu_peers_agree(m, join(kv)));
	kv->ends.nccl->serve = serve;
out:
	return st;
}

static enum mu_status open_node(struct mu_kv *kv, const struct mu_kv_config *config)
{
	enum mu_status st = MU_OK;

	if (kv->members->role == MU_ROLE_WORKER)
		MU_TRY(mu_nccl_open(kv, NCCL_PARTS));
	MU_TRY(kv->kind.below->open(kv, config));
out:
	return st;
}

static enum mu_status init(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_nccl_check_gpus(kv));
	MU_TRY(kv->kind.below->init(kv));
	MU_TRY(mu_nccl_spread(kv));
out:
	return st;
}

/* ---- arrays ---- */

/* dist_async: the newest weights of the servers. */
static enum mu_status fetch(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;

	if (kv->kind.synchronous)
		return mu_nccl_collect(kv);
	MU_TRY(kv->kind.below->fetch(kv));
	MU_TRY(mu_nccl_spread(kv));
out:
	return st;
}

/* dist_async: the weights of a snapshot come from the servers. */
static enum mu_status collect(struct mu_kv *kv)
{
	return kv->kind.synchronous ? mu_nccl_collect(kv) : MU_OK;
}

static enum mu_status meet(struct mu_kv *kv)
{
	return kv->kind.below->meet ? kv->kind.below->meet(kv) : mu_peers_meet(kv->members);
}

/* The host has only the parts that this worker has pulled. */
static enum mu_status finish(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;

	if (kv->kind.synchronous)
		MU_TRY(mu_nccl_collect(kv));
	MU_TRY(kv->kind.below->finish(kv));
out:
	return st;
}

const struct mu_kv_ops mu_kv_node = {
	.open = open_node,
	.close = mu_nccl_close,
	.set_devices = set_devices,
	.leave_devices = mu_nccl_leave,
	.init = init,
	.step_begin = step_begin,
	.push = push,
	.poll = poll,
	.pull = pull,
	.step_end = step_end,
	.fetch = fetch,
	.meet = meet,
	.finish = finish,
	.serve = mu_kv_server_serve,
	.collect = collect,
};
