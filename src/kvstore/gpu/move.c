/* SPDX-License-Identifier: Apache-2.0 */
/* A bucket's sums, from the GPUs to the host, and its weights, back to the GPUs. */
#include "nccl.h"

#include <muster/base.h>

enum mu_status mu_nccl_enter(const struct nccl_gpu *g)
{
	return g->device->ops->memory->enter(g->device);
}

/* An event is recorded in its own GPU's context. */
enum mu_status mu_nccl_order(const struct mu_nccl *n, const struct nccl_gpu *g, CUstream first,
			     const struct nccl_gpu *then, CUstream later)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_nccl_enter(g));
	NCCL_CU(n, cuEventRecord, g->order, first);
	MU_TRY(mu_nccl_enter(then));
	NCCL_CU(n, cuStreamWaitEvent, later, g->order, 0);
out:
	return st;
}

/* ---- NCCL's operations on a bucket ---- */

static ncclResult_t all_reduce(const struct mu_kv *kv, const struct nccl_gpu *g, size_t bucket)
{
	const struct mu_nccl *n = kv->ends.nccl;
	const struct mu_kv_bucket *b = &kv->model.plan.buckets[bucket];
	float *x = g->gradients + b->at;

	return n->api.ncclAllReduce(x, x, b->n, ncclFloat32, ncclSum, g->comm, g->stream);
}

static size_t number(const struct mu_nccl *n, const struct nccl_gpu *g)
{
	return n->first + (size_t)(g - n->gpus);
}

/* Equal shards in one operation; the last GPU's also has the remainder, which follows it. */
static ncclResult_t reduce_scatter(const struct mu_kv *kv, const struct nccl_gpu *g, size_t bucket)
{
	const struct mu_nccl *n = kv->ends.nccl;
	const struct mu_kv_bucket *b = &kv->model.plan.buckets[bucket];
	const size_t each = mu_kv_shard_each(b->n, n->n_all), even = each * n->n_all;
	float *x = g->gradients + b->at;
	ncclResult_t result = ncclSuccess;

	if (each > 0)
		result = n->api.ncclReduceScatter(x, x + number(n, g) * each, each, ncclFloat32,
						  ncclSum, g->comm, g->stream);
	if (b->n > even && nccl_is_taken(result))
		result = n->api.ncclReduce(x + even, x + even, b->n - even, ncclFloat32, ncclSum,
					   (int)n->n_all - 1, g->comm, g->stream);
	return result;
}

static ncclResult_t all_gather(const struct mu_kv *kv, const struct nccl_gpu *g, size_t bucket)
{
	const struct mu_nccl *n = kv->ends.nccl;
	const struct mu_kv_bucket *b = &kv->model.plan.buckets[bucket];
	const size_t each = mu_kv_shard_each(b->n, n->n_all), even = each * n->n_all;
	float *x = g->weights + b->at;
	ncclResult_t result = ncclSuccess;

	if (each > 0)
		result = n->api.ncclAllGather(x + number(n, g) * each, x, each, ncclFloat32,
					      g->comm, g->stream);
	if (b->n > even && nccl_is_taken(result))
		result = n->api.ncclBroadcast(x + even, x + even, b->n - even, ncclFloat32,
					      (int)n->n_all - 1, g->comm, g->stream);
	return result;
}

/* ---- between GPU and host ---- */

/* The elements of a bucket that GPU i copies to the host, or from there. n = 0: none. */
static struct mu_kv_shard part_of(const struct mu_kv *kv, size_t bucket, size_t i, bool to_host)
{
	const struct mu_nccl *n = kv->ends.nccl;
	const struct mu_kv_bucket *b = &kv->model.plan.buckets[bucket];
	struct mu_kv_shard shard = {0, b->n};
	const size_t source = n->way == NCCL_PEERS ? mu_nccl_home(n, bucket) : 0;

	if (n->way == NCCL_SHARDS)
		shard = mu_kv_shard(b->n, n->first + i, n->n_all);
	else if (to_host && i != source)
		shard.n = 0; /* the source has the same sums, or all of them */
	shard.at += b->at;
	return shard;
}

static enum mu_status download(struct mu_kv *kv, size_t bucket, size_t i)
{
	enum mu_status st = MU_OK;
	const struct mu_nccl *n = kv->ends.nccl;
	const struct nccl_gpu *g = &n->gpus[i];
	const struct mu_kv_shard part = part_of(kv, bucket, i, true);

	if (part.n == 0)
		goto out;
	MU_TRY(mu_nccl_enter(g));
	NCCL_CU(n, cuMemcpyDtoHAsync, kv->arrays.gradients + part.at,
		nccl_pointer(g->gradients + part.at), part.n * sizeof *kv->arrays.gradients,
		g->stream);
	NCCL_CU(n, cuEventRecord, g->summed[bucket], g->stream);
out:
	return st;
}

static enum mu_status upload(struct mu_kv *kv, size_t bucket, size_t i)
{
	enum mu_status st = MU_OK;
	const struct mu_nccl *n = kv->ends.nccl;
	const struct nccl_gpu *g = &n->gpus[i];
	const struct mu_kv_shard part = part_of(kv, bucket, i, false);

	MU_TRY(mu_nccl_enter(g));
	if (part.n > 0)
		NCCL_CU(n, cuMemcpyHtoDAsync, nccl_pointer(g->weights + part.at),
			kv->arrays.weights + part.at, part.n * sizeof *kv->arrays.weights,
			g->stream);
out:
	return st;
}

