/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to kvstore: the store, the layout of the model in it, and the table of stores.
 */
#ifndef MUSTER_KVSTORE_KV_H
#define MUSTER_KVSTORE_KV_H

#include <muster/gpus.h>
#include <muster/kvstore.h>
#include <muster/notice.h>

#include "comm/traffic.h"

/* ---- layout (bucket.c) ---- */

/* Consecutive keys, which are pushed and pulled together. */
struct mu_kv_bucket {
	size_t at, n;
	size_t first_key, n_keys;
	size_t first_part, n_parts;
	char what[48]; /* for messages about waiting */
};

/* One message each way: a run of a bucket that one server holds. */
struct mu_kv_part {
	size_t at, n;
	size_t local;  /* first element in the server's own arrays */
	size_t gradient; /* first element in a worker's gradients: at, without shards */
	size_t number; /* among the parts of its server */
	size_t inbox;	 /* on its server: first element in the inbox of a source */
	int server;
};

/*
 * Buckets are in the order of backward: bucket 0 holds the last keys. Parts are in the order of
 * buckets.
 */
struct mu_kv_plan {
	size_t n; /* elements of a flat array */
	size_t n_buckets, n_parts;
	struct mu_kv_bucket *buckets;
	struct mu_kv_part *parts;
	size_t *bucket_of; /* by key */
};

struct mu_kv_cut {
	size_t bucket_bytes, message_bytes; /* 0 = default */
	int n_servers;                      /* 1 for a store without servers */
	bool blocks; /* cut on multiples of MU_COMPRESS_BLOCK in the flat array */
};

enum mu_status mu_kv_plan_init(struct mu_kv_plan *plan, const struct mu_slice *slices,
			       size_t n_slices, const struct mu_kv_cut *cut);
void mu_kv_plan_release(struct mu_kv_plan *plan);
/* The bucket of an element. */
size_t mu_kv_plan_bucket(const struct mu_kv_plan *plan, size_t at);
/* Elements that server s holds. */
size_t mu_kv_plan_load(const struct mu_kv_plan *plan, int server);

/* ---- slots (slots.c) ---- */

#define MU_KV_NO_BUCKET SIZE_MAX

/* Memory that buckets have one after the other. */
struct mu_kv_slots {
	size_t n;	/* elements of all slots */
	size_t *at;	/* by bucket: its first element */
	size_t *before; /* by bucket: the earlier one of its slot in a step, or NO_BUCKET */
	size_t *next;	/* by bucket: the later one; of the last in a step the first */
};

/* The memory of n buckets with these lives and sizes. *slots is all 0. */
enum mu_status mu_kv_slots_init(struct mu_kv_slots *slots, const struct mu_kv_life *lives,
				const size_t *sizes, size_t n);
void mu_kv_slots_release(struct mu_kv_slots *slots);

/* ---- shards of gradients (gradients.c) ---- */

/* lives: by key, or NULL. After kv->model.plan, before the arrays. */
enum mu_status mu_kv_gradients_open(struct mu_kv *kv, const struct mu_kv_life *lives);
void mu_kv_gradients_close(struct mu_kv *kv);
/* Where a source's gradients arrive at a server end. lives: by bucket. */
enum mu_status mu_kv_slots_of_inbox(struct mu_kv_slots *slots, const struct mu_kv_plan *plan,
				    const struct mu_kv_life *lives, int server);

/* ---- the model (slice_table.c) ---- */

/*
 * Copies worker 0's slices to every rank, after a check that all workers have the same, lives
 * included. Collective over kv->comm.
 */
enum mu_status mu_kv_model_share(struct mu_kv *kv, const struct mu_kv_config *config);

/* ---- settings (settings.c) ---- */

/* Are they consistent and valid for this kind of store? Not collective; the same on every rank. */
enum mu_status mu_kv_config_check(const struct mu_kv_config *config);
/* Are they the same on all ranks? Collective over kv->comm; all ranks return the same. */
enum mu_status mu_kv_config_agree(const struct mu_kv *kv, const struct mu_kv_config *config);

/* ---- nodes (nodes.c, see nodes.h) ---- */

struct mu_kv_nodes {
	size_t *workers; /* sorted by node, then by number */
	size_t *first;   /* by node: index of its first worker; then the number of workers */
	bool *reduces;   /* by node */
	bool by_gpus;    /* NCCL sums the gradients of a node (gpu/node.c) */
};

