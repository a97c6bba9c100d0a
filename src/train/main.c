/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trainer: starts MPI, calls mu_train, prints what went wrong, and ends the job with the right
 * status.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <muster/base.h>
#include <muster/comm.h>
#include <muster/train.h>

/*
 * libgomp's threads spin for long after each primitive and so keep a server on the same cores from
 * running. libgomp reads the limit when it is loaded, which is before main: set it and start again.
 */
static void limit_spinning(char **argv)
{
	const char *threads = getenv("OMP_NUM_THREADS");
	char path[4096];
	ssize_t n;

	if (getenv("GOMP_SPINCOUNT") || getenv("OMP_WAIT_POLICY") ||
	    (threads && strcmp(threads, "1") == 0))
		return;
	/* By its own name, or ps and top would show "exe". */
	n = readlink("/proc/self/exe", path, sizeof path - 1);
	if (n <= 0 || setenv("GOMP_SPINCOUNT", "1000", 1) != 0)
		return;
	path[n] = '\0';
	execv(path, argv); /* where that fails, the threads spin */
}

int main(int argc, char **argv)
{
	enum mu_status st;
	MPI_Comm world = MPI_COMM_NULL;
	struct mu_train_end end = {.agreed = false};
	int rank = 0, size = 1;

	limit_spinning(argv);
	st = mu_world_open(&argc, &argv, &world);
	if (st != MU_OK) {
		mu_trace_print(stderr, "trainer");
		return 1;
	}
	st = mu_comm_rank(world, &rank, &size);
	if (st == MU_OK)
		st = mu_train(world, argc, argv, &end);
	if (st != MU_OK && !end.agreed)
		mu_world_fail(st, "trainer", rank, end.who);
	if (st != MU_OK)
		mu_world_tell(st, "trainer", rank, end.who);
	return mu_world_close(&world, mu_world_exit_status(st));
}
