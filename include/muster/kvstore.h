/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kvstore: the parameter store of a model. It holds the weights, sums the gradients of all workers,
 * applies the optimiser and returns the new weights.
 *
 * The store knows the whole model when it is created: key k is slice k of one flat array, and every
 * step pushes and pulls every key once. For keys that are added one by one, and pushed and pulled
 * in any order, see keys.h.
 *
 * ---- life cycle ----
 *
 *	all ranks      mu_kv_new
 *	servers        mu_kv_serve, until all workers have finished
 *	workers        mu_kv_weights_init; steps; mu_kv_finish
 *	all ranks      mu_kv_free
 *
 * ---- a step of a worker ----
 *
 *	mu_kv_step_begin(kv, count);    count: samples of this step's gradients; may be 0
 *	mu_kv_push_ready(kv, key);      for every key once, in any order, as backward finishes it
 *	mu_kv_pull_end(kv, key);        for every key, before the next forward reads its weights
 *
 * mu_kv_step_end pulls all keys; mu_kv_step_begin does the same for a step that is still open. The
 * k-th step of a worker belongs to round k. A synchronous round needs step k of every worker.
 *
 * Gradients are sums over samples. The update divides by the number of samples: of all workers in
 * this round for synchronous stores, of this push for dist_async. mu_kv_push_ready starts the push
 * of a bucket when its last key is ready. Write the gradients of a key again only after its pull:
 * their contents are undefined then, so write all of them.
 *
 * Rules that need norms over the whole model (mu_optim_needs_norms) update nothing before all keys
 * of a step are pushed; an earlier pull is an error. dist_async then needs a single server.
 *
 * ---- buckets and bits ----
 *
 * Keys are grouped, last key first, into buckets of about bucket_bytes; the bucket of the first
 * keys is the smallest. Every bucket is cut evenly over the servers, on multiples of 64 elements.
 * Gradients are summed over the workers of a node in their order, then over the nodes in the order
 * of their lowest ranks. So the bits of a synchronous store do not depend on timing, on the number
 * of servers or on bucket sizes.
 *
 * ---- bounded staleness (dist_async) ----
 *
 * Stale synchronous parallel: Ho et al., More effective distributed ML via a stale synchronous
 * parallel parameter server, NIPS 2013. Each push still updates at once, but a worker that is ahead
 * waits in its pull. No worker starts step t + k + 1 before all workers have pushed step t, and its
 * weights then hold those pushes. k = 0 is lock-step, but not dist_sync: n pushes are n updates.
 * Nobody waits for workers that have finished. All keys of a step are pushed before the first pull,
 * else MU_ERR_ARGUMENT. Workers that wait for each other between steps (a barrier of their own)
 * must have taken numbers of steps that differ by at most k, or they deadlock.
 *
 * ---- local SGD (synchronous stores between ranks) ----
 *
 * Stich, Local SGD converges fast and communicates little, ICLR 2019. With a period k > 1 every
 * worker updates its own weights w_i by its own gradients, with an optimiser and states of its own.
 * After every k-th step the weights are averaged. With c_i the samples of worker i since the last
 * average and G the result of the last average,
 *
 *	D = sum_i c_i (w_i - G) / sum_i c_i
 *	V <- eta V + zeta D;  G <- G + V;  w_i <- G
 *
 * V is the block momentum and starts at 0 (Chen and Huo, Scalable training of deep learning
 * machines by incremental block training with intra-block parallel optimization and blockwise
 * model-update filtering, ICASSP 2016). With nesterov G <- G + zeta D + eta V with the new V: their
 * Nesterov form, in the weights that workers start from.
 *
 * Averages are weighted by samples, so that one step and an average equal dist_sync's step, up to
 * rounding, for sgd without momentum. A worker without samples has no weight; if no worker has any,
 * nothing changes. Running statistics are averaged likewise, without V; between averages each
 * worker has its own. Sums are in the order above: all stores have the same bits.
 *
 * mu_kv_fetch and mu_kv_finish average the steps since the last average; they are collective over
 * workers, which take equal numbers of steps. Between averages the learning rate and mu_kv_progress
 * assume that all workers have as many samples as this one; both are exact after each average.
 * Norms are those of the worker's own gradients and weights. All keys of a step are pushed before
 * the first pull. Period 1 is no local SGD: gradients of every step are summed.
 *
 * ---- shards of gradients (dist_sharded) ----
 *
 * Stage 2 of ZeRO: Rajbhandari et al., ZeRO: memory optimizations toward training trillion
 * parameter models, SC 2020. A worker has memory for a few buckets of gradients, which later
 * buckets of the same step use again, and sums of its own part, if norms need them. With
 * mu_kv_config.lives the gradients of a key are at mu_kv_gradient_places; mu_kv_gradients_begin
 * comes before they are written, and waits until the earlier gradients there are summed. All
 * workers write and push keys in the order of their lives. The bits are the same.
 *
 * ---- compression ----
 *
 * Of messages between ranks: see compress.h.
 */
