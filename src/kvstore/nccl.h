/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl, nccl_allreduce: sums between the GPUs of a node, known to src/kvstore/nccl*.c only.
 *
 * All GPUs of all workers are one communicator of NCCL, in the order of the workers. A bucket goes
 * through a stream of the store's own on each GPU: behind the work that made its gradients it is
 * summed, the sums come to the host (nccl: a shard of each GPU; nccl_allreduce: all, on the first
 * GPU of every worker), the worker updates its weights there, and they go back to its GPUs (nccl:
 * the shards, which NCCL then gathers); the GPU's own work waits for that.
 *
 * All workers give NCCL the same buckets in the same order, whatever the order of their calls.
 * Communicators do not block: their calls may return ncclInProgress, and are then polled.
 */
#ifndef KVSTORE_NCCL_H
#define KVSTORE_NCCL_H

#include <cuda.h>
#include <nccl.h>

#include <muster/gpus.h>

#include "kv.h"

/* ---- libraries: nccl_load.c ---- */

/* What is called. In CUDA's headers some of these names are macros. */
#define NCCL_DRIVER_FUNCTIONS(F) \
	F(cuGetErrorString) \
	F(cuDeviceGet) F(cuDeviceGetUuid) F(cuStreamCreate) F(cuStreamDestroy) \
		F(cuStreamWaitEvent) F(cuStreamSynchronize) F(cuEventCreate) F(cuEventDestroy) \
			F(cuEventRecord) F(cuEventQuery) F(cuMemcpyDtoHAsync) F(cuMemcpyHtoDAsync)
#define NCCL_FUNCTIONS(F) \
	F(ncclGetErrorString) \
	F(ncclGetLastError) F(ncclGetUniqueId) F(ncclCommInitRankConfig) F(ncclCommAbort) \
		F(ncclCommGetAsyncError) F(ncclGroupStart) F(ncclGroupEnd) F(ncclAllReduce) \
			F(ncclReduceScatter) F(ncclReduce) F(ncclAllGather) F(ncclBroadcast)

#define NCCL_MEMBER(f) __typeof__(f) *f;
struct nccl_api {
	NCCL_DRIVER_FUNCTIONS(NCCL_MEMBER)
	NCCL_FUNCTIONS(NCCL_MEMBER)
};
#undef NCCL_MEMBER

/*
 * The driver is loaded, for there is a device; NCCL is opened by its name, or in the folders that
 * configure found. Neither is closed again: NCCL has threads.
 */
enum mu_status mu_nccl_load(struct nccl_api *api);

/* ---- the store ---- */

enum { NCCL_MAX_GPUS = 64 }; /* of a worker */

struct nccl_gpu {
	struct mu_device *device;
	float *weights, *gradients; /* on the GPU */
	CUstream work;              /* the device's */
	CUstream stream;            /* the store's */
	CUevent behind;             /* recorded, and waited for at once */
	CUevent *summed;            /* by bucket: this GPU's part of the sums is on the host */
	ncclComm_t comm;            /* NULL: none, or aborted */
};

/* What a worker says to all in each step. */
struct nccl_word {
	double count;
	uint64_t notice;
};

/* nccl: a part of a bucket that one of this worker's GPUs has. */
struct nccl_piece {
	size_t at, n;
	size_t number; /* among the pieces of the optimiser */
};

struct mu_nccl {
	struct nccl_api api;
	bool sharded;
	size_t n_gpus, first, n_all; /* mine; the number of my first among all; all */
	struct nccl_gpu *gpus;

	/* nccl: the optimiser of my shards; piece of bucket b and GPU g: b * n_gpus + g */
	struct mu_optim_config config;
	struct mu_optim *optim;
	struct mu_kv_norms norms;
	struct nccl_piece *pieces;
	size_t *owners; /* bucket and GPU of each piece of the optimiser, as above */
	size_t n_pieces;

	/* The present step. */
	struct nccl_word mine, *all;
	MPI_Request request;
	bool counted; /* the words of all are here */
	double count; /* samples of all workers */
	size_t sent;  /* buckets that went to NCCL: 0, 1, ... */
	size_t left;  /* buckets that have not come back: they come from the last to the first */
	bool updated; /* all of it, where norms are needed */
};

/* Call a function of the driver. `n`: struct mu_nccl *. */
#define NCCL_CU(n, function, ...) \
	do { \
		CUresult result_ = (n)->api.function(__VA_ARGS__); \
		if (result_ != CUDA_SUCCESS) \
			MU_FAIL(MU_ERR_DEVICE, "%s: %s", #function, \
				mu_nccl_text(&(n)->api, result_)); \
	} while (0)
/* "out of memory" */
const char *mu_nccl_text(const struct nccl_api *api, CUresult result);

/* ---- communicators: nccl_comm.c ---- */

/*
 * One communicator over the GPUs of all workers. Collective over kv->comm; all ranks return the
 * same kind of answer.
 */
enum mu_status mu_nccl_comm_open(struct mu_kv *kv);
/* Aborts, which waits for nobody. */
void mu_nccl_comm_close(struct mu_nccl *n);
/* An error that NCCL told of, or finds by itself; the communicators are aborted then. */
enum mu_status mu_nccl_comm_check(struct mu_nccl *n);
/* Until NCCL has taken what it was given. */
enum mu_status mu_nccl_comm_settle(struct mu_kv *kv, const char *what);

/* What a GPU does with elements [at, at + n) of the flat arrays. */
typedef ncclResult_t nccl_move_fn(const struct mu_nccl *n, const struct nccl_gpu *g, size_t at,
				  size_t count);
/* On all my GPUs, as one operation. */
enum mu_status mu_nccl_comm_move(struct mu_kv *kv, nccl_move_fn *move, size_t bucket);

/* ---- ways of a bucket: nccl_move.c ---- */

/* Sum it and fetch what this worker updates. */
enum mu_status mu_nccl_send(struct mu_kv *kv, size_t bucket);
/* Until it is on the host. */
enum mu_status mu_nccl_wait(struct mu_kv *kv, size_t bucket);
/* Weights that this worker has updated go to all GPUs. */
enum mu_status mu_nccl_give(struct mu_kv *kv, size_t bucket);
/* All weights: from the host to my GPUs, or from the first of them to the host. When it returns all
 * of them have done what the store gave them. */
enum mu_status mu_nccl_spread(struct mu_kv *kv);
enum mu_status mu_nccl_collect(struct mu_kv *kv);

/* ---- nccl.c ---- */

/* Until a non-blocking collective of kv->comm is done. */
enum mu_status mu_nccl_finish(struct mu_kv *kv, MPI_Request *request, const char *what);

/* ---- updates of shards: nccl_shard.c ---- */

enum mu_status mu_nccl_shards_open(struct mu_kv *kv);
void mu_nccl_shards_close(struct mu_nccl *n);
void mu_nccl_shards_update(struct mu_kv *kv, size_t bucket);
/* With norms: all buckets. Collective over workers. */
enum mu_status mu_nccl_shards_update_all(struct mu_kv *kv);
/* For checkpoints: kv->states. Collective over workers. */
enum mu_status mu_nccl_shards_states(struct mu_kv *kv, bool load);

#endif
