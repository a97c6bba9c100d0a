/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Polite waiting. Ranks may outnumber cores, so a waiting rank first polls for a while, yielding
 * the core between polls, and then sleeps.
 *
 * A server polls only as long as a message needs to become visible after its wake (one poll is not
 * enough: large messages need several). Where launchers put every rank in a session of its own and
 * the kernel schedules sessions (autogroup), a yield has no effect. Elsewhere the core goes to a
 * computing worker and returns only at the end of that worker's time slice, milliseconds later,
 * while a sleeper that is woken runs at once. For the same reason a worker polls no longer than
 * that if the server that it waits for may need its core.
 *
 * mu_wake ends sleeps where the sender calls it, so these sleeps may be long. Other sleeps are a
 * fraction of the time waited so far, so that they lengthen a wait in proportion.
 */
#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include "comm/icollective.h"
#include "wake.h"
#include "watch.h"

#define YIELD_SECONDS 200e-6
#define SHORT_POLL_SECONDS 20e-6
#define NAP_SHARE 0.05 /* of the time waited so far */
#define NAP_MIN 20e-6
#define NAP_MAX 250e-6
/* A sleep with a wake has a limit as well: the wake may come before the message, which MPI then
 * receives only if we poll. */
#define SLEEP_SHARE 0.25
#define SLEEP_MIN 50e-6
#define SLEEP_MAX 1e-3
/* Only a wake is needed, and a sleep that ends earlier takes a core from a worker. */
#define WOKEN_SLEEP 10e-3
/*
 * A poll of this length did some work: MPI moved a part of a large message, which it reports only
 * at the end (UCX copies 512 KiB or more per poll, in 150 us). The next part follows at once. Polls
 * without a result take longer with more peers.
 */
#define BUSY_SECONDS 50e-6
#define BUSY_SECONDS_PER_RANK 1e-6
/*
 * A rank without a poll for this long could not run: it was stopped, or the machine was suspended.
 */
#define GAP_SECONDS 0.5

void mu_waiter_init(struct mu_waiter *w, const struct mu_members *m)
{
	*w = (struct mu_waiter){.members = m && m->wake ? m : NULL, .watch = m ? m->watch : NULL};
	if (w->members)
		w->count = mu_wake_count(m);
	mu_watch_begin(w->watch);
}

void mu_waiter_reset(struct mu_waiter *w)
{
	w->since = 0;
	w->told = 0;
	w->last = 0;
}

static double clamp(double x, double least, double most)
{
	return x < least ? least : x > most ? most : x;
}

static void nap(double seconds)
{
	struct timespec t = {0, (long)(seconds * 1e9)};

	/* Without this the kernel rounds every nap up by 50 us. The setting is per thread. */
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	nanosleep(&t, NULL);
}

/* Longest sleep after waiting for `waited` seconds. Ranks of other nodes cannot wake this rank. */
static double sleep_seconds(const struct mu_waiter *w, double waited)
{
	const struct mu_members *m = w->members;

	if (m && w->only_woken)
		return WOKEN_SLEEP;
	if (m && m->topology.num_nodes == 1)
		return clamp(waited * SLEEP_SHARE, SLEEP_MIN, SLEEP_MAX);
	return clamp(waited * NAP_SHARE, NAP_MIN, NAP_MAX);
}

/* Time to poll, from the start of the wait and after every wake, before sleeping. A server with
 * workers on other nodes, which cannot wake it, polls as long as a worker. */
static double poll_seconds(const struct mu_waiter *w)
{
	const struct mu_members *m = w->members;

	if (m && m->role == MU_ROLE_SERVER && m->topology.num_nodes == 1)
		return SHORT_POLL_SECONDS;
	if (m && w->only_woken && m->topology.node_size > m->topology.node_cores)
		return SHORT_POLL_SECONDS;
	return YIELD_SECONDS;
}

/* Did the poll before this nap make progress? */
static bool was_busy(const struct mu_waiter *w, double now)
{
	const double ranks = w->members ? w->members->size : 0;

	return now - w->awake > BUSY_SECONDS + ranks * BUSY_SECONDS_PER_RANK;
}

void mu_waiter_nap(struct mu_waiter *w)
{
	const struct mu_members *m = w->members;
	double now = mu_now();

	if (w->since == 0)
		w->since = w->stirred = w->still = now;
	else if (now - w->last > GAP_SECONDS)
		w->still += now - w->last;
	else if (was_busy(w, now))
		w->stirred = now;
	w->last = now;
	mu_watch_polled(w->watch, now);
	if (m && mu_wake_count(m) != w->count) {
		w->count = mu_wake_count(m);
		w->stirred = now;
	}
	if ((!w->without_mpi && mu_icollective_move()) || now - w->stirred < poll_seconds(w))
		sched_yield();
	else if (m)
		mu_wake_sleep(m, w->count, sleep_seconds(w, now - w->stirred));
	else
		nap(sleep_seconds(w, now - w->stirred));
	w->awake = mu_now();
}

enum mu_status mu_wait_woken(const struct mu_members *m, int n, MPI_Request *requests,
			     const char *what)
{
	enum mu_status st = MU_OK;
	/* volatile: gcc 12 takes MPICH's marker for an array that is too short. */
	MPI_Status *volatile ignore = MPI_STATUSES_IGNORE;
	struct mu_waiter waiter;
	int done = 0;

	mu_waiter_init(&waiter, m);
	for (;;) {
		MU_MPI(MPI_Testall(n, requests, &done, ignore));
		if (done)
			break;
		mu_waiter_nap(&waiter);
		MU_TRY(mu_waiter_check(&waiter, NULL, what));
	}
out:
	if (st != MU_OK)
		mu_trace_add(st, __FILE__, __LINE__, what);
	return st;
}

enum mu_status mu_wait_all(int n, MPI_Request *requests, const char *what)
{
	return mu_wait_woken(NULL, n, requests, what);
}
