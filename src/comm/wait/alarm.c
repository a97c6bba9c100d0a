/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The alarm: a rank has failed while the others train, which cannot know of it. It sends all of
 * them ALARM. Each of them that waits returns MU_ERR_PEER, completes what it was given to save, and
 * answers DONE, after BUSY if that takes time. When all have, or after some seconds, the rank that
 * failed ends the job. Of several that failed the lowest reports its error.
 */
#include <time.h>

#include "watch.h"

enum { TAG = 3, N_NOTES = 3 };
#define PROBE_SECONDS 0.05
/* For ranks that save nothing: they may compute, or be stopped. */
#define END_SECONDS 2.5
#define SAVE_SECONDS 30.0

enum note { ALARM, BUSY, DONE };
static const int notes[N_NOTES] = {ALARM, BUSY, DONE};

/* Of this process, which ends soon once it is set. */
static struct {
	struct mu_watch *watch; /* NULL: no alarm */
	bool own;               /* this rank has failed */
	bool busy, done;        /* what it has answered */
	bool others_busy;
	int n_done, lowest; /* ranks that are done; the lowest other rank that has failed */
} state;

static void send(const struct mu_topology *t, int rank, enum note note)
{
	MPI_Request request;

	if (MPI_Isend(&notes[note], 1, MPI_INT, rank, TAG, t->world, &request) == MPI_SUCCESS)
		MPI_Request_free(&request);
}

static void answer(enum note note)
{
	const struct mu_topology *t = state.watch->topology;

	for (int r = 0; r < t->size; r++)
		if (state.watch->raised[r])
			send(t, r, note);
}

static void receive(struct mu_watch *watch, int from, int note)
{
	const struct mu_topology *t = watch->topology;

	if (note == BUSY)
		state.others_busy = true;
	if (note == DONE)
		state.n_done++;
	if (note != ALARM || watch->raised[from])
		return;
	if (!state.watch || from < state.lowest)
		state.lowest = from;
	state.watch = watch;
	watch->raised[from] = true;
	if (state.busy)
		send(t, from, BUSY);
	if (state.done)
		send(t, from, DONE);
}

static void poll(struct mu_watch *watch)
{
	const struct mu_topology *t = watch->topology;
	MPI_Status status;
	int note = 0, there = 1;

	while (MPI_Iprobe(MPI_ANY_SOURCE, TAG, t->world, &there, &status) == MPI_SUCCESS && there &&
	       MPI_Recv(&note, 1, MPI_INT, status.MPI_SOURCE, TAG, t->world, MPI_STATUS_IGNORE) ==
		       MPI_SUCCESS)
		receive(watch, status.MPI_SOURCE, note);
}

bool mu_alarm_came(struct mu_watch *watch, double now, int *rank)
{
	if (!watch || !watch->topology || watch->topology->size == 1)
		return false;
	if (now >= watch->probed + PROBE_SECONDS) {
		watch->probed = now;
		poll(watch);
	}
	*rank = state.lowest;
	return state.watch && !state.own;
}

void mu_alarm_raise(const struct mu_topology *t, bool own)
{
	mu_memory_keep();
	if (!t->watch || t->size == 1)
		return;
	if (!state.watch)
		state.lowest = t->size;
	state.watch = t->watch;
	state.own = own;
	for (int r = 0; own && r < t->size; r++)
		if (r != t->rank)
			send(t, r, ALARM);
}

void mu_alarm_busy(void)
{
	state.busy = true;
	if (!state.watch)
		return;
	for (int r = 0; r < state.watch->topology->size; r++)
		if (state.own ? r != state.watch->topology->rank : state.watch->raised[r])
			send(state.watch->topology, r, BUSY);
}

/* Polls until the others are done, or for `seconds`. */
static void wait(double seconds)
{
	const struct mu_topology *t = state.watch->topology;
	const double begun = mu_now();
	const struct timespec nap = {0, 2000000};

	while (state.n_done < t->size - 1 &&
	       mu_now() < begun + (state.others_busy ? SAVE_SECONDS : seconds)) {
		poll(state.watch);
		nanosleep(&nap, NULL);
	}
}

void mu_alarm_done(void)
{
	state.done = true;
	if (state.watch)
		answer(DONE);
}

bool mu_alarm_is_told_elsewhere(void)
{
	if (state.watch)
		poll(state.watch);
	return state.watch && (!state.own || state.lowest < state.watch->topology->rank);
}

void mu_alarm_wait(void)
{
	if (state.watch)
		wait(mu_alarm_is_told_elsewhere() ? 2 * END_SECONDS : END_SECONDS);
}
