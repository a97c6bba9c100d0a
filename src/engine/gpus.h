/* SPDX-License-Identifier: Apache-2.0 */
/* Stores that keep their arrays on GPUs, as the engine uses them. */
#ifndef ENGINE_GPUS_H
#define ENGINE_GPUS_H

#include <muster/kvstore.h>

#include "conf/options.h"

struct mu_engine;

/*
 * ---- gpus.c: for stores of GPUs; other stores: nothing happens ----
 *
 * _by_nodes: NCCL sums within nodes. _settle, before the store is created: set on_gpus, if the
 * store can keep its arrays on GPUs and no option needs them on the CPU. _fall_back, after devices
 * are opened: clear on_gpus if options allow it and a host has no NCCL, a node has nothing to sum,
 * or several workers use one GPU; collective over all ranks. _join, before mu_kv_weights_init: the
 * store uses the devices; collective over workers. _leave: before the devices are closed. _clear:
 * set gradients to 0, on devices without samples or on all. _record: --cuda-graph. _alone: one GPU,
 * with a store that keeps its arrays there: no sums.
 */
bool mu_engine_gpus_by_nodes(const struct conf *v, const struct mu_kv_type *store);
bool mu_engine_gpus_alone(const struct mu_engine *e);
enum mu_status mu_engine_gpus_settle(const struct conf *v, struct mu_kv_type *store,
				     const struct engine_device_list *list);
enum mu_status mu_engine_gpus_fall_back(struct mu_engine *e, struct mu_kv_type *store);
enum mu_status mu_engine_gpus_join(struct mu_engine *e);
void mu_engine_gpus_leave(struct mu_engine *e);
enum mu_status mu_engine_gpus_clear(struct mu_engine *e, bool all);
enum mu_status mu_engine_gpus_record(struct mu_engine *e);

#endif
