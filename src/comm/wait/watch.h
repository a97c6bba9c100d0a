/* SPDX-License-Identifier: Apache-2.0 */
/* Private to comm: the watchdog of waits. Communicators carry it as an attribute, so that
 * collective calls know their limits and their members. */
#ifndef MUSTER_COMM_WATCH_H
#define MUSTER_COMM_WATCH_H

#include "liveness.h"

/* What is known about the members of a communicator. */
struct mu_group {
	struct mu_watch *watch;
	enum mu_group_kind kind; /* MU_GROUP_N: unknown */
};

struct mu_watch {
	int refs;   /* references: the members and communicators */
	int nested; /* depth of mu_waiter_nest */
	struct mu_limits limits;
	double next;                        /* time of the next check of other ranks */
	const struct mu_members *members;   /* NULL: none */
	struct mu_members copy;             /* a copy, because the caller may move its own */
	struct mu_note *mine;               /* NULL: no shared page */
	struct mu_sight *sights;            /* one per rank of the node */
	enum mu_alive *states;
	double probed;                      /* time of the last look for an alarm */
	struct mu_group groups[MU_GROUP_N + 1];
	struct mu_watch *let_go;            /* the one of members that were dropped before */
};

/* MU_ERR_PEER if another rank has raised the alarm. watch: NULL is allowed. */
enum mu_status mu_alarm_look(struct mu_watch *watch, double now);

/* Forget an alarm of these members. */
void mu_alarm_forget(const struct mu_watch *watch);

/* Uses the limits of the communicator that the members were made from. After mu_wake_open. */
enum mu_status mu_watch_open(struct mu_members *m);
/* Call before the communicators are freed. */
void mu_watch_close(struct mu_members *m);

/* A wait of this rank begins; it has polled. NULL is allowed. */
void mu_watch_begin(const struct mu_watch *watch);
void mu_watch_polled(const struct mu_watch *watch, double now);

/* Of a communicator; NULL: none. Waits with it have its limits. */
struct mu_watch *mu_watch_of(MPI_Comm comm);

/* Wait for the request of a collective. */
enum mu_status mu_watch_collective(const struct mu_meeting *meeting, MPI_Request *request);

#endif