/* ---- norms (norm.c) ---- */

/* What an owner of pieces needs to compute norms with the other owners. rounds 0: no norms. */
struct mu_kv_norms {
	int rounds, n_owners;
	MPI_Comm owners; /* all ranks of a role */
	size_t n_words, n_pieces;
	struct mu_share share; /* set before mu_kv_norms_init, or empty */
	uint64_t *sums, *all;  /* sums of this owner, later of all; sums of each owner */
	uint64_t *parts;       /* the sums of each thread of share */
};

/* Of all ranks of this role; m NULL: of this rank alone. */
enum mu_status mu_kv_norms_init(struct mu_kv_norms *norms, const struct mu_optim *optim,
				const struct mu_members *m);
void mu_kv_norms_release(struct mu_kv_norms *norms);
/* Sets pointers to piece p's weights and gradients. */
typedef void mu_kv_find_fn(const void *context, size_t p, const float **weights,
			   const float **gradients);
/* Between mu_optim_begin and mu_optim_block of all pieces. Collective over owners. */
enum mu_status mu_kv_norms_measure(struct mu_kv_norms *norms, struct mu_optim *optim,
				   mu_kv_find_fn *find, const void *context);

/* ---- the store (kvstore.c) ---- */

/* What follows from the settings alone: what the store is, and its server ends. Not collective. */
enum mu_status mu_kv_outline(struct mu_kv *kv, const struct mu_kv_config *config);
/* Then, from the model in kv->model.slices: its parts, the nodes, the places of gradients. */
enum mu_status mu_kv_lay_out(struct mu_kv *kv, const struct mu_kv_config *config);

/* Is this rank a worker? call: of the public function, for the message. */
enum mu_status mu_kv_check_worker(const struct mu_kv *kv, const char *call);

/*
 * What a store does: functions alone; struct mu_kv_kind says what it is. Functions that a store
 * without servers, or a role, does not need are NULL.
 */
struct mu_kv_ops {
	enum mu_status (*open)(struct mu_kv *kv, const struct mu_kv_config *config);
	void (*close)(struct mu_kv *kv); /* also after an open that failed */
	enum mu_status (*set_devices)(struct mu_kv *kv, const struct mu_kv_device *devices,
				      size_t n);
	void (*leave_devices)(struct mu_kv *kv); /* before close */
	enum mu_status (*init)(struct mu_kv *kv);
	enum mu_status (*step_begin)(struct mu_kv *kv);
	enum mu_status (*push)(struct mu_kv *kv, size_t bucket);
	enum mu_status (*poll)(struct mu_kv *kv); /* progress messages in flight */
	enum mu_status (*pull)(struct mu_kv *kv, size_t bucket);
	/* Shards: wait until the bucket's gradients, which are pushed, may be overwritten. */
	enum mu_status (*taken)(struct mu_kv *kv, size_t bucket);
	enum mu_status (*step_end)(struct mu_kv *kv);
	enum mu_status (*fetch)(struct mu_kv *kv);
	enum mu_status (*meet)(struct mu_kv *kv); /* NULL: a barrier */
	enum mu_status (*finish)(struct mu_kv *kv);
	enum mu_status (*serve)(struct mu_kv *kv);
	/* Copy the newest weights and states to the host. NULL: they are there. Collective over
	 * workers. */
	enum mu_status (*collect)(struct mu_kv *kv);
	enum mu_status (*loaded)(struct mu_kv *kv); /* the states on the host were loaded */
	/* Save or load kv->saved.states, where neither servers nor kv->update hold them. */
	enum mu_status (*states)(struct mu_kv *kv, bool load);
};

/* ---- updates by a worker (update.c) ---- */

/* The optimiser of a worker: piece b is bucket b. */
struct mu_kv_update {
	float *weights; /* the flat array that it updates: the store's unless set otherwise */
	struct mu_optim *optim;
	struct mu_kv_norms norms;
};

enum mu_status mu_kv_update_open(struct mu_kv *kv, struct mu_kv_update *u,
				 const struct mu_optim_config *config);
void mu_kv_update_close(struct mu_kv_update *u);
/* Update a bucket with kv->rates.lr; all buckets together, for rules that need norms. gradients: a
 * flat array of sums over count samples. */
