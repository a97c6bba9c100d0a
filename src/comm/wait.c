/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Polite waiting. Ranks may outnumber cores, so a rank that waits gives its core away: it polls for
 * a moment, then sleeps. A worker yields between polls. A server does not, and polls for a shorter
 * time: where a yield works at all (launchers put every rank in a session of its own, and kernels
 * that schedule by session, with autogroup, do not yield between them), it gives the core to a
 * worker that computes, until that worker's time slice ends, milliseconds later; a sleeper that is
 * woken gets the core now.
 *
 * Sleeps end by mu_wake where the sender calls it, so they may be long. A wake comes with the first
 * sign of a message, and MPI needs several polls to take it in: after a wake polling begins anew.
 * Other sleeps are a part of the time waited so far: what they add is in proportion to the wait.
 */
#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include "wake.h"

#define WORKER_POLL_SECONDS 200e-6
#define SERVER_POLL_SECONDS 30e-6
#define NAP_SHARE 0.05 /* of the time waited so far */
#define NAP_MIN 20e-6
#define NAP_MAX 250e-6
/* A sleep with a wake ends by itself too, for the steps of a transfer that MPI makes unseen. */
#define SLEEP_SHARE 0.5
#define SLEEP_MIN 200e-6
#define SLEEP_MAX 1e-3
#define OVERDUE_SECONDS 30.0

void mu_waiter_init(struct mu_waiter *w, const struct mu_topology *t)
{
	*w = (struct mu_waiter){.topology = t && t->wake ? t : NULL};
	if (w->topology)
		w->count = mu_wake_count(t);
}

void mu_waiter_reset(struct mu_waiter *w)
{
	w->since = 0;
	w->told = 0;
}

static double clamp(double x, double least, double most)
{
	return x < least ? least : x > most ? most : x;
}

static void nap(double seconds)
{
	struct timespec t = {0, (long)(seconds * 1e9)};

	/*
	 * Without this the kernel rounds every nap up by 50 us. It is a setting of the calling
	 * thread.
	 */
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	nanosleep(&t, NULL);
}

/* How long to sleep at most after so much waiting. Ranks of other nodes cannot wake us. */
static double sleep_seconds(const struct mu_topology *t, double waited)
{
	if (t && t->num_nodes == 1)
		return clamp(waited * SLEEP_SHARE, SLEEP_MIN, SLEEP_MAX);
	return clamp(waited * NAP_SHARE, NAP_MIN, NAP_MAX);
}

/* Has a wake come since the last look? */
static bool woken(struct mu_waiter *w)
{
	uint32_t before = w->count;

	w->count = mu_wake_count(w->topology);
	return w->count != before;
}

void mu_waiter_nap(struct mu_waiter *w)
{
	const struct mu_topology *t = w->topology;
	bool is_server = t && t->role == MU_ROLE_SERVER;
	double now = mu_now();

	if (w->since == 0)
		w->since = w->awake = now;
	if (now - w->awake < (is_server ? SERVER_POLL_SECONDS : WORKER_POLL_SECONDS)) {
		if (!is_server)
			sched_yield();
	} else if (t) {
		mu_wake_sleep(t, w->count, sleep_seconds(t, now - w->since));
	} else {
		nap(sleep_seconds(t, now - w->since));
	}
	if (t && woken(w))
		w->awake = mu_now();
}

double mu_waiter_overdue(struct mu_waiter *w)
{
	double waited;

	if (w->since == 0)
		return 0;
	waited = mu_now() - w->since;
	if (waited < w->told + OVERDUE_SECONDS)
		return 0;
	w->told = waited;
	return waited;
}

enum mu_status mu_wait_woken(const struct mu_topology *t, int n, MPI_Request *requests,
			     const char *what)
{
	enum mu_status st = MU_OK;
	/* volatile: gcc 12 takes MPICH's marker for an array that is too short. */
	MPI_Status *volatile ignore = MPI_STATUSES_IGNORE;
	struct mu_waiter waiter;
	int done = 0;

	mu_waiter_init(&waiter, t);
	for (;;) {
		double seconds;

		MU_MPI(MPI_Testall(n, requests, &done, ignore));
		if (done)
			break;
		mu_waiter_nap(&waiter);
		seconds = mu_waiter_overdue(&waiter);
		if (seconds > 0)
			mu_log_warn("waiting %.0f s for %s", seconds, what);
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
