/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to src/kvstore/gpu: stores whose arrays are on GPUs. These are nccl, nccl_allreduce, and
 * on GPUs device, dist_sharded (as nccl, over any number of nodes) and dist_allreduce (likewise);
 * and a layer over stores that send messages (node.c), which sums inside a node.
 *
 * On each GPU the store has a stream of its own. There a bucket is summed, after the work that
 * computes its gradients, in one of the ways of enum nccl_way. Rules that work element by element
 * then update the weights on the GPUs; the host gets nothing. With other rules the sums are copied
 * to the host, the worker updates its weights there, and they are copied back. Later work of the
 * GPU waits for the new weights.
 *
 * NCCL has one communicator of all GPUs of all workers, in the order of workers. All workers start
 * the same operations in the same order, whatever the order of their calls. Communicators do not
 * block: a call may return ncclInProgress, and is then polled.
 */
#ifndef KVSTORE_NCCL_H
#define KVSTORE_NCCL_H

#include <cuda.h>
#include <nccl.h>

#include <muster/gpus.h>

#include "device/op.h"
#include "kvstore/kv.h"

/* ---- libraries: gpu/load.c ---- */

/* The functions that are called. In CUDA's headers some of these names are macros. */
#define NCCL_DRIVER_FUNCTIONS(F) \
	F(cuGetErrorString) \
	F(cuDeviceGet) \
	F(cuDeviceGetUuid) \
	F(cuCtxGetDevice) \
	F(cuStreamCreate) \
	F(cuStreamDestroy) \
	F(cuStreamWaitEvent) \
	F(cuStreamSynchronize) \
	F(cuEventCreate) \
	F(cuEventDestroy) \
	F(cuEventRecord) F(cuEventQuery) F(cuMemcpyDtoHAsync) F(cuMemcpyHtoDAsync) \
		F(cuMemcpyAsync)
#define NCCL_FUNCTIONS(F) \
	F(ncclGetErrorString) \
	F(ncclGetLastError) \
	F(ncclGetUniqueId) \
	F(ncclCommInitRankConfig) \
	F(ncclCommAbort) \
	F(ncclCommGetAsyncError) \
	F(ncclGroupStart) \
	F(ncclGroupEnd) \
	F(ncclAllReduce) F(ncclReduceScatter) F(ncclReduce) F(ncclAllGather) F(ncclBroadcast)

#define NCCL_MEMBER(f) __typeof__(f) *f;
struct nccl_api {
	NCCL_DRIVER_FUNCTIONS(NCCL_MEMBER)
	NCCL_FUNCTIONS(NCCL_MEMBER)
};
#undef NCCL_MEMBER

/*
 * Opens the driver, which the device has loaded before, and NCCL, if wanted, by its name or in the
 * folders that configure found. Neither is closed again: NCCL has threads.
 */
enum mu_status mu_nccl_load(struct nccl_api *api, bool nccl);

/* ---- the store ---- */

enum { NCCL_MAX_GPUS = 64 }; /* of a worker */

struct nccl_gpu {
	struct mu_device *device;
	float *weights, *gradients; /* on the GPU */
	CUstream work;              /* the device's */
	CUstream stream;            /* the store's */
	CUevent order;              /* orders two streams: recorded, then waited for */
	CUevent *summed;            /* by bucket: this GPU's sums are on the host */
	CUevent done;               /* all work of the stream so far */
	CUdeviceptr scratch;        /* NCCL_PEERS: a bucket of each other GPU */
	ncclComm_t comm;            /* NULL: none, or aborted */
};

/* What a worker sends to all in each step. */
struct nccl_step {
	double count;
	uint64_t notice;
};

/* How the GPUs' gradients become one sum. */
enum nccl_way {
	NCCL_ALL_REDUCE, /* every GPU has all sums, and updates all weights */
	NCCL_SHARDS,     /* of a bucket each GPU has a shard, and all gather the weights */
	/*
	 * device, without NCCL: each bucket has a home, one of the worker's GPUs in turn. The home
	 * reads the others' gradients, and they read its weights. The sum is in the order of
	 * devices.
	 */
	NCCL_PEERS,
	/*
	 * The layer: each part has a home, one of the node's GPUs in turn. The home's worker pushes
	 * the sum and pulls the weights, and all get the weights from it.
	 */
	NCCL_PARTS
};