enum mu_status mu_nccl_send(struct mu_kv *kv, size_t bucket)
{
	enum mu_status st = MU_OK;
	struct mu_nccl *n = kv->ends.nccl;

	for (size_t i = 0; i < n->n_gpus; i++)
		MU_TRY(mu_nccl_order(n, &n->gpus[i], n->gpus[i].work, &n->gpus[i],
				     n->gpus[i].stream));
	if (n->way == NCCL_PEERS)
		MU_TRY(mu_nccl_peers_sum(kv, bucket));
	else
		MU_TRY(mu_nccl_comm_move(kv, n->way == NCCL_SHARDS ? reduce_scatter : all_reduce,
					 bucket));
	for (size_t i = 0; !n->updates && i < n->n_gpus; i++)
		MU_TRY(download(kv, bucket, i));
out:
	return st;
}

enum mu_status mu_nccl_wait_event(struct mu_kv *kv, const struct nccl_gpu *g, CUevent event,
				  const char *what)
{
	enum mu_status st = MU_OK;
	struct mu_nccl *n = kv->ends.nccl;
	struct mu_waiter waiter;
	CUresult result;

	mu_waiter_init(&waiter, kv->members);
	waiter.members = NULL; /* GPUs do not wake ranks: naps stay short */
	while ((result = n->api.cuEventQuery(event)) == CUDA_ERROR_NOT_READY) {
		MU_TRY(mu_nccl_comm_check(n, what));
		if (n->serve)
			MU_TRY(n->serve(kv));
		mu_waiter_nap(&waiter);
		MU_TRY(mu_waiter_check(&waiter, NULL, what));
	}
	if (result != CUDA_SUCCESS)
		MU_TRY(mu_nccl_gpu_failed(n, g, what, result));
out:
	return st;
}

enum mu_status mu_nccl_wait_sums(struct mu_kv *kv, size_t bucket)
{
	enum mu_status st = MU_OK;
	const struct mu_nccl *n = kv->ends.nccl;

	for (size_t i = 0; i < n->n_gpus; i++)
		if (part_of(kv, bucket, i, true).n > 0)
			MU_TRY(mu_nccl_wait_event(kv, &n->gpus[i], n->gpus[i].summed[bucket],
						  kv->model.plan.buckets[bucket].what));
out:
	return st;
}

enum mu_status mu_nccl_after_work(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	const struct mu_nccl *n = kv->ends.nccl;

	for (size_t i = 0; i < n->n_gpus; i++)
		MU_TRY(mu_nccl_order(n, &n->gpus[i], n->gpus[i].work, &n->gpus[i],
				     n->gpus[i].stream));
out:
	return st;
}

enum mu_status mu_nccl_distribute(struct mu_kv *kv, size_t bucket)
{
	enum mu_status st = MU_OK;
	struct mu_nccl *n = kv->ends.nccl;

	for (size_t i = 0; !n->updates && i < n->n_gpus; i++)
		MU_TRY(upload(kv, bucket, i));
	if (n->way == NCCL_SHARDS)
		MU_TRY(mu_nccl_comm_move(kv, all_gather, bucket));
	if (n->way == NCCL_PEERS && n->updates)
		MU_TRY(mu_nccl_peers_spread(kv, bucket));
	for (size_t i = 0; i < n->n_gpus; i++)
		MU_TRY(mu_nccl_order(n, &n->gpus[i], n->gpus[i].stream, &n->gpus[i],
				     n->gpus[i].work));
out:
	return st;
}

/* ---- all arrays ---- */

enum mu_status mu_nccl_wait_idle(struct mu_kv *kv, const char *what)
{
	enum mu_status st = MU_OK;
	const struct mu_nccl *n = kv->ends.nccl;

	for (size_t i = 0; i < n->n_gpus; i++) {
		MU_TRY(mu_nccl_enter(&n->gpus[i]));
		NCCL_CU(n, cuEventRecord, n->gpus[i].done, n->gpus[i].stream);
	}
	for (size_t i = 0; i < n->n_gpus; i++) {
		MU_TRY(mu_nccl_enter(&n->gpus[i]));
		MU_TRY(mu_nccl_wait_event(kv, &n->gpus[i], n->gpus[i].done, what));
	}
out:
	return st;
}

enum mu_status mu_nccl_spread(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	const struct mu_nccl *n = kv->ends.nccl;

	MU_TRY(mu_nccl_after_work(kv));
	for (size_t i = 0; i < n->n_gpus; i++) {
		const struct nccl_gpu *g = &n->gpus[i];

		MU_TRY(mu_nccl_enter(g));
		NCCL_CU(n, cuMemcpyHtoDAsync, nccl_pointer(g->weights), kv->arrays.weights,
			kv->model.plan.n * sizeof *kv->arrays.weights, g->stream);
	}
	MU_TRY(mu_nccl_wait_idle(kv, "weights on their way to the GPUs"));
out:
	return st;
}

enum mu_status mu_nccl_collect(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	const struct mu_nccl *n = kv->ends.nccl;
	const struct nccl_gpu *g = &n->gpus[0];

	MU_TRY(mu_nccl_enter(g));
	NCCL_CU(n, cuMemcpyDtoHAsync, kv->arrays.weights, nccl_pointer(g->weights),
		kv->model.plan.n * sizeof *kv->arrays.weights, g->stream);
	MU_TRY(mu_nccl_wait_idle(kv, "weights of the GPUs"));
out:
	return st;
}
