/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to comm: what a rank can see of the other ranks of its node: notes that they leave in the
 * page of wake.h, and what the kernel tells of their processes.
 */
#ifndef MUSTER_COMM_ALIVE_H
#define MUSTER_COMM_ALIVE_H

#include <stdatomic.h>

#include <muster/comm.h>

/* Groups of ranks that meet in collectives. */
enum mu_group_kind { MU_GROUP_WORLD, MU_GROUP_PEERS, MU_GROUP_NODE, MU_GROUP_N };

/* A rank's notes; the rank itself writes them, but for the last two. */
struct mu_note {
	_Atomic uint32_t waits;               /* begun so far */
	_Atomic uint32_t entered[MU_GROUP_N]; /* collectives begun so far */
	_Atomic uint64_t polled;              /* nanoseconds of mu_now: last poll in a wait */
	uint64_t started;                     /* of its process, as the kernel counts */
	int32_t pid;
	/* Of node rank 0, for all of the node: nanoseconds of the last warning, of a wait's end. */
	_Atomic uint64_t warned, ended;
};

enum mu_alive {
	MU_ALIVE_UNKNOWN, /* on another node, or nothing is told of it */
	MU_ALIVE_MOVES,   /* it computes, or came from one wait to the next */
	MU_ALIVE_WAITS,   /* all the time in one wait */
	MU_ALIVE_STILL,   /* none of these */
	MU_ALIVE_STOPPED, /* by a signal */
};

/* What was seen of a rank. */
struct mu_sight {
	uint32_t waits;
	uint64_t ticks;      /* of processor time */
	double looked;       /* when that was; 0 = never */
	double moved;        /* when it was last seen to have moved */
	double stopped_from; /* since when it is stopped, 0 = it is not */
};

static inline uint64_t mu_nanoseconds(double seconds)
{
	return (uint64_t)(seconds * 1e9);
}

/* Fill in the notes of this rank. */
void mu_alive_begin(struct mu_note *mine);
/*
 * Look at a rank by its notes. recent: a sight that is older than so many seconds says nothing
 * about movement.
 */
enum mu_alive mu_alive_look(const struct mu_note *note, struct mu_sight *sight, double now,
			    double recent);

#endif
