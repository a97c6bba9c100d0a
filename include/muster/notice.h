/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kvstore: a word that travels with the steps of a store of a model, in its orders and answers,
 * without messages of its own. A rank says it, and all workers hear the largest that any rank,
 * servers included, has said so far.
 *
 * Synchronous stores: what was said until step t is heard, the same by all workers, from
 * mu_kv_step_end of step t on (or mu_kv_step_begin of step t + 1, which ends step t); with local
 * SGD of the next step that averages. dist_async: some steps later, by each worker at a time of its
 * own; a server that has heard a word holds no worker back any more by the bound of staleness.
 */
#ifndef MUSTER_NOTICE_H
#define MUSTER_NOTICE_H

#include <muster/kvstore.h>

MU_BEGIN_C

/* What a rank has to say now; 0: nothing. */
typedef uint64_t mu_kv_say_fn(void *context);
/*
 * fn is called once per step by each worker, and by each server, before it answers. It must be
 * cheap. After mu_kv_new, and on servers before mu_kv_serve; without it a rank says nothing. Not
 * collective.
 */
void mu_kv_say(struct mu_kv *kv, mu_kv_say_fn *fn, void *context);
/* What this worker has heard; 0: nothing. Not collective. */
uint64_t mu_kv_notice(const struct mu_kv *kv);
/*
 * From this worker's next step on learning rates are those of the schedule times rate, which is 1
 * at first. It travels likewise. All workers of a synchronous store must say the same before the
 * same step; with dist_async that of the last order counts. Not collective.
 */
void mu_kv_set_rate(struct mu_kv *kv, double rate);

MU_END_C

#endif
