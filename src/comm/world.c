/* SPDX-License-Identifier: Apache-2.0 */
/* Start and end of MPI for programs that own it. The only file that names MPI_COMM_WORLD. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "launcher.h"

enum { ABORT_SECONDS = 5, MOST_FDS = 4096, START_SECONDS = 30 };

/* The launcher's process that started this one; 0: it is not Hydra's, whose end is a signal. */
static pid_t starter;

/* The value set by MPICH's launcher, or Open MPI's, in the environment; else other. */
static int launched(const char *mpich, const char *open_mpi, int other)
{
	const char *text = getenv(mpich) ? getenv(mpich) : getenv(open_mpi);

	return text ? atoi(text) : other;
}

/* ---- a start that waits ---- */

/* What the signal writes: nothing else may be done then, and no thread of MPI's is needed. */
static char waits[160];

static void tell_wait(int signal_number)
{
	(void)signal_number;
	if (write(STDERR_FILENO, waits, strlen(waits)) < 0)
		return;
}

/* MPI_Init waits, for ever, for ranks that are another program, or have ended. The first two ranks
 * of a host tell it: one of them may be what is missing. */
static void watch_start(bool begins, const char *program)
{
	static struct sigaction before;
	struct sigaction tells = {.sa_handler = tell_wait, .sa_flags = SA_RESTART};
	const int size = launched("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", 1);

	if (size == 1 || launched("MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", 0) > 1)
		return;
	alarm(0);
	if (!begins) {
		sigaction(SIGALRM, &before, NULL);
		return;
	}
	snprintf(waits, sizeof waits,
		 "%.40s: warning: rank %d: MPI_Init has waited %d s: has each of the %d ranks "
		 "started this program?\n",
		 program, launched("PMI_RANK", "OMPI_COMM_WORLD_RANK", 0), START_SECONDS, size);
	if (sigaction(SIGALRM, &tells, &before) == 0)
		alarm(START_SECONDS);
}

/* ---- start ---- */

static enum mu_status check_launcher(void)
{
	enum mu_status st = MU_OK;
	int size = 0;

	MU_MPI(MPI_Comm_size(MPI_COMM_WORLD, &size));
	st = mu_launcher_check(size);
	if (st != MU_OK) /* mu_world_close needs a world */
		MPI_Finalize();
out:
	return st;
}

enum mu_status mu_world_open(int *argc, char ***argv, MPI_Comm *world)
{
	enum mu_status st = MU_OK;
	const char *program, *slash;
	int provided = 0;

	*world = MPI_COMM_NULL;
	mu_streams_begin();
	program = argc && *argc > 0 ? **argv : "";
	slash = strrchr(program, '/');
	watch_start(true, slash ? slash + 1 : program);
	MU_MPI(MPI_Init_thread(argc, argv, MPI_THREAD_SERIALIZED, &provided));
	watch_start(false, "");
	MU_MPI(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
	MU_MPI(MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN)); /* of subsets */
	if (provided < MPI_THREAD_FUNNELED)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"this MPI gives thread level %d, MPI_THREAD_FUNNELED (%d) is needed",
			provided, MPI_THREAD_FUNNELED);
	st = check_launcher();
	if (st != MU_OK)
		goto out;
	MU_TRY(mu_comm_dup(MPI_COMM_WORLD, world, "the other ranks at start"));
out:
	return st;
}

bool mu_comm_serialized(void)
{
	int level = MPI_THREAD_SINGLE;

	return MPI_Query_thread(&level) == MPI_SUCCESS && level >= MPI_THREAD_SERIALIZED;
}

static bool is_proxy(pid_t pid)
{
	char path[64], name[32] = "";
	FILE *file;

	snprintf(path, sizeof path, "/proc/%ld/comm", (long)pid);
	file = fopen(path, "re");
	if (file && fscanf(file, "%31s", name) != 1)
		*name = '\0';
	if (file)
		fclose(file);
	return strcmp(name, "hydra_pmi_proxy") == 0;
}

void mu_world_follow_launcher(void)
{
	const pid_t parent = getppid();

	if (!is_proxy(parent) || prctl(PR_SET_PDEATHSIG, SIGTERM) != 0)
		return;
	starter = parent;
	/* It has ended before. To the process: the thread that waits for signals takes this one. */
	if (getppid() != parent)
		kill(getpid(), SIGTERM);
}

bool mu_world_lost_launcher(void)
{
	return starter > 0 && getppid() != starter;
}

/* Slurm's srun sets PMI_FD, too. PMI_JOBID does not distinguish them: where srun starts Hydra's
 * proxies (mpirun in a Slurm job), ranks inherit it. */
static bool is_hydra(void)
{
	return getenv("PMI_FD") && getenv("MPI_LOCALNRANKS");
}

/* Asks the launcher to end the job, and waits until it ends this process or closes the connection.
 * Returns if it does not. */
static void ask_for_abort(int exit_status)
{
	const char *fd = getenv("PMI_FD");
	struct pollfd launcher = {.fd = fd ? atoi(fd) : -1, .events = POLLIN};

	if (fd && dprintf(launcher.fd, "cmd=abort exitcode=%d\n", exit_status) > 0)
		poll(&launcher, 1, ABORT_SECONDS * 1000);
}

