/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives: MPI's non-blocking ones with polite waits. For agreement and set-up, never for
 * gradients, whose order of summation must not depend on MPI. */
#include <limits.h>

#include "comm/wait/watch.h"

#define PIECE_BYTES ((size_t)1 << 30)

static enum mu_status finish(MPI_Comm comm, MPI_Request *request, const char *what)
{
	return mu_watch_collective(&(struct mu_meeting){.comm = comm, .what = what}, request);
}

enum mu_status mu_barrier(MPI_Comm comm)
{
	enum mu_status st = MU_OK;
	MPI_Request request = MPI_REQUEST_NULL;

	MU_MPI(MPI_Ibarrier(comm, &request));
	MU_TRY(finish(comm, &request, "a barrier"));
out:
	return st;
}

enum mu_status mu_meet(MPI_Comm comm)
{
	enum mu_status st = MU_OK;
	const struct mu_meeting meeting = {.comm = comm, .what = "all to come", .setup = true};
	MPI_Request request = MPI_REQUEST_NULL;

	MU_MPI(MPI_Ibarrier(comm, &request));
	MU_TRY(mu_watch_collective(&meeting, &request));
out:
	return st;
}

enum mu_status mu_bcast(void *data, size_t nbytes, int root, MPI_Comm comm)
{
	enum mu_status st = MU_OK;
	char *p = data;

	MU_SAME(comm, nbytes);
	MU_SAME(comm, root);
	while (nbytes > 0) {
		size_t n = nbytes < PIECE_BYTES ? nbytes : PIECE_BYTES;
		MPI_Request request = MPI_REQUEST_NULL;

		MU_MPI(MPI_Ibcast(p, mu_count(n), MPI_BYTE, root, comm, &request));
		MU_TRY(finish(comm, &request, "a broadcast"));
		p += n;
		nbytes -= n;
	}
out:
	return st;
}

static enum mu_status allreduce(void *values, size_t n, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	enum mu_status st = MU_OK;
	MPI_Request request = MPI_REQUEST_NULL;

	MU_SAME(comm, n);
	MU_MPI(MPI_Iallreduce(MPI_IN_PLACE, values, mu_count(n), type, op, comm, &request));
	MU_TRY(finish(comm, &request, "an all-reduce"));
out:
	return st;
}

enum mu_status mu_allreduce_double(double *values, size_t n, MPI_Op op, MPI_Comm comm)
{
	return allreduce(values, n, MPI_DOUBLE, op, comm);
}

enum mu_status mu_allreduce_long(long *values, size_t n, MPI_Op op, MPI_Comm comm)
{
	return allreduce(values, n, MPI_LONG, op, comm);
}

enum mu_status mu_allreduce_float(const float *in, float *out, size_t n, MPI_Comm comm)
{
	enum mu_status st = MU_OK;
	MPI_Request request = MPI_REQUEST_NULL;

	MU_MPI(MPI_Iallreduce(in, out, mu_count(n), MPI_FLOAT, MPI_SUM, comm, &request));
	MU_TRY(finish(comm, &request, "an all-reduce"));
out:
	return st;
}

enum mu_status mu_allgather(const void *mine, void *all, size_t nbytes_each, MPI_Comm comm)
{
	enum mu_status st = MU_OK;
	MPI_Request request = MPI_REQUEST_NULL;

	MU_SAME(comm, nbytes_each);
	MU_MPI(MPI_Iallgather(mine, mu_count(nbytes_each), MPI_BYTE, all, mu_count(nbytes_each),
			      MPI_BYTE, comm, &request));
	MU_TRY(finish(comm, &request, "an all-gather"));
out:
	return st;
}

enum mu_status mu_gather(const void *mine, void *all, size_t nbytes_each, int root, MPI_Comm comm)
{
	enum mu_status st = MU_OK;
	MPI_Request request = MPI_REQUEST_NULL;

	MU_SAME(comm, nbytes_each);
	MU_MPI(MPI_Igather(mine, mu_count(nbytes_each), MPI_BYTE, all, mu_count(nbytes_each),
			   MPI_BYTE, root, comm, &request));
	MU_TRY(finish(comm, &request, "a gather"));
out:
	return st;
}

enum mu_status mu_agree(enum mu_status mine, MPI_Comm comm)
{
	enum mu_status st = MU_OK;
	long failed = LONG_MAX; /* the lowest rank that failed */
	int rank = 0;

	MU_MPI(MPI_Comm_rank(comm, &rank));
	if (mine != MU_OK)
		failed = rank;
	MU_TRY(mu_allreduce_long(&failed, 1, MPI_MIN, comm));
	if (mine == MU_OK && failed != LONG_MAX)
		MU_FAIL(MU_ERR_PEER, "rank %ld reported an error", failed);
out:
	return mine != MU_OK ? mine : st;
}

enum mu_status mu_agree_late(enum mu_status mine, MPI_Comm comm)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_meet(comm));
	MU_TRY(mu_agree(mine, comm));
out:
	return mine != MU_OK ? mine : st;
}

/* The maximum over (value, -value) shows whether all values are equal. */
enum mu_status mu_comm_same(MPI_Comm comm, long value, const char *name, const char *file, int line)
{
	enum mu_status st = MU_OK;
	MPI_Request request = MPI_REQUEST_NULL;
	long ends[2] = {value, -value};

	MU_MPI(MPI_Iallreduce(MPI_IN_PLACE, ends, 2, MPI_LONG, MPI_MAX, comm, &request));
	MU_TRY(finish(comm, &request, "the ranks to compare a value"));
	if (ends[0] != -ends[1])
		st = mu_trace_start(MU_ERR_ARGUMENT, file, line,
				    "%s is %ld here, and from %ld to %ld on the ranks", name, value,
				    -ends[1], ends[0]);
out:
	return st;
}