#ifndef MUSTER_KVSTORE_H
#define MUSTER_KVSTORE_H

#include <muster/base.h>
#include <muster/comm.h>
#include <muster/compress.h>
#include <muster/optim.h>

MU_BEGIN_C

struct mu_kv;

/* See "local SGD" above. All zero: none. */
struct mu_kv_local_sgd {
	size_t period;         /* k: steps from average to average; more than 1 */
	double block_momentum; /* eta, from 0 to less than 1 */
	double block_lr;       /* zeta; 0 = 1 */
	bool nesterov;
};

/*
 * How the ranks of a node exchange data: in shared memory (/dev/shm holds every worker's gradients,
 * and the weights once; in dist_async once per worker) or in messages. Unless NONE, the workers of
 * a node send one sum of their gradients to the servers of other nodes (synchronous stores). The
 * bits do not depend on it.
 */
enum mu_kv_node {
	MU_KV_NODE_AUTO, /* shared memory if there is room, else as MPI or NONE */
	MU_KV_NODE_SHM,  /* shared memory; no room is an error */
	MU_KV_NODE_MPI,  /* messages; with dist_async and compression MU_ERR_USAGE */
	MU_KV_NODE_NONE, /* messages */
	MU_KV_NODE_NCCL, /* only with on_gpus: see gpus.h; else MU_ERR_USAGE */
}; /* "auto", "shm", ...; another name is MU_ERR_USAGE with the list: */
enum mu_status mu_kv_node_find(enum mu_kv_node *node, const char *name);

/* When the gradients of a key are written first, and when it is pushed, in the order of backward:
 * 0, 1, ..., steps of the caller's. Keys with equal numbers are written together. */
struct mu_kv_life {
	size_t from, to;
};

struct mu_kv_config {
	const char *type; /* "local", "dist_sync", ...; whole words, see mu_kv_type_check */
	const struct mu_members *members;
	/* The model, on worker 0: at least one slice. Servers pass NULL: they get it from there. */
	const struct mu_slice *slices;
	size_t n_slices;
	struct mu_optim_config optim; /* equal on all ranks */
	struct mu_schedule schedule;  /* equal on all ranks */
	double progress;              /* samples counted before this run (resume) */
	/*
	 * dist_async: bound the staleness by max_staleness = k. No worker starts step t + k + 1
	 * before all workers have pushed step t; see above.
	 */
	bool bounded;
	size_t max_staleness;
	struct mu_kv_local_sgd local_sgd;
	struct mu_compression compression; /* see compress.h; all zero: none */
	size_t bucket_bytes;               /* 0 = max(64 KiB, min(4 MiB, model / 16)) */
	/*
	 * Synchronous stores: of complete parts a server updates and sends those of the first keys
	 * first. Else in the order in which they are complete. Same bits.
	 */
	bool priority;
	enum mu_kv_node node_reduce;
	struct mu_share share;   /* of a worker: for updates of the whole model */
	bool on_gpus;            /* arrays are on GPUs; needs type.takes_gpus: see gpus.h */
	/* dist_sharded: see "shards of gradients"; by key, equal on all workers. NULL: none. */
	const struct mu_kv_life *lives;
	size_t message_bytes;    /* largest message; 0 = 1 GiB */
	enum mu_verbose verbose; /* of rank 0 */
};

/* What a store is. */
struct mu_kv_type {
	bool has_servers;     /* some ranks are servers */
	bool distributed;     /* for several workers */
	bool synchronous;     /* one update of all workers' gradients */
	bool sums_on_devices; /* the gradients of a rank's devices; else on the CPU */
	bool on_gpus;         /* between GPUs of one node: see gpus.h */
	bool takes_gpus;      /* its arrays may be on GPUs: mu_kv_config.on_gpus */
	bool takes_lives;     /* shards of gradients: mu_kv_config.lives */
};

/*
 * The same without creating a store. Unknown type: MU_ERR_USAGE with the list. Not collective.
 *
 * local, device: one worker. dist_sync: servers sum and update. dist_async: servers update by each
 * push. dist_device_sync, dist_sync_device and dist_device_async, dist_async_device: the same, the
 * gradients of a rank's devices summed on the devices. dist_sharded: no servers, every worker sums
 * and updates a part of the model, and holds that part's optimiser states alone. dist_allreduce: no
 * servers, every worker sums a part, and all update the whole model. nccl...: see gpus.h.
 */
enum mu_status mu_kv_type_check(const char *type, struct mu_kv_type *is);

