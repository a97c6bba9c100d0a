/* SPDX-License-Identifier: Apache-2.0 */
/* Private to comm: what a rank can see of the other ranks of its node: their notes in the page of
 * wake.h, and the kernel's data about their processes. */
#ifndef MUSTER_COMM_ALIVE_H
#define MUSTER_COMM_ALIVE_H

#include <stdatomic.h>

#include <muster/comm.h>

/* Groups of ranks that take part in collectives. */
enum mu_group_kind { MU_GROUP_WORLD, MU_GROUP_PEERS, MU_GROUP_NODE, MU_GROUP_N };

/* Notes of a rank; all but the last two are written by the rank itself. */
struct mu_note {
	_Atomic uint32_t waits;               /* waits begun so far */
	_Atomic uint32_t entered[MU_GROUP_N]; /* collectives begun so far */
	_Atomic uint64_t polled;              /* last poll in a wait, nanoseconds of mu_now */
	/* Start time of the process, in the kernel's units. Written after pid (release), and read
	 * before it (acquire); 0: not written yet. */
	_Atomic uint64_t started;
	int32_t pid;
	/* Of node rank 0, for the whole node: nanoseconds of the last warning, and of the end of a
	 * wait. */
	_Atomic uint64_t warned, ended;
};

enum mu_alive {
	MU_ALIVE_UNKNOWN, /* on another node, or without information */
	MU_ALIVE_MOVES,   /* computes, or went from one wait to another */
	MU_ALIVE_WAITS,   /* in one wait all the time */
	MU_ALIVE_STILL,   /* none of these, or it has ended */
	MU_ALIVE_STOPPED, /* by a signal */
};

/* The last observation of a rank. */
struct mu_sight {
	uint32_t waits;
	uint64_t ticks;      /* processor time; the most there is: it was not read */
	double looked;       /* time of the observation; 0 = never */
	double moved;        /* when it was last seen to run */
	double stopped_from; /* stopped since then; 0 = not stopped */
};

static inline uint64_t mu_nanoseconds(double seconds)
{
	return (uint64_t)(seconds * 1e9);
}

/* Fill in the notes of this rank. */
void mu_alive_begin(struct mu_note *mine);
/* Observe a rank by its notes. recent: an older observation, in seconds, says nothing about
 * movement. */
enum mu_alive mu_alive_check(const struct mu_note *note, struct mu_sight *sight, double now,
			    double recent);

#endif