void mu_kv_update_bucket(struct mu_kv *kv, struct mu_kv_update *u, size_t bucket, double count,
			 const float *gradients);
enum mu_status mu_kv_update_all(struct mu_kv *kv, struct mu_kv_update *u, double count,
				const float *gradients);

/* ---- local SGD (local_sgd.c) ---- */

/* The same on every rank. */
enum mu_status mu_kv_local_sgd_check(const struct mu_kv_config *config,
				     const struct mu_kv_type *type);
struct mu_kv_replica;

/*
 * Opens a worker's replica, whose functions replace kv->ops, and changes config into the settings
 * of the averages, with which the store is then opened. Before kv->ops->open, on every rank.
 */
enum mu_status mu_kv_replica_open(struct mu_kv *kv, struct mu_kv_config *config);
void mu_kv_replica_close(struct mu_kv_replica *r);
/* For mu_kv_weights, mu_kv_lr and mu_kv_progress. */
float *mu_kv_replica_weights(const struct mu_kv *kv);
double mu_kv_replica_lr(const struct mu_kv *kv);
double mu_kv_replica_progress(const struct mu_kv *kv);

/* The arrays and counts of this worker: see mu_kv_own. */
void mu_kv_replica_own(const struct mu_kv *kv, struct mu_kv_own *own);
void mu_kv_replica_set_counts(struct mu_kv *kv, const struct mu_kv_own_counts *counts);

/* ---- kinds (kinds.c) ---- */

/* Which forms of a store have their arrays on GPUs. */
enum {
	MU_KV_GPUS_NCCL = 1, /* NCCL in place of messages (gpu/nccl.c) */
	MU_KV_GPUS_NODE =
		2, /* NCCL inside a node, the store's messages between nodes (gpu/node.c) */
};

/* A row of the table of stores: what a store is. */
struct mu_kv_kind {
	const char *name;
	const struct mu_kv_ops *ops;
	bool has_servers;
	bool hosted;          /* no server ranks: every worker holds a server end */
	bool one_worker;      /* no messages between ranks */
	bool own_weights;     /* the weights of workers differ */
	bool workers_update;  /* workers receive sums of gradients and update the whole model */
	bool synchronous;     /* the gradients of all workers make one update */
	bool sums_on_devices; /* the gradients of a rank's devices; else on the CPU */
	bool on_gpus;         /* the arrays are on GPUs */
	unsigned gpus;        /* the forms that it has on GPUs */
	/* MU_KV_GPUS_NODE: the store between nodes, of which ops is a layer. */
	const struct mu_kv_ops *below;
};

/* The row of config->type, which is known, in the form that the settings ask for. */
struct mu_kv_kind mu_kv_kind_of(const struct mu_kv_config *config);
/* Does this build have one of these forms of the store on GPUs? */
bool mu_kv_kind_has_gpus(const char *type, unsigned gpus);

/* The behaviours. */
extern const struct mu_kv_ops mu_kv_local;     /* local.c */
extern const struct mu_kv_ops mu_kv_sync;      /* ps/sync.c */
extern const struct mu_kv_ops mu_kv_async;     /* ps/async.c */
extern const struct mu_kv_ops mu_kv_allreduce; /* ps/allreduce.c */
extern const struct mu_kv_ops mu_kv_nccl;      /* gpu/nccl.c */
extern const struct mu_kv_ops mu_kv_node;      /* gpu/node.c */

/* ---- the store: a struct for each idea, in the order in which they come to be ---- */

/* The model, and how it is cut. */
struct mu_kv_model {
	struct mu_slice *slices;
	char *names; /* of the slices */
	size_t n_slices;
	struct mu_kv_plan plan;
	/* Shards of gradients: all NULL without. */
	size_t n_gradients; /* elements of the array of gradients */
	struct mu_kv_slots slots;
	struct mu_kv_life *lives; /* by bucket */
	size_t *places;           /* by key: see mu_kv_gradient_places */
};

/*
 * Flat arrays. results: what a worker receives, weights or sums of gradients. In shared memory the
 * workers of a node have one array of results, unless their weights differ. Local SGD: weights are
 * the last average.
 */
struct mu_kv_arrays {
	float *weights, *gradients, *results;
	struct mu_window *window; /* shared memory that holds the arrays; NULL: none */
	float *owned[3];          /* arrays that are not in the window */
	size_t n_owned;
};

