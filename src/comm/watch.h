/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to comm: the watch over waits. Communicators carry it as an attribute, so that collective
 * calls know their limits and who takes part.
 */
#ifndef MUSTER_COMM_WATCH_H
#define MUSTER_COMM_WATCH_H

#include "alive.h"

/* With the limits of the communicator that the topology is made from. After mu_wake_open. */
enum mu_status mu_watch_open(struct mu_topology *t);
/* Before the communicators are freed. */
void mu_watch_close(struct mu_topology *t);

/* A wait of this rank begins; it has polled. NULL is allowed. */
void mu_watch_begin(const struct mu_watch *watch);
void mu_watch_polled(const struct mu_watch *watch, double now);

/* Wait for the request of a collective. */
enum mu_status mu_watch_collective(const struct mu_meeting *meeting, MPI_Request *request);

#endif
