/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to comm: the watch over waits. Communicators carry it as an attribute, so that collective
 * calls know their limits and who takes part.
 */
#ifndef MUSTER_COMM_WATCH_H
#define MUSTER_COMM_WATCH_H

#include "liveness.h"

/* What is known of the members of a communicator. */
struct mu_group {
	struct mu_watch *watch;
	enum mu_group_kind kind; /* MU_GROUP_N: nothing */
};

struct mu_watch {
	int refs;   /* the topology and communicators */
	int nested; /* waits that begin now are a part of one that lasts */
	struct mu_limits limits;
	double next;                        /* when to look at other ranks again */
	const struct mu_topology *topology; /* NULL: none */
	struct mu_topology copy;            /* that is it: the caller may move its own */
	struct mu_note *mine;               /* NULL: there is no page */
	struct mu_sight *sights;            /* of the ranks of the node */
	enum mu_alive *states;
	struct mu_group groups[MU_GROUP_N + 1];
};

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