/* What the settings say about steps. */
struct mu_kv_rules {
	bool replaces;           /* the rule sets the weights to the sums of gradients */
	bool whole_steps;        /* updates need all gradients of a step: norms */
	const char *whole_pulls; /* why all keys are pushed before a pull; NULL: no need */
	bool priority;           /* see mu_kv_config */
	bool bounded;            /* dist_async: see mu_kv_config */
	uint64_t max_staleness;
};

/* The step of a worker. */
struct mu_kv_step {
	bool has_weights; /* mu_kv_weights_init is done */
	bool open;
	uint64_t number;     /* 1, 2, ...; with local SGD averages count */
	uint64_t begun;      /* steps that the caller has begun */
	uint64_t updated;    /* dist_allreduce: the last step that was updated as a whole */
	double count;        /* samples */
	bool *ready;         /* by key: its gradient was pushed in this step */
	size_t *keys_left;   /* by bucket: keys not yet pushed */
	size_t buckets_left; /* not yet pushed */
	bool *pulled;        /* by bucket */
	uint64_t *versions;  /* by key: version of the weights that this worker reads */
	uint64_t *claimed;   /* by bucket: the last step that writes its gradients; or NULL */
	double *pushed_at;   /* by bucket; allocated at the first use */
};

/* Learning rates. */
struct mu_kv_rates {
	struct mu_schedule schedule;
	double progress, lr;
	double factor; /* see mu_kv_set_rate */
};

/* See notice.h. */
struct mu_kv_notices {
	mu_kv_say_fn *say;
	void *context;
	uint64_t received; /* the largest */
};

/* The arrays of checkpoints. */
struct mu_kv_saved {
	struct mu_kv_snapshot *states; /* of a worker that saves or loads them now; else NULL */
	int n_names;
	const char *names[MU_KV_MAX_STATES];
};

/* What acts on this rank. */
struct mu_kv_ends {
	int n_servers;                 /* server ends: on server ranks, or on workers */
	int n_workers;
	struct mu_kv_replica *replica; /* local SGD, on workers; else NULL */
	struct mu_kv_worker *worker;   /* the ends of this rank, in a store between ranks */
	struct mu_kv_server *server;
	struct mu_nccl *nccl; /* a store of GPUs; else NULL */
};

struct mu_kv {
	struct mu_kv_kind kind;
	const struct mu_kv_ops *ops; /* kind.ops, or local SGD's */
	enum mu_clock push_clock;    /* what the time of a push counts as */
	const struct mu_members *members;
	MPI_Comm comm; /* the store's own */
	struct mu_share share;
	struct mu_traffic traffic;
	struct mu_kv_model model;
	struct mu_kv_nodes nodes;
	struct mu_kv_arrays arrays;
	/*
	 * Compression. own_weights: as in kind, and with compressed pulls, where each worker adds
	 * the changes to weights of its own.
	 */
	struct mu_coder push_coder, pull_coder;
	bool own_weights;
	struct mu_kv_rules rules;
	struct mu_kv_step step;
	struct mu_kv_rates rates;
	struct mu_kv_notices notices;
	struct mu_kv_staleness staleness;
	struct mu_kv_update update; /* of a worker that updates by itself */
	struct mu_kv_saved saved;
	struct mu_kv_ends ends;
};

static inline int mu_kv_worker_rank(const struct mu_kv *kv, size_t w)
{
	return mu_worker_rank(kv->members, (int)w);
}

/* Of a server end. */
static inline int mu_kv_server_rank(const struct mu_kv *kv, int s)
{
	return kv->kind.hosted ? mu_worker_rank(kv->members, s) : mu_server_rank(kv->members, s);
}

/* The larger of this rank's own notice and the received one. */
static inline uint64_t mu_kv_current_notice(const struct mu_kv *kv)
{
	const uint64_t own = kv->notices.say ? kv->notices.say(kv->notices.context) : 0;

	return own > kv->notices.received ? own : kv->notices.received;
}

/* The learning rate of the next update, by gradients of count samples. */
static inline double mu_kv_next_lr(const struct mu_kv *kv, double count)
{
	return kv->rates.factor * mu_schedule_lr(&kv->rates.schedule, kv->rates.progress, count);
}

/* Are gradients compressed? */
static inline bool mu_kv_is_coded(const struct mu_kv *kv)
{
	return kv->push_coder.codec != NULL;
}

#endif
