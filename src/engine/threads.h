/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads: the threads of a rank's devices.
 *
 * Member 0 is the thread that creates the object, and the only one that calls MPI. Every other
 * member has its own thread, which sleeps until a job begins. In a job members process the layers
 * of a network and set, for each task, how many layers they have left. One lock protects all state.
 * Members sleep while they wait, except member 0, which makes progress on messages: it polls, and
 * naps with mu_waiter_nap. A change by another member wakes it.
 *
 * Writes before mu_engine_threads_begin, or before a member sets its layers left, are visible to
 * members that see the new value.
 */
#ifndef ENGINE_THREADS_H
#define ENGINE_THREADS_H

#include <muster/base.h>
#include <muster/comm.h>

struct engine_threads;

/* The work of one member; called for members from 1 on. */
typedef enum mu_status engine_threads_job_fn(void *context, size_t member);

enum engine_threads_task {
	ENGINE_PULL,     /* pull of the weights: member 0 */
	ENGINE_BACKWARD, /* backward */
	ENGINE_SUM,      /* the sum over the members' gradients */
	ENGINE_TASKS,
};

/* n >= 1 members. They must outlive the threads. */
enum mu_status mu_engine_threads_new(struct engine_threads **out, size_t n,
				     const struct mu_members *m);
/* Stop a job that is in progress, and end the threads. */
void mu_engine_threads_free(struct engine_threads *t);

/* ---- member 0 ---- */

/* Begin a job, after the last one has ended. */
void mu_engine_threads_begin(struct engine_threads *t, engine_threads_job_fn *fn, void *context);
/* Have the other members ended the job? */
bool mu_engine_threads_ended(struct engine_threads *t);
/* After that: the error of the first member that had one, with its trace. */
enum mu_status mu_engine_threads_result(struct engine_threads *t);
/* End the job early: the waits below return false. No job can begin afterwards. */
void mu_engine_threads_stop(struct engine_threads *t);

/* ---- every member ---- */

/* Has a member failed, or was the job stopped? Then no wait blocks. */
bool mu_engine_threads_stopped(struct engine_threads *t);
/* Set the layers that this member has left of a task. Returns the maximum over all members. */
size_t mu_engine_threads_set_left(struct engine_threads *t, size_t member,
				  enum engine_threads_task task, size_t left);
/* The maximum over all members. */
size_t mu_engine_threads_left(struct engine_threads *t, enum engine_threads_task task);
/* Sleep until it is at most `most`. False: stopped before. */
bool mu_engine_threads_wait_left(struct engine_threads *t, enum engine_threads_task task,
				 size_t most);

/*
 * For stages: n counters, 0 after mu_engine_threads_counters and _reset (member 0, between jobs).
 * _increment adds 1 to counter i. _wait_count sleeps until it is at least `least`; false: stopped
 * before. Member 0 uses _count instead.
 */
enum mu_status mu_engine_threads_counters(struct engine_threads *t, size_t n);
void mu_engine_threads_reset(struct engine_threads *t);
void mu_engine_threads_increment(struct engine_threads *t, size_t member, size_t i);
size_t mu_engine_threads_count(struct engine_threads *t, size_t i);
bool mu_engine_threads_wait_count(struct engine_threads *t, size_t i, size_t least);

#endif
