/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Start and end of MPI for programs that own it. The only file that names MPI_COMM_WORLD.
 */
#include <unistd.h>

#include <muster/comm.h>

enum mu_status mu_world_open(int *argc, char ***argv, MPI_Comm *world)
{
	enum mu_status st = MU_OK;
	MPI_Request request = MPI_REQUEST_NULL;
	int provided = 0;

	*world = MPI_COMM_NULL;
	MU_MPI(MPI_Init_thread(argc, argv, MPI_THREAD_FUNNELED, &provided));
	MU_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	if (provided < MPI_THREAD_FUNNELED)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"this MPI gives thread level %d, MPI_THREAD_FUNNELED (%d) is needed",
			provided, MPI_THREAD_FUNNELED);
	MU_MPI(MPI_Comm_idup(MPI_COMM_WORLD, world, &request));
	MU_TRY(mu_wait_all(1, &request, "the other ranks at start"));
	MU_MPI(MPI_Comm_set_errhandler(*world, MPI_ERRORS_RETURN));
out:
	return st;
}

void mu_world_close(MPI_Comm *world)
{
	if (*world != MPI_COMM_NULL) {
		/* MPI_Finalize waits inside MPI: let every rank come here first, politely. */
		if (mu_barrier(*world) != MU_OK)
			mu_trace_clear();
		MPI_Comm_free(world);
	}
	MPI_Finalize();
}

void mu_world_abort(int exit_status)
{
	int started = 0;
	int ended = 0;

	if (MPI_Initialized(&started) == MPI_SUCCESS && started &&
	    MPI_Finalized(&ended) == MPI_SUCCESS && !ended)
		MPI_Abort(MPI_COMM_WORLD, exit_status);
	_exit(exit_status);
}
