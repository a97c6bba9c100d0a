/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to kvstore: the log of connections, placement and messages. Where it is off a message
 * costs the test of a flag.
 */
#ifndef MUSTER_KVSTORE_TRAFFIC_H
#define MUSTER_KVSTORE_TRAFFIC_H

#include "kvstore/ps/dist.h"

/* How much is told: config's, or else that of rank 0's environment. Collective over kv->comm. */
enum mu_status mu_traffic_open(struct mu_kv *kv, const struct mu_kv_config *config);
void mu_traffic_close(struct mu_kv *kv);
/* The store is made: what is connected to what, and what lies where. */
void mu_traffic_tell(const struct mu_kv *kv);

static inline bool mu_traffic_connections(const struct mu_kv *kv)
{
	return kv->verbose >= MU_VERBOSE_CONNECTIONS;
}

static inline bool mu_traffic_messages(const struct mu_kv *kv)
{
	return kv->verbose >= MU_VERBOSE_MESSAGES;
}

/* Does anybody want to know when buckets leave and come back? */
static inline bool mu_traffic_buckets(const struct mu_kv *kv)
{
	return mu_traffic_messages(kv) || mu_spans_wanted();
}

enum mu_traffic_direction { MU_TRAFFIC_OUT, MU_TRAFFIC_IN };

/* One line: a message with a rank of kv->comm. seconds: how long it took; below 0: not known. */
void mu_traffic_write(const struct mu_kv *kv, enum mu_traffic_direction direction, int rank,
		      size_t nbytes, double seconds, const char *what, ...)
	__attribute__((format(printf, 6, 7)));

/* ---- a model: if mu_traffic_messages ---- */

/* A part of the first weights, from worker 0 to its server: on either. */
void mu_traffic_first(const struct mu_kv *kv, const struct mu_kv_part *part,
		      enum mu_traffic_direction direction);

/* ---- a model: on workers, if mu_traffic_messages ---- */

void mu_traffic_order(const struct mu_kv *kv, enum wire_kind kind);
void mu_traffic_answers(const struct mu_kv *kv);
/* Its parts leave, or are back: with a server, or with the worker of this node that leads them. If
 * mu_traffic_buckets. */
void mu_traffic_bucket(struct mu_kv *kv, size_t bucket, enum mu_traffic_direction direction);

/* ---- a model: on servers, worker w ---- */

void mu_traffic_server_order(const struct mu_kv_server *s, size_t w);
void mu_traffic_server_answer(const struct mu_kv_server *s, size_t w);
void mu_traffic_server_part(const struct mu_kv_server *s, size_t p, size_t w,
			    enum mu_traffic_direction direction);

#endif