/*
 * MPICH's MPI_Abort waits for a reply of the launcher, for ever on a host that is cut off: the
 * alarm then ends the process. Where the world is one rank it only ends the process, and Hydra's
 * mpirun returns 1, whatever the exit status is, if it notices the end before the closed
 * connection.
 */
void mu_world_abort(int exit_status)
{
	int started = 0, ended = 0, size = 0;

	/* Of a process that is alone, MPI_Abort would only add a line; without a launcher it would
	 * wait. */
	if (!mu_world_launched() || mu_world_lost_launcher())
		_exit(exit_status);
	if (MPI_Initialized(&started) == MPI_SUCCESS && started &&
	    MPI_Finalized(&ended) == MPI_SUCCESS && !ended) {
		if (is_hydra() && MPI_Comm_size(MPI_COMM_WORLD, &size) == MPI_SUCCESS && size == 1)
			ask_for_abort(exit_status);
		signal(SIGALRM, SIG_DFL);
		alarm(ABORT_SECONDS);
		MPI_Abort(MPI_COMM_WORLD, exit_status);
	}
	_exit(exit_status);
}

int mu_world_exit_status(enum mu_status st)
{
	if (st == MU_OK)
		return 0;
	return st == MU_ERR_USAGE ? 2 : 1;
}

/* Files of the log have the trace, too: the error may be all that is left of a night. */
static void log_error(const char *who)
{
	char place[512];

	mu_log_in(MU_LOG_FILES, MU_LOG_ERROR, "%s: %s", who, mu_trace_message());
	for (size_t i = 0; mu_trace_place(i, place, sizeof place); i++)
		mu_log_in(MU_LOG_FILES, MU_LOG_INFO, "    at %s", place);
}

/* The user must correct wrong usage: whichever rank found it. */
void mu_world_report(enum mu_status st, const char *program, int rank, const char *role)
{
	char who[192], host[64] = "unknown host";

	if (!*mu_trace_message())
		return;
	gethostname(host, sizeof host - 1);
	if (st == MU_ERR_USAGE || rank < 0)
		snprintf(who, sizeof who, "%s", program);
	else
		snprintf(who, sizeof who, "%s: rank %d%s%s on %s", program, rank, *role ? ", " : "",
			 role, host);
	mu_log_status("");
	if (st != MU_ERR_USAGE && rank >= 0 && mu_comm_on_terminal()) /* worker 0's progress */
		mu_log_write(stderr, "\r\033[K", 4);
	mu_trace_report(stderr, who);
	log_error(who);
}

static void rest(int tenths_of_second)
{
	struct timespec time = {tenths_of_second / 10, tenths_of_second % 10 * 100000000L};

	nanosleep(&time, NULL);
}

/*
 * An abort also ends the other ranks, possibly before the rank that knows the reason has printed
 * it. So a rank that only knows of another rank's error leaves the abort to that rank for a while.
 * Among ranks with the same error (a loss that is not finite is an error on every worker) the
 * lowest reports: the others delay, and the abort ends them meanwhile. For a wait that is too long
 * one rank reports first (blame.c), unless roles are not known.
 */
static int tenths_before_telling(enum mu_status st, int rank, const char *role)
{
	const int turn = rank < 20 ? rank : 20;

	if (st == MU_ERR_PEER)
		return 50;
	if (st == MU_ERR_TIMEOUT)
		return *role ? 0 : 10 * turn;
	return rank <= 0 ? 0 : 15 + turn;
}

/* A first message between two ranks needs calls of both: the alarms of others are looked for. */
static void rest_until_told(int tenths_of_second)
{
	const struct timespec nap = {0, 10000000};

	for (int i = 0; i < 10 * tenths_of_second && !mu_alarm_is_told_elsewhere(); i++)
		nanosleep(&nap, NULL);
}

/* An immediate abort can end the launcher before it has passed on the output. */
void mu_world_tell(enum mu_status st, const char *program, int rank, const char *role)
{
	mu_alarm_done();
	rest_until_told(tenths_before_telling(st, rank, role));
	if (!mu_alarm_is_told_elsewhere())
		mu_world_report(st, program, rank, role);
	mu_alarm_wait();
	rest(5);
}

void mu_world_fail(enum mu_status st, const char *program, int rank, const char *role)
{
	mu_world_tell(st, program, rank, role);
	mu_world_abort(mu_world_exit_status(st));
}

bool mu_world_crowds(int times)
{
	return launched("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", 1) >=
	       times * sysconf(_SC_NPROCESSORS_ONLN);
}

bool mu_world_spans_hosts(void)
{
	return launched("PMI_SIZE", "OMPI_COMM_WORLD_SIZE", 1) >
	       launched("MPI_LOCALNRANKS", "OMPI_COMM_WORLD_LOCAL_SIZE", 1);
}

/*
 * If a process ends before MPI_Init, Hydra lets the others wait in it, unless this process aborts.
 * Its end must not be seen before mpirun has the abort: Hydra would call it a BAD TERMINATION. So
 * the process waits until Hydra ends it or closes the connection.
 */