/*
 * Collective over topology->world. Workers and servers check that the model is the same on every
 * worker, and type and settings on every rank: else MU_ERR_USAGE or MU_ERR_ARGUMENT on all ranks,
 * with the rank that differs and its value.
 */
enum mu_status mu_kv_new(struct mu_kv **out, const struct mu_kv_config *config);
void mu_kv_free(struct mu_kv *kv);

/*
 * The flat arrays of this worker; mu_kv_n elements. Workers of one node may have one array of
 * weights in common: before mu_kv_weights_init worker 0 alone writes weights, later nobody but the
 * store. Not collective.
 */
float *mu_kv_weights(struct mu_kv *kv);
float *mu_kv_gradients(struct mu_kv *kv);
size_t mu_kv_n(const struct mu_kv *kv);
/* With shards of gradients: the first element of each key in mu_kv_gradients, which then has fewer
 * elements; else NULL, and keys are at their slices. */
const size_t *mu_kv_gradient_places(const struct mu_kv *kv);

/* Version of each key. Weights read after mu_kv_weights_init or the key's mu_kv_pull_end are
 * current while the version is unchanged. Not collective. */
const uint64_t *mu_kv_versions(const struct mu_kv *kv);

/* Copies worker 0's weights to all workers and servers. Collective over workers. */
enum mu_status mu_kv_weights_init(struct mu_kv *kv);

enum mu_status mu_kv_step_begin(struct mu_kv *kv, size_t count);
/* In a step with shards of gradients, before the key's are written; its padding is then 0. Without
 * shards, and if they may be written already, it does nothing. */
enum mu_status mu_kv_gradients_begin(struct mu_kv *kv, size_t key);
enum mu_status mu_kv_push_ready(struct mu_kv *kv, size_t key);
enum mu_status mu_kv_pull_end(struct mu_kv *kv, size_t key);
/* Progresses messages in flight, for long work between steps. mu_kv_push_ready does the same. */
enum mu_status mu_kv_poll(struct mu_kv *kv);
enum mu_status mu_kv_step_end(struct mu_kv *kv);
/*
 * Gets the newest weights without pushing (dist_async, at the end of an epoch). Local SGD: averages
 * now, collective over workers. Other stores: does nothing. Else not collective.
 */
enum mu_status mu_kv_fetch(struct mu_kv *kv);
/*
 * Ends the step and waits for all workers, as at the end of an epoch. Workers of dist_async may
 * arrive at very different times: the limits of waits (struct mu_limits) do not run while the
 * servers still count samples of other workers. Collective over workers.
 */
enum mu_status mu_kv_meet(struct mu_kv *kv);
/* MU_ERR_NUMERIC, naming workers, if not all hold the same weights. Collective over workers. */
enum mu_status mu_kv_verify(struct mu_kv *kv, const char *when);

/*
 * ---- checkpoints of a store of a model ----
 *
 * Besides the weights the next update depends on the optimiser's states (arrays with the layout of
 * the flat arrays), on counts, and on arrays of each worker alone. Call these between
 * steps.
 */

/*
 * Names of the store's states ("momentum"), the same on all workers; returns their number. With
 * local SGD they are those of the average: the block momentum. Where servers keep exact weights
 * beside those that workers have (compressed pulls), MU_KV_EXACT is one of them; a
 * caller who has no values of it loads the weights.
 */
#define MU_KV_MAX_STATES (MU_MAX_STATES + 1)
#define MU_KV_EXACT "exact_weights"
int mu_kv_state_names(const struct mu_kv *kv, const char *names[MU_KV_MAX_STATES]);
/*
 * The keys [*first, *end) that this worker is to save, or to load: together all workers save every
 * key once, in shares of nearly equal size. Where every worker holds all states, it loads all.
 */
void mu_kv_snapshot_share(const struct mu_kv *kv, bool load, size_t *first, size_t *end);

/* Elements [from, to) of the flat arrays, at the beginning of arrays of the caller's. */
struct mu_kv_snapshot {
	size_t from, to;
	float *weights; /* see _save */
	float *arrays[MU_KV_MAX_STATES];
	uint64_t updates;         /* so far */
	double last_lr, progress; /* of the last of them; samples counted */
};
/*
 * Fills in all members but from and to, and the caller's arrays. weights: the store's newest; with
 * local SGD the last average. alone: only this worker calls, for dist_async inside an epoch: each
 * server answers with its present values and continues to update. Else collective over workers.
 */
enum mu_status mu_kv_snapshot_save(struct mu_kv *kv, struct mu_kv_snapshot *states, bool alone);
/*
 * Restores what _save returned, after mu_kv_weights_init and before the first step; weights and
 * progress are not used. Every element must be in the range of some worker. Collective over
 * workers.
 */
enum mu_status mu_kv_snapshot_load(struct mu_kv *kv, struct mu_kv_snapshot *states);

