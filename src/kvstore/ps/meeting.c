/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Workers of dist_async meet. One that is there cannot see whether those on other nodes still
 * train; the servers can: it asks them now and then how many samples they have counted.
 */
#include "dist.h"

#define ASK_SECONDS 0.5

/* Did anybody push since the last time? */
static enum mu_status ask(struct mu_kv *kv, struct mu_waiter *waiter, bool *moved)
{
	enum mu_status st = MU_OK;
	const double before = kv->progress;

	mu_waiter_nest(waiter, true);
	MU_TRY(mu_kv_worker_ask(kv));
	*moved = kv->progress != before;
out:
	mu_waiter_nest(waiter, false);
	return st;
}

enum mu_status mu_kv_worker_meet(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	const struct mu_meeting meeting = {.comm = kv->topology->peers, .what = "all workers"};
	MPI_Request request = MPI_REQUEST_NULL;
	struct mu_waiter waiter;
	double next = mu_now() + ASK_SECONDS;
	int done = 0;

	MU_MPI(MPI_Ibarrier(meeting.comm, &request));
	mu_waiter_init(&waiter, NULL);
	mu_meeting_enter(&meeting, &waiter);
	for (;;) {
		bool moved = false;

		MU_MPI(MPI_Test(&request, &done, MPI_STATUS_IGNORE));
		if (done)
			break;
		mu_waiter_nap(&waiter);
		if (mu_now() > next) {
			MU_TRY(ask(kv, &waiter, &moved));
			next = mu_now() + ASK_SECONDS;
		}
		if (moved)
			mu_waiter_reset(&waiter);
		else
			MU_TRY(mu_waiter_check(&waiter, mu_awaited_meeting, &meeting));
	}
out:
	return st;
}
