/* SPDX-License-Identifier: Apache-2.0 */
/*
 * kvstore: notices. A notice is a number that travels in the orders and answers of a store of a
 * model, without messages of its own. All workers receive the largest notice that any rank,
 * servers included, has posted so far.
 *
 * Synchronous stores: notices posted by step t are received, the same on all workers, from
 * mu_kv_step_end of step t on (or mu_kv_step_begin of step t + 1, which ends step t); with local
 * SGD from the next step that averages. dist_async: some steps later, at a different time on each
 * worker; a server that has received a notice no longer delays workers by the bound of staleness.
 */
#ifndef MUSTER_NOTICE_H
#define MUSTER_NOTICE_H

#include <muster/kvstore.h>

MU_BEGIN_C

/* This rank's current notice; 0: none. */
typedef uint64_t mu_kv_say_fn(void *context);
/*
 * fn is called once per step by each worker, and by each server, before it answers. It must be
 * cheap. After mu_kv_new, and on servers before mu_kv_serve; without it a rank has no notice. Not
 * collective.
 */
void mu_kv_say(struct mu_kv *kv, mu_kv_say_fn *fn, void *context);
/* The largest notice that this worker has received; 0: none. Not collective. */
uint64_t mu_kv_notice(const struct mu_kv *kv);
/*
 * From this worker's next step on the learning rate is the schedule's times rate, which is 1
 * at first. It travels likewise. All workers of a synchronous store must set the same before the
 * same step; in dist_async the rate of the last order applies. Not collective.
 */
void mu_kv_set_rate(struct mu_kv *kv, double rate);

MU_END_C

#endif
