/* SPDX-License-Identifier: Apache-2.0 */
/* A minimum over ranks without waiting: see comm.h. */
#include "comm/icollective.h"

enum mu_status mu_vote_open(struct mu_vote *v, const struct mu_members *m)
{
	enum mu_status st = MU_OK;

	*v = (struct mu_vote){.comm = MPI_COMM_NULL, .request = MPI_REQUEST_NULL};
	MU_TRY(mu_peers_dup(m, &v->comm));
out:
	return st;
}

void mu_vote_close(struct mu_vote *v)
{
	/* What is in progress when a run fails never ends: the communicator is not freed. */
	if (v->request == MPI_REQUEST_NULL)
		mu_comm_close(&v->comm);
}

enum mu_status mu_vote_begin(struct mu_vote *v, int value)
{
	enum mu_status st = MU_OK;

	v->mine = v->least = value;
	MU_TRY(mu_iallreduce(&v->mine, &v->least, 1, MPI_INT, MPI_MIN, v->comm, &v->request));
out:
	return st;
}

enum mu_status mu_vote_test(struct mu_vote *v, bool *done)
{
	enum mu_status st = MU_OK;
	int answer = 0;

	mu_icollective_move();
	MU_MPI(MPI_Test(&v->request, &answer, MPI_STATUS_IGNORE));
	*done = answer;
out:
	return st;
}
