/* SPDX-License-Identifier: Apache-2.0 */
/* Bandwidth of large messages between two ranks: the upper bound for a store. */
#include <math.h>

#include <muster/comm.h>

/* At 100 Mbit/s an exchange needs 0.4 s, and the start of a job waits for all of them. */
enum { LINK_BYTES = 1 << 22, LINK_ROUNDS = 5, LINK_TAG = 1 };

static enum mu_status exchange(MPI_Comm comm, int other, char *out, char *in)
{
	enum mu_status st = MU_OK;
	MPI_Request requests[2] = {MPI_REQUEST_NULL, MPI_REQUEST_NULL};

	MU_MPI(MPI_Irecv(in, LINK_BYTES, MPI_BYTE, other, LINK_TAG, comm, &requests[0]));
	MU_MPI(MPI_Isend(out, LINK_BYTES, MPI_BYTE, other, LINK_TAG, comm, &requests[1]));
	MU_TRY(mu_wait_all(2, requests, "a message that measures the link"));
out:
	return st;
}

/* The best of several exchanges, because this is an upper bound. */
static enum mu_status best_exchange(MPI_Comm comm, int other, double *seconds)
{
	enum mu_status st = MU_OK;
	char *out = NULL, *in = NULL;

	*seconds = INFINITY;
	MU_TRY(MU_ALLOC(out, LINK_BYTES, "message that measures the link"));
	MU_TRY(MU_ALLOC(in, LINK_BYTES, "message that measures the link"));
	for (int i = 0; i < LINK_ROUNDS; i++) {
		double start = mu_now();

		MU_TRY(exchange(comm, other, out, in));
		*seconds = fmin(*seconds, mu_now() - start);
	}
out:
	mu_free(out);
	mu_free(in);
	return st;
}

enum mu_status mu_comm_link(MPI_Comm comm, double *bytes_per_second)
{
	enum mu_status st = MU_OK;
	double seconds = INFINITY;
	int rank, size;

	*bytes_per_second = 0;
	MU_TRY(mu_comm_rank(comm, &rank, &size));
	if (size == 1)
		goto out;
	if (rank == 0 || rank == size - 1)
		MU_TRY(best_exchange(comm, size - 1 - rank, &seconds));
	MU_TRY(mu_bcast(&seconds, sizeof seconds, 0, comm));
	*bytes_per_second = LINK_BYTES / seconds;
out:
	return st;
}
