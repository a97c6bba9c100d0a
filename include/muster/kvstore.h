/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kvstore: holds the weights, takes gradients, applies the optimiser, gives weights back. Key k is
 * slice k.
 *
 * A step of a worker:
 *
 *	mu_kv_step_begin(kv, count);              count samples are behind this step's gradients (0
 *is allowed)
 *	... backward; for every key, in any order, each once: mu_kv_push_ready(kv, key);
 *	... next forward; for every key before its weights are read: mu_kv_pull_end(kv, key);
 *
 * or mu_kv_step_end(kv), which pulls all keys; step_begin does so for a step that is still open.
 * Gradients are sums over samples; the update divides by the samples counted: all workers' of this
 * round for synchronous stores, this push's for dist_async. push_ready begins a bucket's push when
 * its last key is ready; the array of gradients may be written again after the pull of the key has
 * ended. The k-th step of a worker belongs to round k; a synchronous round needs every worker's
 * step k, once.
 *
 * With a rule that needs norms over the whole model (mu_optim_needs_norms) nothing is updated
 *before all keys of a step are pushed; a pull before that is an error. dist_async then takes one
 *server.
 *
 * Keys are grouped, last key first, into buckets of about bucket_bytes; the bucket of the first
 * keys is the smallest. Every bucket is cut evenly over the servers, on multiples of 64 elements.
 * Sums are taken in worker order: the bits do not depend on timing, on the number of servers or on
 * the size of buckets.
 *
 * Server ranks call mu_kv_serve, which returns when all workers have called mu_kv_finish.
 */
#ifndef MUSTER_KVSTORE_H
#define MUSTER_KVSTORE_H

#include <muster/base.h>
#include <muster/comm.h>
#include <muster/optim.h>

struct mu_kv;

struct mu_kv_config {
	const char *type; /* "local", "dist_sync", ...; whole words, see mu_kv_type_check */
	const struct mu_topology *topology;
	const struct mu_slice
		*slices; /* of worker 0: the model. Servers pass NULL: they get it from worker 0 */
	size_t n_slices;
	struct mu_optim_config optim; /* equal on all ranks */
	struct mu_schedule schedule;  /* equal on all ranks */
	double progress;              /* samples counted before this run (resume) */
	size_t bucket_bytes;          /* 0 = max(64 KiB, min(4 MiB, model / 16)) */
	size_t message_bytes; /* a server's part of a bucket is cut into messages of at most this; 0
				 = 1 GiB */
};

/* What a kind of store is. */
struct mu_kv_type {
	bool has_servers; /* some ranks serve parameters */
	bool distributed; /* for several workers */
	bool synchronous; /* one update of all workers' gradients */
};

/*
 * The same without making a store. Unknown type: MU_ERR_USAGE with the list. Not collective.
 *
 * local, device: one worker. dist_sync: servers sum and update. dist_async: servers update by each
 * push. dist_device_sync, dist_sync_device and dist_device_async, dist_async_device: the same, the
 * gradients of a rank's devices summed on the devices. dist_sharded: no servers, every worker sums
 * and updates a part of the model, and holds that part's optimiser states alone. dist_allreduce: no
 * servers, every worker sums a part, and all update the whole model.
 */
enum mu_status mu_kv_type_check(const char *type, struct mu_kv_type *is);

/*
 * Collective over topology->world. Workers and servers check that the model is the same on every
 * worker.
 */
enum mu_status mu_kv_new(struct mu_kv **out, const struct mu_kv_config *config);
void mu_kv_free(struct mu_kv *kv);

/* The flat arrays of this worker; mu_kv_n elements. Not collective. */
float *mu_kv_weights(struct mu_kv *kv);
float *mu_kv_gradients(struct mu_kv *kv);
size_t mu_kv_n(const struct mu_kv *kv);

/*
 * Worker 0's weights become everybody's, the servers' too. Collective over workers (servers are in
 * mu_kv_serve).
 */
enum mu_status mu_kv_init(struct mu_kv *kv);

enum mu_status mu_kv_step_begin(struct mu_kv *kv, size_t count);
enum mu_status mu_kv_push_ready(struct mu_kv *kv, size_t key);
enum mu_status mu_kv_pull_end(struct mu_kv *kv, size_t key);
enum mu_status mu_kv_step_end(struct mu_kv *kv);
/*
 * Fetch the newest weights without pushing (dist_async at the end of an epoch; elsewhere it does
 * nothing). Not collective.
 */
enum mu_status mu_kv_pull(struct mu_kv *kv);

/* Learning rate that the last pulled update used, and samples counted by the store so far. */
double mu_kv_lr(const struct mu_kv *kv);
double mu_kv_progress(const struct mu_kv *kv);

/* Servers: answer until every worker has finished. */
enum mu_status mu_kv_serve(struct mu_kv *kv);
/* Workers: done, no step is open. Collective over workers. Servers then return from mu_kv_serve. */
enum mu_status mu_kv_finish(struct mu_kv *kv);

/* How the model lies in the store: for the start log. */
struct mu_kv_layout {
	size_t n_keys, n_buckets;
	size_t bytes;                                      /* of the weights */
	size_t bytes_per_server_min, bytes_per_server_max; /* 0 without servers */
};
void mu_kv_layout(const struct mu_kv *kv, struct mu_kv_layout *layout);

/*
 * Seconds that a step takes at least if links of this many bytes/s, in both directions at once, are
 * all that counts. M bytes, n workers, k servers: max(M / B, n M / (k B)), for a worker moves M
 * each way and a server n M / k; without servers 2 (n - 1) M / (n B). 0 for a store of one worker.
 */
double mu_kv_bound(const struct mu_kv *kv, double bytes_per_second);

/*
 * Staleness of dist_async: updates by others between a worker's pull and its next push, over all
 * pushes and servers. Valid on workers after mu_kv_finish; all zero for synchronous stores.
 */
struct mu_kv_staleness {
	double pushes, mean, max;
};
void mu_kv_staleness(const struct mu_kv *kv, struct mu_kv_staleness *staleness);

#endif
