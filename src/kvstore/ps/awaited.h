/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to kvstore: whom the two ends of a store of a model wait for (struct mu_awaited).
 */
#ifndef MUSTER_KVSTORE_AWAITED_H
#define MUSTER_KVSTORE_AWAITED_H

#include "dist.h"

/* Workers that others wait for. The context is a struct mu_kv_server. */
mu_awaited_fn mu_kv_awaited_workers;

/* What a worker waits for: requests, and that the server ends of this node have done the same. */
struct mu_kv_wait {
	size_t n;
	MPI_Request *requests;
	bool for_answers;         /* to its order */
	size_t bucket, n_buckets; /* that are to come back */
	const char *what;
	const struct mu_meeting *meeting; /* a collective of workers; NULL: a wait for servers */
};
enum mu_status mu_kv_worker_wait(struct mu_kv *kv, const struct mu_kv_wait *wait);

/* The context of mu_kv_awaited_servers: servers that have not done it. */
struct mu_kv_awaited_servers {
	const struct mu_kv *kv;
	const struct mu_kv_wait *wait;
};
mu_awaited_fn mu_kv_awaited_servers;

#endif
