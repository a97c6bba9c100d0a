/* SPDX-License-Identifier: Apache-2.0 */
/* Private to comm: sleep until another rank of the node calls mu_wake. The shared page also holds
 * the notes of liveness.h. */
#ifndef MUSTER_COMM_WAKE_H
#define MUSTER_COMM_WAKE_H

#include <muster/comm.h>

#include "liveness.h"

/* Collective over m->topology.node. m->wake is set on all its ranks or on none. */
enum mu_status mu_wake_open(struct mu_members *m);
void mu_wake_close(struct mu_members *m);
/* Wakes of this rank so far; 0 without m->wake. */
uint32_t mu_wake_count(const struct mu_members *m);
/* Sleep until the count differs from `count`, or for `seconds` (< 1). Needs m->wake. */
void mu_wake_sleep(const struct mu_members *m, uint32_t count, double seconds);
/* Notes of a rank of the node; NULL without m->wake. */
struct mu_note *mu_wake_note(const struct mu_members *m, int node_rank);

#endif