/*
 * The arrays of this worker alone: flat arrays of the whole model, which the caller reads, and
 * writes before the first step (after mu_kv_weights_init), in place; "weights", "state/momentum" of
 * local SGD, "residual" of compression, "residual_of_sums" of the sums that this worker computes
 * for dist_allreduce. n = 0: none, and the counts are 0.
 */
#define MU_KV_OWN_MAX 8
struct mu_kv_own_counts {
	uint64_t steps, updates; /* steps since the last average; updates of its own */
	double samples, last_lr; /* in those steps; of the last update */
};
struct mu_kv_own_array {
	char name[32];
	float *data;
};
struct mu_kv_own {
	size_t n;
	struct mu_kv_own_array arrays[MU_KV_OWN_MAX];
	struct mu_kv_own_counts counts;
};
void mu_kv_own(const struct mu_kv *kv, struct mu_kv_own *own);
void mu_kv_own_set_counts(struct mu_kv *kv, const struct mu_kv_own_counts *counts);

/* Learning rate that the last pulled update used, and samples counted by the store so far. */
double mu_kv_lr(const struct mu_kv *kv);
double mu_kv_progress(const struct mu_kv *kv);

/* Servers: answer until every worker has finished. Not collective. */
enum mu_status mu_kv_serve(struct mu_kv *kv);
/* Workers: done, no step is open. Collective over workers. Servers then return from mu_kv_serve. */
enum mu_status mu_kv_finish(struct mu_kv *kv);

/* Bytes that a rank holds of gradients, and of copies of the weights; codes of compression not
 * counted. */
struct mu_kv_memory {
	size_t gradients; /* of a worker: its own */
	size_t led;       /* of a worker that sums for its node: what the others send it */
	size_t arrived;   /* of a server end: what workers and nodes send it */
	size_t sums;      /* of a server end with lives and a rule that needs norms: of its part */
	size_t copies;    /* of a server end of dist_async: what those workers have pulled */
};

/* The layout of the model in the store: for the start log. */
struct mu_kv_layout {
	size_t n_keys, n_buckets;
	size_t bytes;                                      /* of the weights */
	size_t bytes_per_server_min, bytes_per_server_max; /* 0 without servers */
	/*
	 * dist_async: copies on all servers of the weights that each worker has pulled; none for
	 * a worker that shares memory with its server.
	 */
	size_t bytes_copies;
	/* Of a step of a worker, both ways, as messages. */
	size_t bytes_pushed, bytes_pulled;
	struct mu_kv_memory memory; /* of this rank */
	bool shares_memory; /* with the other ranks of this node */
	bool sums_on_node;  /* its workers send one sum of their gradients to other nodes */
};
void mu_kv_layout(const struct mu_kv *kv, struct mu_kv_layout *layout);

/*
 * The same memory before there is a store, of the rank that holds most of each kind, if ranks of a
 * node find room to share memory, for arrays on the CPU. config: as for mu_kv_new, with the model
 * on every rank; without slices all is 0. Not collective.
 */
enum mu_status mu_kv_memory(const struct mu_kv_config *config, struct mu_kv_memory *memory);

/*
 * Lower bound of the seconds of a step, by links of this many bytes/s in both directions at once. M
 * bytes, n workers, k servers: max(M / B, n M / (k B)), since a worker moves M each way and a
 * server n M / k; without servers 2 (n - 1) M / (n B). Where the ranks of a node share memory or
 * send one sum, the links are those of nodes. 0, no bound: one worker, one node whose ranks share
 * memory, GPUs.
 */
double mu_kv_bound(const struct mu_kv *kv, double bytes_per_second);
/*
 * The same if workers, too, held parts of the model, in the best split: 2 n (n - 1) M / ((n^2 + k n
 * - 2 k) B) (Jiang et al., A unified architecture for accelerating distributed DNN training in
 * heterogeneous GPU/CPU clusters, OSDI 2020). 0 for one worker, and where nodes are as one.
 */
double mu_kv_bound_split(const struct mu_kv *kv, double bytes_per_second);

/*
 * Staleness of dist_async: updates by others between a worker's pull and its next push, over all
 * pushes and servers. Valid on workers after mu_kv_finish; all zero for synchronous stores.
 */
#define MU_KV_STALENESS_BINS 12
struct mu_kv_staleness {
	double pushes, mean, max;
	double counts[MU_KV_STALENESS_BINS]; /* pushes of staleness 0, 1, ...; the last: or more */
	/*
	 * With a bound: pushes whose answer waited for other workers, and the sum of the seconds;
	 * each on the server where it is largest.
	 */
	double held_back, held_back_seconds;
};
void mu_kv_staleness(const struct mu_kv *kv, struct mu_kv_staleness *staleness);

MU_END_C

#endif
