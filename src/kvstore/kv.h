/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to kvstore: the store, how the model lies in it, and the table of kinds of store.
 */
#ifndef MUSTER_KVSTORE_KV_H
#define MUSTER_KVSTORE_KV_H

#include <muster/kvstore.h>

/* ---- layout (bucket.c) ---- */

/* Some consecutive keys: a run of the flat arrays, which is pushed and pulled as one. */
struct mu_kv_bucket {
	size_t at, n;
	size_t first_key, n_keys;
	size_t first_part, n_parts;
	char what[48]; /* for messages about waiting */
};

/* One message each way: a run of a bucket that one server holds. */
struct mu_kv_part {
	size_t at, n;
	size_t local; /* first element in the server's own arrays */
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
	size_t *bucket_of; /* of every key */
};

struct mu_kv_cut {
	size_t bucket_bytes, message_bytes; /* 0 = default */
	int n_servers;                      /* 1 for a store without servers */
};

enum mu_status mu_kv_plan_init(struct mu_kv_plan *plan, const struct mu_slice *slices,
			       size_t n_slices, const struct mu_kv_cut *cut);
void mu_kv_plan_release(struct mu_kv_plan *plan);
/* Elements that server s holds. */
size_t mu_kv_plan_load(const struct mu_kv_plan *plan, int server);

/* ---- the model (model.c) ---- */

/*
 * Worker 0's slices to every rank, after a check that all workers have the same. Collective over
 * kv->comm.
 */
enum mu_status mu_kv_model_share(struct mu_kv *kv, const struct mu_slice *slices, size_t n_slices);

/* ---- the store (kvstore.c) ---- */

/*
 * A kind of store. Slots that a kind without servers, or of which a role, has no use for are NULL.
 */
struct mu_kv_ops {
	const char *name;
	bool has_servers;
	bool one_worker;          /* nothing goes between ranks */
	bool async;               /* every push updates at once */
	enum mu_clock push_clock; /* what a worker's push counts as */
	enum mu_status (*open)(struct mu_kv *kv, const struct mu_kv_config *config);
	void (*close)(struct mu_kv *kv);
	enum mu_status (*init)(struct mu_kv *kv);
	enum mu_status (*step_begin)(struct mu_kv *kv);
	enum mu_status (*push)(struct mu_kv *kv, size_t bucket);
	enum mu_status (*poll)(struct mu_kv *kv); /* let messages under way move on */
	enum mu_status (*pull)(struct mu_kv *kv, size_t bucket);
	enum mu_status (*step_end)(struct mu_kv *kv);
	enum mu_status (*fetch)(struct mu_kv *kv);
	enum mu_status (*finish)(struct mu_kv *kv);
	enum mu_status (*serve)(struct mu_kv *kv);
};

extern const struct mu_kv_ops mu_kv_local;
extern const struct mu_kv_ops mu_kv_device;
extern const struct mu_kv_ops mu_kv_dist_sync;
extern const struct mu_kv_ops mu_kv_dist_async;

struct mu_keys;

struct mu_kv {
	const struct mu_kv_ops *ops;
	const struct mu_topology *topology;
	MPI_Comm comm; /* the store's own */
	struct mu_schedule schedule;
	struct mu_slice *slices;
	char *names; /* of the slices */
	size_t n_slices;
	struct mu_kv_plan plan;
	float *weights, *gradients; /* NULL on servers */

	/* The step of a worker. */
	bool open;
	uint64_t step; /* its number: 1, 2, ... */
	double count;
	bool *ready;       /* per key: its gradient was pushed in this step */
	size_t *keys_left; /* per bucket: keys still to be pushed */
	bool *pulled;      /* per bucket */

	double progress, lr;
	struct mu_kv_staleness staleness;
	void *end;            /* the kind's own: local, worker end or server end */
	struct mu_keys *keys; /* a store of keys; else NULL */
};

#endif
