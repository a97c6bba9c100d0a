/* SPDX-License-Identifier: Apache-2.0 */
/* Private: the log of connections, placement and messages (comm/traffic.h) of a model. */
#ifndef MUSTER_KVSTORE_MESSAGE_LOG_H
#define MUSTER_KVSTORE_MESSAGE_LOG_H

#include "comm/traffic.h"
#include "kvstore/ps/dist.h"

/* After the store is opened: logs connections and placement. */
void mu_kv_log_connections(const struct mu_kv *kv);

/* Are the times of pushes and pulls of buckets wanted? */
static inline bool mu_kv_log_wants_buckets(const struct mu_kv *kv)
{
	return mu_traffic_messages(&kv->traffic) || mu_spans_wanted();
}

/* ---- if mu_traffic_messages ---- */

/* A part of the first weights, from worker 0 to its server; on both. */
void mu_kv_log_first(const struct mu_kv *kv, const struct mu_kv_part *part,
		     enum mu_traffic_direction direction);

/* ---- on workers, if mu_traffic_messages ---- */

void mu_kv_log_order(const struct mu_kv *kv, enum wire_kind kind);
void mu_kv_log_answers(const struct mu_kv *kv);
/* The parts of a bucket are sent or received. If mu_kv_log_wants_buckets. */
void mu_kv_log_bucket(struct mu_kv *kv, size_t bucket, enum mu_traffic_direction direction);

/* ---- on servers, worker w ---- */

void mu_kv_log_server_order(const struct mu_kv_server *s, size_t w);
void mu_kv_log_server_answer(const struct mu_kv_server *s, size_t w);
void mu_kv_log_server_part(const struct mu_kv_server *s, size_t p, size_t w,
			   enum mu_traffic_direction direction);

#endif