void mu_world_refuse(enum mu_status st, const char *program)
{
	if (launched("MPI_LOCALRANKID", "OMPI_COMM_WORLD_LOCAL_RANK", 0) == 0)
		mu_world_report(st, program, 0, "");
	rest(5);
	ask_for_abort(mu_world_exit_status(st));
	_exit(mu_world_exit_status(st));
}

/*
 * MPICH before 4.2, over a network: a rank can wait in MPI_Finalize for ranks that are already in a
 * barrier of the launcher and make no progress, and the job never ends (pmodels/mpich pull request
 * 6596).
 */
static bool may_hang(void)
{
	char text[MPI_MAX_LIBRARY_VERSION_STRING];
	int length = 0, major = 0, minor = 0;

	if (MPI_Get_library_version(text, &length) != MPI_SUCCESS ||
	    sscanf(text, "MPICH Version: %d.%d", &major, &minor) != 2)
		return false;
	return major < 4 || (major == 4 && minor < 2);
}

/* Has the user told UCX to use no shared memory inside a host? */
static bool avoids_memory(void)
{
	const char *uses = getenv("UCX_TLS");

	return uses && *uses != '^' && !strstr(uses, "sm") && !strstr(uses, "sysv") &&
	       !strstr(uses, "posix") && !strstr(uses, "all");
}

static enum mu_status count_hosts(MPI_Comm comm, bool *several)
{
	enum mu_status st = MU_OK;
	char host[64] = "";
	long hash = 0, ends[2];

	gethostname(host, sizeof host - 1);
	for (const char *c = host; *c; c++)
		hash = (hash * 31 + *c) % 1000003;
	ends[0] = hash;
	ends[1] = -hash;
	MU_TRY(mu_allreduce_long(ends, 2, MPI_MAX, comm));
	*several = ends[0] != -ends[1];
out:
	return st;
}

/* Hydra treats a process that ends without notice as a failure, and kills the other processes of
 * its host. So send the notice that MPI_Finalize would send: MPICH's PMI-1, one line each way. */
static void leave_hydra(void)
{
	static const char word[] = "cmd=finalize\n";
	const char *fd = getenv("PMI_FD");
	struct pollfd answer = {.events = POLLIN};
	char line[64];

	if (!is_hydra())
		return;
	answer.fd = atoi(fd);
	if (write(answer.fd, word, sizeof word - 1) < 0 || poll(&answer, 1, 2000) <= 0 ||
	    read(answer.fd, line, sizeof line) < 0)
		fprintf(stderr, "the launcher did not take the end of a process: its exit status "
				"may be wrong\n");
}

/*
 * After Hydra has passed on a signal, it forgets the exit statuses of processes that it finds ended
 * when all output of its host is closed (HYD_pmcd_pmip_send_signal notes a forced cleanup), and
 * mpirun returns 0. It checks for ended processes each time an output closes. So a child keeps this
 * process's output open until the process has ended, closes its standard output, and, after Hydra
 * has checked, its standard error. Runs after MPI has ended; the child makes system calls only.
 */
static void outlive_for_hydra(void)
{
	int ends[2];
	char none;

	if (!is_hydra() || pipe(ends) != 0)
		return;
	if (fork() != 0) { /* this end of the pipe closes when the process ends */
		close(ends[0]);
		return;
	}
	for (int fd = STDERR_FILENO + 1; fd < MOST_FDS; fd++) /* other descriptors of the output */
		if (fd != ends[0])
			close(fd);
	while (read(ends[0], &none, 1) > 0)
		;
	rest(1);
	close(STDOUT_FILENO);
	rest(2);
	_exit(0);
}

/* True: the process must exit at once. */
static bool end_mpi(MPI_Comm *world)
{
	enum mu_status st;
	bool several = false;
	int rank = 0;

	if (*world != MPI_COMM_NULL) {
		/* MPI_Finalize waits inside MPI: first wait politely for every rank. */
		st = count_hosts(*world, &several);
		if (st == MU_OK)
			st = mu_barrier(*world);
		if (st == MU_ERR_TIMEOUT) { /* MPI_Finalize would wait for ever */
			MPI_Comm_rank(*world, &rank);
			mu_world_fail(st, "the end of MPI", rank, "");
		}
		mu_trace_clear();
		MPI_Comm_free(world);
	}
	if (mu_world_lost_launcher()) { /* MPI_Finalize would wait for it */
		fflush(NULL);
		return true;
	}
	if ((several || avoids_memory()) && may_hang()) {
		fflush(NULL);
		leave_hydra();
		return true;
	}
	MPI_Finalize();
	return false;
}

int mu_world_close(MPI_Comm *world, int exit_status)
{
	if (end_mpi(world))
		_exit(exit_status);
	return exit_status;
}

int mu_world_close_signalled(MPI_Comm *world, int exit_status)
{
	const bool at_once = end_mpi(world);

	outlive_for_hydra();
	if (at_once)
		_exit(exit_status);
	return exit_status;
}
