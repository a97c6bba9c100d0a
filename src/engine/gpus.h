/* SPDX-License-Identifier: Apache-2.0 */
/* Stores whose arrays lie on GPUs, as the engine joins them. */
#ifndef ENGINE_GPUS_H
#define ENGINE_GPUS_H

#include <muster/kvstore.h>

#include "conf/options.h"

struct mu_engine;

/*
 * ---- gpus.c: stores of GPUs; nothing of it is done for others ----
 *
 * _obstacle: an option that works on the CPU's arrays, or NULL. _settle, before the store is made:
 * on_gpus, if it can have its arrays on GPUs and nobody else looks at gradients. _by_nodes: then
 * NCCL sums in nodes. _fall_back, once devices are open: not where options leave it open and a host
 * lacks NCCL, or a node has nothing to sum, or one GPU for several workers; by all ranks. _join,
 * before mu_kv_weights_init: the store takes the devices; by workers. _leave, before they are
 * closed. _clear: gradients of 0, where there are no samples or on all. _record: --cuda-graph.
 */
const char *mu_engine_gpus_obstacle(const struct conf *v, bool split);
bool mu_engine_gpus_by_nodes(const struct conf *v, const struct mu_kv_type *store);
enum mu_status mu_engine_gpus_settle(const struct conf *v, struct mu_kv_type *store,
				     const struct engine_device_list *list);
enum mu_status mu_engine_gpus_fall_back(struct mu_engine *e, struct mu_kv_type *store);
enum mu_status mu_engine_gpus_join(struct mu_engine *e);
void mu_engine_gpus_leave(struct mu_engine *e);
enum mu_status mu_engine_gpus_clear(struct mu_engine *e, bool all);
enum mu_status mu_engine_gpus_record(struct mu_engine *e);

#endif
