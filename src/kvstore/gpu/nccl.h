/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores whose arrays are on GPUs, known to src/kvstore/nccl*.c only: nccl, nccl_allreduce, and
 * with GPUs device, dist_sharded (as nccl, over any number of nodes) and dist_allreduce (likewise).
 * And a layer over stores that send messages (node.c), which sums inside the node.
 *
 * A bucket goes through a stream of the store's own on each GPU, behind the work that made its
 * gradients, and is summed in one of three ways. Rules that work element by element then update
 * the weights on the GPUs, and nothing comes to the host. With other rules the sums come to the
 * host, the worker updates its weights there, and they go back. The GPU's own work waits for the
 * new weights.
 *
 * With NCCL all GPUs of all workers are one communicator, in the order of the workers.
 * All workers give NCCL the same buckets in the same order, whatever the order of their calls.
 * Communicators do not block: their calls may return ncclInProgress, and are then polled.
 */
#ifndef KVSTORE_NCCL_H
#define KVSTORE_NCCL_H

#include <cuda.h>
#include <nccl.h>

#include <muster/gpus.h>

#include "kvstore/kv.h"

/* ---- libraries: gpu/load.c ---- */

/* What is called. In CUDA's headers some of these names are macros. */
#define NCCL_DRIVER_FUNCTIONS(F) \
	F(cuGetErrorString) \
	F(cuDeviceGet) \
	F(cuDeviceGetUuid) \
	F(cuStreamCreate) \
	F(cuStreamDestroy) F(cuStreamWaitEvent) F(cuStreamSynchronize) F(cuEventCreate) \
		F(cuEventDestroy) F(cuEventRecord) F(cuEventQuery) F(cuMemcpyDtoHAsync) \
			F(cuMemcpyHtoDAsync) F(cuMemcpyAsync)
#define NCCL_FUNCTIONS(F) \
	F(ncclGetErrorString) \
	F(ncclGetLastError) \
	F(ncclGetUniqueId) \
	F(ncclCommInitRankConfig) \
	F(ncclCommAbort) F(ncclCommGetAsyncError) F(ncclGroupStart) F(ncclGroupEnd) \
		F(ncclAllReduce) F(ncclReduceScatter) F(ncclReduce) F(ncclAllGather) \
			F(ncclBroadcast)

#define NCCL_MEMBER(f) __typeof__(f) *f;
struct nccl_api {
	NCCL_DRIVER_FUNCTIONS(NCCL_MEMBER)
	NCCL_FUNCTIONS(NCCL_MEMBER)
};
#undef NCCL_MEMBER

/*
 * The driver is loaded, for there is a device; NCCL, if it is wanted, is opened by its name, or in
 * the folders that configure found. Neither is closed again: NCCL has threads.
 */
enum mu_status mu_nccl_load(struct nccl_api *api, bool nccl);

/* ---- the store ---- */

enum { NCCL_MAX_GPUS = 64 }; /* of a worker */

struct nccl_gpu {
	struct mu_device *device;
	float *weights, *gradients; /* on the GPU */
	CUstream work;              /* the device's */
	CUstream stream;            /* the store's */
	CUevent behind;             /* recorded, and waited for at once */
	CUevent *summed;            /* by bucket: this GPU's part of the sums is on the host */
	CUevent done;               /* all of a step, or of a copy of all arrays */
	CUdeviceptr scratch;        /* peers: a bucket of each other GPU */
	ncclComm_t comm;            /* NULL: none, or aborted */
};

/* What a worker says to all in each step. */
struct nccl_word {
	double count;
	uint64_t notice;
};

/* How the GPUs' gradients become one sum. */
enum nccl_way {
	NCCL_ALL_REDUCE, /* every GPU has all sums, and updates all weights */
	NCCL_SHARDS,     /* of a bucket each GPU has a shard, and all gather the weights */
	/*
	 * device: of the worker's GPUs one has a bucket, in turn; it reads the others' gradients,
	 * and they its weights. The sum is in the order of the devices.
	 */
	NCCL_PEERS,
	/*
	 * The layer: of the node's GPUs one has a part, in turn; its worker pushes the sum and
	 * pulls the weights, and all get these from it.
	 */
	NCCL_PARTS
};

/* The part of a bucket that one of this worker's GPUs updates; n is 0 if there is none. */
struct nccl_piece {
	size_t at, n;
	size_t number, local; /* among the pieces of the optimiser; where its states begin */
	float *states[MU_MAX_STATES]; /* on the GPU */
	unsigned char *classes;       /* on the GPU: see mu_optim_classes */
};

struct mu_nccl {
	struct nccl_api api;
	enum nccl_way way;
	bool updates;                /* weights are updated on the GPUs */
	size_t n_gpus, first, n_all; /* mine; the number of my first among all; all */
	struct nccl_gpu *gpus;
	MPI_Comm comm; /* workers whose GPUs are "all", in their order */

	/* The layer. */
	size_t *homes; /* by part: the number of its GPU among all */
	size_t pushed; /* buckets whose sums went to the store below: 0, 1, ... */
	/* What others may need of this rank while it waits; NULL: nothing. */
	enum mu_status (*serve)(struct mu_kv *kv);

