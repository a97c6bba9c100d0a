/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to kvstore: whom the two ends of a store of a model wait for (struct mu_awaited).
 */
#ifndef MUSTER_KVSTORE_LATE_H
#define MUSTER_KVSTORE_LATE_H

#include "dist.h"

/* The context is a struct mu_kv_server: workers that others are kept waiting by. */
mu_awaited_fn mu_kv_late_workers;

/* What a worker waits for. */
struct mu_kv_lateness {
	const struct mu_kv *kv;
	const char *what;
	size_t bucket, n_buckets; /* that are to come back; none: the answers to its order */
};
/* The context is a struct mu_kv_lateness: servers that have not done it. */
mu_awaited_fn mu_kv_late_servers;

#endif
