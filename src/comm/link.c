/* SPDX-License-Identifier: Apache-2.0 */
/* Bandwidth of large messages between two ranks: the upper bound for a store. */
#include <math.h>
#include <stdio.h>

#include "comm/wait/watch.h"

/*
 * The start of a job waits for the measurement, so it ends in about LINK_SECONDS: messages grow
 * until one takes a fair part of that time. The first one, which also connects the two ranks, does
 * not count.
 */
#define LINK_SECONDS 0.5
enum { LINK_BYTES = 1 << 22, LINK_LEAST = 1 << 12, LINK_GROWTH = 4, LINK_ROUNDS = 5, LINK_TAG = 1 };

struct link {
	MPI_Comm comm;
	int other;
	bool leads; /* decides on the sizes for both */
	char *out, *in;
};

static void await_other(const void *context, struct mu_awaited *a)
{
	const struct link *link = context;

	snprintf(a->what, sizeof a->what, "a message that measures the link");
	mu_awaited_add(a, link->other);
	a->setup = true;
}

static enum mu_status finish(const struct link *link, int n, MPI_Request *requests)
{
	enum mu_status st = MU_OK;
	MPI_Status *volatile ignore = MPI_STATUSES_IGNORE; /* as in wait.c */
	struct mu_waiter waiter;
	int done = 0;

	mu_waiter_init(&waiter, NULL);
	waiter.watch = mu_watch_of(link->comm);
	for (;;) {
		MU_MPI(MPI_Testall(n, requests, &done, ignore));
		if (done)
			break;
		mu_waiter_nap(&waiter);
		MU_TRY(mu_waiter_check(&waiter, await_other, link));
	}
out:
	return st;
}

static enum mu_status exchange(const struct link *link, int nbytes, double *seconds)
{
	enum mu_status st = MU_OK;
	MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};
	const double start = mu_now();

	MU_MPI(MPI_Irecv(link->in, nbytes, MPI_BYTE, link->other, LINK_TAG, link->comm,
			 &requests[0]));
	MU_MPI(MPI_Isend(link->out, nbytes, MPI_BYTE, link->other, LINK_TAG, link->comm,
			 &requests[1]));
	MU_TRY(finish(link, 2, requests));
	*seconds = mu_now() - start;
out:
	return st;
}

/* The size of the next exchange, 0 for none, on both ranks. */
static enum mu_status agree_on_size(const struct link *link, int *nbytes)
{
	enum mu_status st = MU_OK;
	MPI_Request request = MPI_REQUEST_NULL;

	if (link->leads)
		MU_MPI(MPI_Isend(nbytes, 1, MPI_INT, link->other, LINK_TAG, link->comm, &request));
	else
		MU_MPI(MPI_Irecv(nbytes, 1, MPI_INT, link->other, LINK_TAG, link->comm, &request));
	MU_TRY(finish(link, 1, &request));
out:
	return st;
}

/* The best of all exchanges, because this is an upper bound: in one that takes long the other rank
 * may not have run. */
static enum mu_status measure(const struct link *link, double *rate)
{
	enum mu_status st = MU_OK;
	int nbytes = LINK_LEAST, last = 0, rounds = 0;
	double seconds, spent = 0;

	MU_TRY(exchange(link, LINK_LEAST, &seconds));
	for (;;) {
		MU_TRY(agree_on_size(link, &nbytes));
		if (nbytes == 0)
			break;
		MU_TRY(exchange(link, nbytes, &seconds));
		spent += seconds;
		rounds = nbytes == last ? rounds + 1 : 1;
		last = nbytes;
		*rate = fmax(*rate, nbytes / seconds);
		if (nbytes < LINK_BYTES && spent + LINK_GROWTH * seconds < LINK_SECONDS)
			nbytes *= LINK_GROWTH;
		else if (rounds == LINK_ROUNDS || spent + seconds > LINK_SECONDS)
			nbytes = 0;
	}
out:
	return st;
}

enum mu_status mu_comm_link(MPI_Comm comm, double *bytes_per_second)
{
	enum mu_status st = MU_OK;
	struct link link = {.comm = comm};
	int rank, size;

	*bytes_per_second = 0;
	MU_TRY(mu_comm_rank(comm, &rank, &size));
	if (size == 1)
		goto out;
	link.other = size - 1 - rank;
	link.leads = rank == 0;
	if (rank == 0 || rank == size - 1) {
		MU_TRY(MU_ALLOC(link.out, LINK_BYTES, "message that measures the link"));
		MU_TRY(MU_ALLOC(link.in, LINK_BYTES, "message that measures the link"));
		MU_TRY(measure(&link, bytes_per_second));
	}
	MU_TRY(mu_meet(comm));
	MU_TRY(mu_bcast(bytes_per_second, sizeof *bytes_per_second, 0, comm));
out:
	mu_free(link.out);
	mu_free(link.in);
	return st;
}
