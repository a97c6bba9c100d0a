/* SPDX-License-Identifier: Apache-2.0 */
/* trainer: starts MPI, calls mu_train, prints what went wrong, and ends the job with the right
 * status. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <muster/base.h>
#include <muster/comm.h>
#include <muster/train.h>

static int exit_status(enum mu_status st)
{
	if (st == MU_OK)
		return 0;
	return st == MU_ERR_USAGE ? 2 : 1;
}

static void tell(MPI_Comm world)
{
	char who[64], host[MPI_MAX_PROCESSOR_NAME] = "?";
	int rank = -1, n;

	MPI_Comm_rank(world, &rank);
	MPI_Get_processor_name(host, &n);
	snprintf(who, sizeof who, "trainer: rank %d on %.32s", rank, host);
	mu_trace_print(stderr, who);
}

/*
 * libgomp's threads spin for long after each primitive and so keep a server on the same cores from
 * running. libgomp reads the limit when it is loaded, which is before main: set it and start again.
 */
static void limit_spinning(char **argv)
{
	const char *threads = getenv("OMP_NUM_THREADS");

	if (getenv("GOMP_SPINCOUNT") || getenv("OMP_WAIT_POLICY") ||
	    (threads && strcmp(threads, "1") == 0))
		return;
	if (setenv("GOMP_SPINCOUNT", "1000", 1) == 0)
		execv("/proc/self/exe", argv); /* where that fails, the threads spin */
}

int main(int argc, char **argv)
{
	enum mu_status st;
	MPI_Comm world = MPI_COMM_NULL;
	bool agreed = false;

	limit_spinning(argv);
	st = mu_world_open(&argc, &argv, &world);
	if (st != MU_OK) {
		mu_trace_print(stderr, "trainer");
		return 1;
	}
	st = mu_train(world, argc, argv, &agreed);
	if (st != MU_OK && st != MU_ERR_PEER)
		tell(world);
	if (st != MU_OK && !agreed)
		mu_world_abort(exit_status(st));
	mu_world_close(&world);
	return exit_status(st);
}
