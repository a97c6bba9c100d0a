/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private: the log of messages (traffic.h) of a store of keys. Called if
 * mu_traffic_messages.
 */
#ifndef MUSTER_KEYS_TRAFFIC_H
#define MUSTER_KEYS_TRAFFIC_H

#include "serving.h"

/*
 * On a worker: what of these transfers goes to an owner, or came from it. seconds: since the call
 * was sent.
 */
void mu_keys_traffic_call(const struct mu_keys *keys, size_t owner, size_t n,
			  const struct mu_transfer *x, enum mu_traffic_direction direction,
			  double seconds);
/* A call that is not about keys: KEYS_MAKE, KEYS_RULE, ... */
void mu_keys_traffic_order(const struct mu_keys *keys, enum mu_traffic_direction direction,
			   int rank, enum keys_op op, size_t nbytes);
/* On an owner: item i of a worker's call is here, or its value leaves. */
void mu_keys_traffic_item(const struct mu_keys_server *s, const struct mu_keys_conn *c, size_t i,
			  enum mu_traffic_direction direction, size_t nbytes);

#endif
