/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Offset between the clocks of two ranks: Cristian, Probabilistic clock synchronization, 1989. The
 * reply is assumed to be read half-way through the round trip; the error is at most half of the
 * shortest round trip.
 */
#include <math.h>

#include <muster/comm.h>

enum { OFFSET_ROUNDS = 10, OFFSET_TAG = 2 };

/* Send *out, or receive *in. */
static enum mu_status move(MPI_Comm comm, int other, const double *out, double *in)
{
	enum mu_status st = MU_OK;
	MPI_Request request = MPI_REQUEST_NULL;

	if (in)
		MU_MPI(MPI_Irecv(in, 1, MPI_DOUBLE, other, OFFSET_TAG, comm, &request));
	else
		MU_MPI(MPI_Isend(out, 1, MPI_DOUBLE, other, OFFSET_TAG, comm, &request));
	MU_TRY(mu_wait_all(1, &request, "a message that compares clocks"));
out:
	return st;
}

/* On rank 0: send the time for each request. */
static enum mu_status answer(MPI_Comm comm, int rank, double (*now)(void))
{
	enum mu_status st = MU_OK;
	double t;

	for (int i = 0; i < OFFSET_ROUNDS; i++) {
		MU_TRY(move(comm, rank, NULL, &t));
		t = now();
		MU_TRY(move(comm, rank, &t, NULL));
	}
out:
	return st;
}

static enum mu_status request_time(MPI_Comm comm, double (*now)(void), double *seconds)
{
	enum mu_status st = MU_OK;
	double least = INFINITY;

	for (int i = 0; i < OFFSET_ROUNDS; i++) {
		double start = now(), t, took;

		MU_TRY(move(comm, 0, &start, NULL));
		MU_TRY(move(comm, 0, NULL, &t));
		took = now() - start;
		if (took < least) {
			least = took;
			*seconds = t - (start + took / 2);
		}
	}
out:
	return st;
}

enum mu_status mu_clock_offset(MPI_Comm comm, double (*now)(void), double *seconds)
{
	enum mu_status st = MU_OK;
	int rank, size;

	*seconds = 0;
	MU_TRY(mu_comm_rank(comm, &rank, &size));
	for (int r = 1; rank == 0 && r < size; r++)
		MU_TRY(answer(comm, r, now));
	if (rank != 0)
		MU_TRY(request_time(comm, now, seconds));
out:
	return st;
}
