/* SPDX-License-Identifier: Apache-2.0 */
/*
 * device on GPUs: one worker, whose GPUs sum without NCCL, in the order of the devices. Every
 * bucket has a home, a GPU that copies the others' gradients to itself, sums them, updates, and
 * copies its weights to the others. All of this is in the home's stream, so its buckets share one
 * scratch.
 */
#include "nccl.h"

#include <muster/base.h>

enum { MAX_HOMES = 16 }; /* see sum in struct mu_device_memory */

size_t mu_nccl_home(const struct mu_nccl *n, size_t bucket)
{
	return bucket % (n->n_gpus < MAX_HOMES ? n->n_gpus : MAX_HOMES);
}

static size_t largest_bucket(const struct mu_kv *kv)
{
	size_t n = 0;

	for (size_t b = 0; b < kv->model.plan.n_buckets; b++)
		if (kv->model.plan.buckets[b].n > n)
			n = kv->model.plan.buckets[b].n;
	return n;
}

enum mu_status mu_nccl_peers_open(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct mu_nccl *n = kv->ends.nccl;
	const size_t nbytes = (n->n_gpus - 1) * largest_bucket(kv) * sizeof(float);

	for (size_t i = 0; nbytes > 0 && i < n->n_gpus && i < MAX_HOMES; i++) {
		struct mu_device *device = n->gpus[i].device;
		void *scratch = NULL;

		MU_TRY(device->ops->memory->alloc(device, &scratch, nbytes,
						  "gradients of the other GPUs"));
		n->gpus[i].scratch = (CUdeviceptr)(uintptr_t)scratch;
	}
out:
	return st;
}

void mu_nccl_peers_close(struct mu_nccl *n, struct nccl_gpu *g)
{
	(void)n;
	if (g->scratch)
		g->device->ops->memory->free(g->device, (void *)(uintptr_t)g->scratch);
	g->scratch = 0;
}

/* mu_nccl_send has made every stream wait for its GPU's work. */
enum mu_status mu_nccl_peers_sum(struct mu_kv *kv, size_t bucket)
{
	enum mu_status st = MU_OK;
	const struct mu_nccl *n = kv->ends.nccl;
	const struct mu_kv_bucket *b = &kv->model.plan.buckets[bucket];
	const struct nccl_gpu *home = &n->gpus[mu_nccl_home(n, bucket)];
	const float *in[NCCL_MAX_GPUS];
	CUdeviceptr to = home->scratch;

	for (size_t i = 0; i < n->n_gpus; i++) {
		const struct nccl_gpu *g = &n->gpus[i];

		in[i] = home->gradients + b->at;
		if (g == home)
			continue;
		MU_TRY(mu_nccl_order(n, g, g->work, home, home->stream));
		NCCL_CU(n, cuMemcpyAsync, to, nccl_pointer(g->gradients + b->at),
			b->n * sizeof(float), home->stream);
		in[i] = (const float *)(uintptr_t)to;
		to += b->n * sizeof(float);
	}
	if (n->n_gpus > 1)
		MU_TRY(home->device->ops->memory->sum(
			home->device, home->stream,
			&(struct mu_device_sum){home->gradients + b->at, in, n->n_gpus, b->n}));
out:
	return st;
}

/* mu_nccl_after_work has made every stream wait for its GPU's work. The home waits for the others'
 * streams, then they wait for the home's. */
enum mu_status mu_nccl_peers_spread(struct mu_kv *kv, size_t bucket)
{
	enum mu_status st = MU_OK;
	const struct mu_nccl *n = kv->ends.nccl;
	const struct mu_kv_bucket *b = &kv->model.plan.buckets[bucket];
	const struct nccl_gpu *home = &n->gpus[mu_nccl_home(n, bucket)];

	for (size_t i = 0; i < n->n_gpus; i++) {
		const struct nccl_gpu *g = &n->gpus[i];

		if (g == home)
			continue;
		MU_TRY(mu_nccl_order(n, g, g->stream, home, home->stream));
		NCCL_CU(n, cuMemcpyAsync, nccl_pointer(g->weights + b->at),
			nccl_pointer(home->weights + b->at), b->n * sizeof(float), home->stream);
		MU_TRY(mu_nccl_order(n, home, home->stream, g, g->stream));
	}
out:
	return st;
}
