/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trainer: starts MPI, calls mu_train, prints what went wrong, and ends the job with the right
 * status.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
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

/* Wrong use is the user's to mend: the message says all, whichever rank and line found it. */
static void tell(enum mu_status st, int rank, const char *role)
{
	char who[128], host[64] = "unknown host";

	if (st == MU_ERR_USAGE) {
		if (*mu_trace_message())
			fprintf(stderr, "trainer: error: %s\n", mu_trace_message());
		return;
	}
	gethostname(host, sizeof host - 1);
	snprintf(who, sizeof who, "trainer: rank %d%s%s on %s", rank, *role ? ", " : "", role,
		 host);
	mu_trace_print(stderr, who);
}

static void rest(int tenths_of_second)
{
	struct timespec time = {tenths_of_second / 10, tenths_of_second % 10 * 100000000L};

	nanosleep(&time, NULL);
}

/*
 * An abort ends the other ranks, too, and so can keep the one that knows the reason from telling
 * it. A rank that only knows of another's error leaves the abort to that one, for a while. Of
 * ranks that met the same error (a loss that is not finite is every worker's) the lowest is to
 * tell: the others give it a start, in the course of which it ends them.
 */
static void wait_for_others(enum mu_status st, int rank)
{
	rest(st == MU_ERR_PEER ? 50 : rank == 0 ? 0 : 20 + (rank < 20 ? rank : 20));
}

/* An abort that follows at once can end the launcher before it has passed on what we told. */
static void abort_job(enum mu_status st)
{
	rest(5);
	mu_world_abort(exit_status(st));
}

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
		wait_for_others(st, rank);
	if (st != MU_OK)
		tell(st, rank, end.who);
	if (st != MU_OK && !end.agreed)
		abort_job(st);
	mu_world_close(&world);
	return exit_status(st);
}