/* The part of a bucket that one of this worker's GPUs updates; n = 0: none. */
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
	size_t n_gpus, first, n_all; /* of this worker; number of its first among all; of all */
	struct nccl_gpu *gpus;
	MPI_Comm comm; /* workers whose GPUs are "all", in their order */

	/* The layer. */
	size_t *homes; /* by part: the number of its GPU among all */
	size_t pushed; /* buckets pushed to the store below: 0, 1, ... */
	/* Called in waits, to work for other ranks; NULL: nothing to do. */
	enum mu_status (*serve)(struct mu_kv *kv);

	/* Piece of bucket b and GPU g: b * n_gpus + g. NCCL_SHARDS: the optimiser of this
	 * worker's. */
	struct mu_optim_config config;
	struct mu_optim *optim;
	struct mu_kv_norms norms;
	struct nccl_piece *pieces;
	size_t *owners; /* bucket and GPU of each piece of the optimiser, as above */
	size_t n_pieces;

	/* The present step. */
	struct nccl_step mine, *all;
	MPI_Request request;
	bool counted; /* all has arrived */
	double count; /* samples of all workers */
	size_t sent;  /* buckets whose sums are started: 0, 1, ... */
	size_t left;  /* buckets whose weights have not been copied back: last first */
	bool updated; /* with norms: the whole step is updated */
};

