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
	const char *type; /* "local", "device", "dist_sync", "dist_async"; whole words */
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

/*
 * What a store is, without making one: does it need servers? Unknown type: MU_ERR_USAGE with the
 * list.
 */
enum mu_status mu_kv_type_check(const char *type, bool *has_servers, bool *distributed);

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
enum mu_status mu_kv_weights_init(struct mu_kv *kv);

enum mu_status mu_kv_step_begin(struct mu_kv *kv, size_t count);
enum mu_status mu_kv_push_ready(struct mu_kv *kv, size_t key);
enum mu_status mu_kv_pull_end(struct mu_kv *kv, size_t key);
enum mu_status mu_kv_step_end(struct mu_kv *kv);
/*
 * Fetch the newest weights without pushing (dist_async at the end of an epoch; elsewhere it does
 * nothing). Not collective.
 */
enum mu_status mu_kv_fetch(struct mu_kv *kv);

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
 * Staleness of dist_async: updates by others between a worker's pull and its next push, over all
 * pushes and servers. Valid on workers after mu_kv_finish; all zero for synchronous stores.
 */
struct mu_kv_staleness {
	double pushes, mean, max;
};
void mu_kv_staleness(const struct mu_kv *kv, struct mu_kv_staleness *staleness);

#endif
