/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Polite waiting. Ranks may outnumber cores, so a rank that waits gives its core away: first by sched_yield, which costs a
 * running neighbour little and reacts at once, then by naps, so that a server beside computing workers costs them next to
 * nothing. A nap is a part of the time waited so far: what it adds to a wait is in proportion to the wait.
 */
#include <sched.h>
#include <sys/prctl.h>
#include <time.h>

#include <muster/comm.h>

#define YIELD_SECONDS 200e-6
#define NAP_SHARE 0.05   /* of the time waited so far */
#define NAP_MIN 20e-6
#define NAP_MAX 250e-6
#define OVERDUE_SECONDS 30.0

void mu_waiter_reset(struct mu_waiter *w)
{
	w->since = 0;
	w->told = 0;
}

static void nap(double seconds)
{
	struct timespec t = {0, (long)(seconds * 1e9)};

	/* Without this the kernel rounds every nap up by 50 us. It is a setting of the calling thread. */
	prctl(PR_SET_TIMERSLACK, 1UL, 0UL, 0UL, 0UL);
	nanosleep(&t, NULL);
}

void mu_waiter_nap(struct mu_waiter *w)
{
	double now = mu_now();
	double seconds;

	if (w->since == 0)
		w->since = now;
	seconds = (now - w->since) * NAP_SHARE;
	if (now - w->since < YIELD_SECONDS)
		sched_yield();
	else
		nap(seconds < NAP_MIN ? NAP_MIN : seconds > NAP_MAX ? NAP_MAX : seconds);
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

enum mu_status mu_wait_all(int n, MPI_Request *requests, const char *what)
{
	enum mu_status st = MU_OK;
	MPI_Status *volatile ignore = MPI_STATUSES_IGNORE; /* volatile: gcc 12 takes MPICH's marker for an array */
	struct mu_waiter waiter = {0};
	int done = 0;

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
