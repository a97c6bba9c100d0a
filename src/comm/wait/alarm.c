/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The alarm: a rank has failed while the others train, which cannot know of it. It sends all of
 * them ALARM. Each of them that waits, or is between two steps, returns MU_ERR_PEER, completes what
 * it was given to save, and tells all DONE, after BUSY if that takes time. When all have, or after
 * some seconds, the rank that failed ends the job. Of several that failed the lowest reports its
 * error.
 *
 * Worker 0 completes files. While it computes it cannot answer, so that where files are saved the
 * others wait for it as long as for one that is BUSY; not if it was silent for the time limit: the
 * alarm is LATE then.
 */
#include <string.h>
#include <time.h>

#include "watch.h"

enum { TAG = 3, N_NOTES = 4 };
#define PROBE_SECONDS 0.05
/* For ranks that have nothing to save: they may compute, or be stopped. */
#define END_SECONDS 2.5
#define SAVE_SECONDS 30.0

enum note { ALARM, BUSY, DONE, LATE };
static const int notes[N_NOTES] = {ALARM, BUSY, DONE, LATE};

/* Of this process, which soon ends, or drops the members, once it is set. */
static struct {
	struct mu_watch *watch; /* NULL: no alarm */
	bool own;               /* this rank has failed */
	bool awaits_first;      /* worker 0 may have a file to complete */
	bool others_busy, first_is_done, late;
	int n_done; /* other ranks that are done */
	int lowest; /* the lowest other rank that has failed */
} state;

static void send(const struct mu_members *m, int rank, enum note note)
{
	MPI_Request request;

	if (MPI_Isend(&notes[note], 1, MPI_INT, rank, TAG, m->comm, &request) == MPI_SUCCESS)
		MPI_Request_free(&request);
}

static void tell_all(enum note note)
{
	const struct mu_members *m = state.watch->members;

	for (int r = 0; r < m->size; r++)
		if (r != m->rank)
			send(m, r, note);
}

static void receive(struct mu_watch *watch, int from, int note)
{
	if (note == BUSY)
		state.others_busy = true;
	if (note == DONE) {
		state.n_done++;
		state.first_is_done |= from == mu_worker_rank(watch->members, 0);
	}
	if (note != ALARM && note != LATE)
		return;
	state.late |= note == LATE;
	if (!state.watch || from < state.lowest)
		state.lowest = from;
	state.watch = watch;
}

static void poll(struct mu_watch *watch)
{
	const struct mu_members *m = watch->members;
	MPI_Status status;
	int note = 0, there = 1;

	while (MPI_Iprobe(MPI_ANY_SOURCE, TAG, m->comm, &there, &status) == MPI_SUCCESS && there &&
	       MPI_Recv(&note, 1, MPI_INT, status.MPI_SOURCE, TAG, m->comm, MPI_STATUS_IGNORE) ==
		       MPI_SUCCESS)
		receive(watch, status.MPI_SOURCE, note);
}

enum mu_status mu_alarm_look(struct mu_watch *watch, double now)
{
	enum mu_status st = MU_OK;

	if (!watch || !watch->members || watch->members->size == 1)
		goto out;
	if (now >= watch->probed + PROBE_SECONDS) {
		watch->probed = now;
		poll(watch);
	}
	if (state.watch && !state.own) {
		mu_memory_keep(); /* of the messages that are waited for */
		MU_FAIL(MU_ERR_PEER, "rank %d reported an error", state.lowest);
	}
out:
	return st;
}

enum mu_status mu_alarm_check(const struct mu_members *m)
{
	return mu_alarm_look(m->watch, mu_now());
}

void mu_alarm_raise(const struct mu_members *m, enum mu_status cause, bool saves)
{
	mu_memory_keep();
	if (!m->watch || m->size == 1)
		return;
	if (!state.watch)
		state.lowest = m->size;
	state.watch = m->watch;
	state.own = cause != MU_ERR_PEER;
	state.late |= cause == MU_ERR_TIMEOUT;
	state.awaits_first = saves && !mu_members_lead(m);
	if (state.own)
		tell_all(state.late ? LATE : ALARM);
}

void mu_alarm_forget(const struct mu_watch *watch)
{
	if (state.watch == watch)
		memset(&state, 0, sizeof state);
}

void mu_alarm_busy(void)
{
	if (state.watch)
		tell_all(BUSY);
}

/* Polls until the others are done or their time is over; told: until another rank ends the job. */
static void wait(bool told)
{
	const int others = state.watch->members->size - 1;
	const double begun = mu_now(), more = told ? END_SECONDS : 0;
	const struct timespec nap = {0, 2000000};
	bool saves;

	do {
		poll(state.watch);
		nanosleep(&nap, NULL);
		saves = state.others_busy ||
			(state.awaits_first && !state.late && !state.first_is_done);
	} while ((told || state.n_done < others) &&
		 mu_now() < begun + more + (saves ? SAVE_SECONDS : END_SECONDS));
}

bool mu_alarm_nobody_comes(double since)
{
	if (state.watch)
		poll(state.watch);
	return state.late && !state.others_busy && mu_now() >= since + END_SECONDS;
}

void mu_alarm_done(void)
{
	if (state.watch)
		tell_all(DONE);
}

bool mu_alarm_is_told_elsewhere(void)
{
	if (state.watch)
		poll(state.watch);
	return state.watch && (!state.own || state.lowest < state.watch->members->rank);
}

void mu_alarm_wait(void)
{
	if (state.watch)
		wait(mu_alarm_is_told_elsewhere());
}
