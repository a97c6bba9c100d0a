/* SPDX-License-Identifier: Apache-2.0 */
/*
 * team: the threads of a rank's devices, known to the files about devices in src/train only.
 *
 * Member 0 is the thread that makes the team; it alone calls MPI. Every other member has a thread
 * of its own, which sleeps until a job begins. Within a job members go through the layers of a net,
 * and tell each other how far they are: for each task, how many layers a member still has before
 * it. All state is behind one lock; members sleep while they wait, but member 0, which has messages
 * to look after: it asks, and naps by mu_waiter_nap. What a member says ends the nap.
 *
 * What was written before mu_team_begin, or before a member said how many layers it has left, can
 * be read by those who learn of it.
 */
#ifndef TRAIN_TEAM_H
#define TRAIN_TEAM_H

#include <muster/base.h>
#include <muster/comm.h>

struct mu_team;

/* The work of one member. Member 0's is done by its own calls. */
typedef enum mu_status mu_team_job_fn(void *context, size_t member);

enum mu_team_task {
	TEAM_PULL,     /* weights to fetch: member 0 */
	TEAM_BACKWARD, /* backward */
	TEAM_SUM,      /* the sum over the members' gradients */
	TEAM_TASKS,
};

/* n >= 1 members. The topology must outlive the team. */
enum mu_status mu_team_new(struct mu_team **out, size_t n, const struct mu_topology *topology);
/* Stops a job that is under way, and ends the threads. */
void mu_team_free(struct mu_team *team);

/* ---- member 0 ---- */

/* Begin a job. The last one has ended. */
void mu_team_begin(struct mu_team *team, mu_team_job_fn *fn, void *context);
/* Have the other members ended the job? */
bool mu_team_ended(struct mu_team *team);
/* Once they have: the error of the first member, in their order, that had one, with its trace. */
enum mu_status mu_team_result(struct mu_team *team);
/* End the job early: waits below return false. It is the team's last one. */
void mu_team_stop(struct mu_team *team);

/* ---- every member ---- */

/* A member has failed, or the job is to end: nothing is waited for any more. */
bool mu_team_stopped(struct mu_team *team);
/* This member has so many layers left of a task. Returns the most that any member has. */
size_t mu_team_tell(struct mu_team *team, size_t member, enum mu_team_task task, size_t left);
/* The most that any member has left. */
size_t mu_team_left(struct mu_team *team, enum mu_team_task task);
/* Sleep until that is at most `most`. False: the team was stopped before. */
bool mu_team_wait(struct mu_team *team, enum mu_team_task task, size_t most);

/*
 * For stages: numbers that members raise, n of them, 0 after mu_team_counters and after _reset
 * (member 0, no job is under way). _await sleeps until number i is at least `least`; false: the
 * team was stopped before. Member 0 asks by _counted.
 */
enum mu_status mu_team_counters(struct mu_team *team, size_t n);
void mu_team_reset(struct mu_team *team);
void mu_team_count(struct mu_team *team, size_t member, size_t i);
size_t mu_team_counted(struct mu_team *team, size_t i);
bool mu_team_await(struct mu_team *team, size_t i, size_t least);

#endif