/* Call a function of the driver. `n`: struct mu_nccl *. */
#define NCCL_CU(n, function, ...) \
	do { \
		CUresult result_ = (n)->api.function(__VA_ARGS__); \
		if (result_ != CUDA_SUCCESS) \
			MU_TRY(mu_nccl_driver_failed(&(n)->api, #function, result_)); \
	} while (0)
/* Report an error of the driver, on the GPU that the thread has entered; of another GPU. */
enum mu_status mu_nccl_driver_failed(const struct nccl_api *api, const char *what, CUresult result);
enum mu_status mu_nccl_gpu_failed(const struct mu_nccl *n, const struct nccl_gpu *g,
				  const char *what, CUresult result);

/* ---- communicators: comm.c ---- */

/*
 * One communicator over the GPUs of the workers of kv->ends.nccl->comm; the layer needs none for
 * one GPU. Collective over that; all its ranks return the same kind of answer.
 */
enum mu_status mu_nccl_comm_open(struct mu_kv *kv);
/* Aborts them: does not wait for other ranks. */
void mu_nccl_comm_close(struct mu_nccl *n);
/* Returns an error of NCCL, if there is one; the communicators are then aborted. */
enum mu_status mu_nccl_comm_check(struct mu_nccl *n, const char *what);
/* Waits until NCCL has started all operations. */
enum mu_status mu_nccl_comm_wait(struct mu_kv *kv, const char *what);

/* NCCL's operation on a bucket, for one GPU. */
typedef ncclResult_t nccl_move_fn(const struct mu_kv *kv, const struct nccl_gpu *g, size_t bucket);
/* Starts it on all GPUs of this worker, as a group. */
enum mu_status mu_nccl_comm_move(struct mu_kv *kv, nccl_move_fn *move, size_t bucket);

/* ---- buckets: move.c ---- */

/* Starts the sum of a bucket, and the copy to the host of what this worker updates there. */
enum mu_status mu_nccl_send(struct mu_kv *kv, size_t bucket);
/* Waits until that is on the host. */
enum mu_status mu_nccl_wait_sums(struct mu_kv *kv, size_t bucket);
/* The store's streams wait for the work of the GPUs so far, which may read the old weights. */
enum mu_status mu_nccl_after_work(struct mu_kv *kv);
/* Starts copying the weights that this worker has updated to all GPUs. */
enum mu_status mu_nccl_distribute(struct mu_kv *kv, size_t bucket);
/* Waits until the store's streams are idle. */
enum mu_status mu_nccl_wait_idle(struct mu_kv *kv, const char *what);
/* Copy all weights from the host to this worker's GPUs, or from its first GPU to the host. The
 * store's streams are then idle. */
enum mu_status mu_nccl_spread(struct mu_kv *kv);
enum mu_status mu_nccl_collect(struct mu_kv *kv);

/* Has NCCL accepted an operation? */
static inline bool nccl_is_taken(ncclResult_t result)
{
	return result == ncclSuccess || result == ncclInProgress;
}
/* An address on a device as the driver's functions have it. */
static inline CUdeviceptr nccl_pointer(const float *p)
{
	return (CUdeviceptr)(uintptr_t)p;
}
enum mu_status mu_nccl_enter(const struct nccl_gpu *g);
/* Stream `later`, of GPU `then`, waits for the work so far in stream `first`, of GPU g. */
enum mu_status mu_nccl_order(const struct mu_nccl *n, const struct nccl_gpu *g, CUstream first,
			     const struct nccl_gpu *then, CUstream later);
/* Waits for an event, or for an error of NCCL. */
enum mu_status mu_nccl_wait_event(struct mu_kv *kv, const struct nccl_gpu *g, CUevent event,
				  const char *what);

/* ---- peers: peers.c ---- */

/* A bucket's home: see NCCL_PEERS. */
size_t mu_nccl_home(const struct mu_nccl *n, size_t bucket);
enum mu_status mu_nccl_peers_open(struct mu_kv *kv);
void mu_nccl_peers_close(struct mu_nccl *n, struct nccl_gpu *g);
/* Start the sum of a bucket; the copies of its weights to the other GPUs. */
enum mu_status mu_nccl_peers_sum(struct mu_kv *kv, size_t bucket);
enum mu_status mu_nccl_peers_spread(struct mu_kv *kv, size_t bucket);

/* ---- updates on GPUs: gpu/update.c ---- */

static inline struct nccl_piece *nccl_piece_of(const struct mu_nccl *n, size_t bucket, size_t gpu)
{
	return &n->pieces[bucket * n->n_gpus + gpu];
}
/* Sets n->updates if the optimiser can update on GPUs; worker 0 logs it. */
enum mu_status mu_nccl_updates_open(struct mu_kv *kv);
/* Before the devices are closed. */
void mu_nccl_updates_close(struct mu_kv *kv);
enum mu_status mu_nccl_updates_begin(struct mu_kv *kv, size_t bucket);
/* Copy the optimiser's states from the host to the GPUs, or back. */
enum mu_status mu_nccl_states_spread(struct mu_kv *kv);
enum mu_status mu_nccl_states_collect(struct mu_kv *kv);

/* ---- nccl.c ---- */

/* Open the store; then the GPUs of this worker, before mu_nccl_comm_open. */
enum mu_status mu_nccl_open(struct mu_kv *kv, enum nccl_way way);
enum mu_status mu_nccl_open_gpus(struct mu_kv *kv, const struct mu_kv_device *devices, size_t n);
void mu_nccl_leave(struct mu_kv *kv);
void mu_nccl_close(struct mu_kv *kv);
/* MU_ERR_ARGUMENT if there are no GPUs yet. */
enum mu_status mu_nccl_check_gpus(const struct mu_kv *kv);
/* Waits for a non-blocking collective of kv->comm. */
enum mu_status mu_nccl_wait_request(struct mu_kv *kv, MPI_Request *request, const char *what);

/* ---- updates of shards: shard.c ---- */

enum mu_status mu_nccl_shards_open(struct mu_kv *kv);
void mu_nccl_shards_close(struct mu_nccl *n);
void mu_nccl_shards_update(struct mu_kv *kv, size_t bucket);
/* With norms: all buckets. Collective over workers. */
enum mu_status mu_nccl_shards_update_all(struct mu_kv *kv);
/* For checkpoints: kv->saved.states. Collective over workers. */
enum mu_status mu_nccl_shards_states(struct mu_kv *kv, bool load);

#endif