	/* piece of bucket b and GPU g: b * n_gpus + g; nccl: the optimiser of my shards */
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

/* ---- communicators: comm.c ---- */

/*
 * One communicator over the GPUs of the workers of kv->nccl->comm; the layer needs none for one
 * GPU. Collective over that; all its ranks return the same kind of answer.
 */
enum mu_status mu_nccl_comm_open(struct mu_kv *kv);
/* Aborts, which waits for nobody. */
void mu_nccl_comm_close(struct mu_nccl *n);
/* An error that NCCL told of, or finds by itself; the communicators are aborted then. */
enum mu_status mu_nccl_comm_check(struct mu_nccl *n, const char *what);
/* Until NCCL has taken what it was given. */
enum mu_status mu_nccl_comm_settle(struct mu_kv *kv, const char *what);

/* What a GPU does with a bucket. */
typedef ncclResult_t nccl_move_fn(const struct mu_kv *kv, const struct nccl_gpu *g, size_t bucket);
/* On all my GPUs, as one operation. */
enum mu_status mu_nccl_comm_move(struct mu_kv *kv, nccl_move_fn *move, size_t bucket);

/* ---- ways of a bucket: move.c ---- */

/* Sum it and fetch what this worker updates. */
enum mu_status mu_nccl_send(struct mu_kv *kv, size_t bucket);
/* Until it is on the host. */
enum mu_status mu_nccl_wait(struct mu_kv *kv, size_t bucket);
/* What the store does from now on with weights comes behind the work of the GPUs so far. */
enum mu_status mu_nccl_replace(struct mu_kv *kv);
/* Weights that this worker has updated go to all GPUs. */
enum mu_status mu_nccl_give(struct mu_kv *kv, size_t bucket);
/* Until all that the store has given to my GPUs is done. */
enum mu_status mu_nccl_settle(struct mu_kv *kv, const char *what);
/* All weights: from the host to my GPUs, or from the first of them to the host. When it returns all
 * of them have done what the store gave them. */
enum mu_status mu_nccl_spread(struct mu_kv *kv);
enum mu_status mu_nccl_collect(struct mu_kv *kv);

/* For moves: has NCCL taken an operation? */
static inline bool nccl_is_taken(ncclResult_t result)
{
	return result == ncclSuccess || result == ncclInProgress;
}
/* Pieces of memory of a device that hold floats, as the driver's functions take them. */
static inline CUdeviceptr nccl_pointer(const float *p)
{
	return (CUdeviceptr)(uintptr_t)p;
}
enum mu_status mu_nccl_enter(const struct nccl_gpu *g);
/* What is given to `later` from now on comes behind what was given to `first` of g so far; `then`
 * is the GPU of later. */
enum mu_status mu_nccl_order(const struct mu_nccl *n, const struct nccl_gpu *g, CUstream first,
			     const struct nccl_gpu *then, CUstream later);
/* Until an event has come; what NCCL finds wrong meanwhile is an error. */
enum mu_status mu_nccl_await(struct mu_kv *kv, CUevent event, const char *what);

/* ---- peers: peers.c ---- */

/* The GPU that has a bucket. */
size_t mu_nccl_home(const struct mu_nccl *n, size_t bucket);
enum mu_status mu_nccl_peers_open(struct mu_kv *kv);
void mu_nccl_peers_close(struct mu_nccl *n, struct nccl_gpu *g);
/* Its gradients, of all GPUs, become a sum; its weights go to the other GPUs. */
enum mu_status mu_nccl_peers_sum(struct mu_kv *kv, size_t bucket);
enum mu_status mu_nccl_peers_spread(struct mu_kv *kv, size_t bucket);

/* ---- updates on GPUs: gpu/update.c ---- */

static inline struct nccl_piece *nccl_piece_of(const struct mu_nccl *n, size_t bucket, size_t gpu)
{
	return &n->pieces[bucket * n->n_gpus + gpu];
}
/* If the optimiser can: n->updates. Says so on worker 0. */
enum mu_status mu_nccl_updates_open(struct mu_kv *kv);
/* Before the devices are given up. */
void mu_nccl_updates_close(struct mu_kv *kv);
enum mu_status mu_nccl_updates_begin(struct mu_kv *kv, size_t bucket);
/* The optimiser's states on the host: to the GPUs, or from there. */
enum mu_status mu_nccl_states_spread(struct mu_kv *kv);
enum mu_status mu_nccl_states_collect(struct mu_kv *kv);

/* ---- nccl.c ---- */

/* The GPUs of this worker, before mu_nccl_comm_open. */
enum mu_status mu_nccl_open(struct mu_kv *kv, enum nccl_way way);
enum mu_status mu_nccl_open_gpus(struct mu_kv *kv, const struct mu_kv_device *devices, size_t n);
void mu_nccl_leave(struct mu_kv *kv);
void mu_nccl_close(struct mu_kv *kv);
/* MU_ERR_ARGUMENT if there are no GPUs yet. */
enum mu_status mu_nccl_check_gpus(const struct mu_kv *kv);
/* Until a non-blocking collective of kv->comm is done. */
enum mu_status mu_nccl_finish(struct mu_kv *kv, MPI_Request *request, const char *what);

/* ---- updates of shards: shard.c ---- */

enum mu_status mu_nccl_shards_open(struct mu_kv *kv);
void mu_nccl_shards_close(struct mu_nccl *n);
void mu_nccl_shards_update(struct mu_kv *kv, size_t bucket);
/* With norms: all buckets. Collective over workers. */
enum mu_status mu_nccl_shards_update_all(struct mu_kv *kv);
/* For checkpoints: kv->states. Collective over workers. */
enum mu_status mu_nccl_shards_states(struct mu_kv *kv, bool load);

#endif
