/* SPDX-License-Identifier: Apache-2.0 */
/* A minimum over ranks without waiting: see comm.h. */
#include "watch.h"

enum mu_status mu_vote_open(struct mu_vote *v, MPI_Comm comm)
{
	enum mu_status st = MU_OK;
	const struct mu_meeting meeting = {.comm = comm,
					   .what = "the other ranks to make a communicator"};

	*v = (struct mu_vote){.comm = MPI_COMM_NULL, .request = MPI_REQUEST_NULL};
	MU_MPI(MPI_Comm_idup(comm, &v->comm, &v->request));
	MU_TRY(mu_watch_collective(&meeting, &v->request));
	MU_MPI(MPI_Comm_set_errhandler(v->comm, MPI_ERRORS_RETURN));
out:
	return st;
}

void mu_vote_close(struct mu_vote *v)
{
	/* What is in progress when a run fails never ends: the communicator is not freed. */
	if (!mu_memory_is_kept() && v->comm != MPI_COMM_NULL && v->request == MPI_REQUEST_NULL)
		MPI_Comm_free(&v->comm);
}

enum mu_status mu_vote_begin(struct mu_vote *v, int value)
{
	enum mu_status st = MU_OK;

	v->mine = v->least = value;
	MU_MPI(MPI_Iallreduce(&v->mine, &v->least, 1, MPI_INT, MPI_MIN, v->comm, &v->request));
out:
	return st;
}

enum mu_status mu_vote_test(struct mu_vote *v, bool *done)
{
	enum mu_status st = MU_OK;
	int answer = 0;

	MU_MPI(MPI_Test(&v->request, &answer, MPI_STATUS_IGNORE));
	*done = answer;
out:
	return st;
}
