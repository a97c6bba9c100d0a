/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to kvstore: waits of a worker, and the ranks that the two ends of a store of a model wait
 * for (struct mu_awaited).
 */
#ifndef MUSTER_KVSTORE_AWAITED_H
#define MUSTER_KVSTORE_AWAITED_H

#include "dist.h"

/* Workers that others wait for. The context is a struct mu_kv_server. */
mu_awaited_fn mu_kv_awaited_workers;

/* A worker's wait: for requests, and for the server ends of its node to do the same. */
struct mu_kv_wait {
	size_t n;
	MPI_Request *requests;
	bool for_answers;         /* for the answers to its order */
	bool for_gradients;       /* until the gradients of these buckets are summed */
	size_t bucket, n_buckets; /* for the results of these buckets */
	const char *what;
	const struct mu_meeting *meeting; /* a collective of workers; NULL: a wait for servers */
};
enum mu_status mu_kv_worker_wait(struct mu_kv *kv, const struct mu_kv_wait *wait);

/* Servers that the worker waits for: function and context. */
struct mu_kv_awaited_servers {
	const struct mu_kv *kv;
	const struct mu_kv_wait *wait;
};
mu_awaited_fn mu_kv_awaited_servers;

#endif
