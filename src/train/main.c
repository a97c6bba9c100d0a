/* SPDX-License-Identifier: Apache-2.0 */
/*
 * trainer: chooses the network interface, starts MPI, calls mu_train, prints what went wrong, and
 * ends the job with the right status.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <muster/base.h>
#include <muster/comm.h>
#include <muster/train.h>

#include "conf/conf.h"

/*
 * libgomp's threads spin for long after each primitive and so keep a server on the same cores from
 * running. libgomp reads the limit when it is loaded, which is before main: set it and start again.
 * A process that no launcher started is alone: there the limit bridges the gaps between the
 * primitives of a small network (some tenths of a millisecond), because sleeping and waking take
 * longer.
 */
#define SPINS_BESIDE_OTHERS "1000"
#define SPINS_ALONE "10000"

static void limit_spinning(char **argv)
{
	const char *threads = getenv("OMP_NUM_THREADS");
	char path[4096];
	ssize_t n;

	if (getenv("GOMP_SPINCOUNT") || getenv("OMP_WAIT_POLICY") ||
	    (threads && strcmp(threads, "1") == 0))
		return;
	/* Ranks of one thread, which waits for no other: a start loads no library twice then. */
	if (!threads && mu_world_crowds(2))
		return;
	/* By its own name, or ps and top would show "exe". */
	n = readlink("/proc/self/exe", path, sizeof path - 1);
	if (n <= 0 || setenv("GOMP_SPINCOUNT",
			     mu_world_launched() ? SPINS_BESIDE_OTHERS : SPINS_ALONE, 1) != 0)
		return;
	path[n] = '\0';
	execv(path, argv); /* where that fails, the threads spin */
}

/* oneDNN looks for a profiler's library in some 40 folders when it makes its first kernel. */
static void look_for_no_profiler(void)
{
	setenv("DNNL_JIT_PROFILE", "0", 0);
}

/*
 * NVIDIA's library functions that use streams of their own give the same bits in every run only
 * if all of cuBLAS's buffers have one size (cuDNN's release notes, about LSTM). Read when cuBLAS is
 * opened; our own handles of it have a buffer of ours. NCCL's sums inside an NVSwitch (NVLS) may
 * differ from call to call (NVIDIA/nccl issue 1497). What the user has set stays.
 */
static void fix_bits_of_gpus(void)
{
	setenv("NCCL_NVLS_ENABLE", "0", 0);
	setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:2", 0);
}

/* The launcher may forward a signal that this process has already received. */
#define SAME_SECONDS 1.0

/* The signal received; see struct mu_train_end. */
static atomic_int came;

/* See struct mu_train_end. Before the options are read there is nothing to save. */
static atomic_int patience = 10;

static void end_by(int number, const sigset_t *signals)
{
	pthread_sigmask(SIG_UNBLOCK, signals, NULL);
	raise(number);
}

/* Written past the log: the thread that hangs may have its lock. */
static void tell_deaf(int seconds)
{
	char text[256];
	const int n = snprintf(text, sizeof text,
			       "trainer: error: no progress in %d s since the signal: the process "
			       "ends without a checkpoint (--comm-timeout)\n",
			       seconds);

	if (n > 0 && write(STDERR_FILENO, text, (size_t)n) < 0)
		return;
}

/*
 * The first signal asks for a checkpoint and the end; one that comes later ends the process. So
 * does a lack of progress: a process that hangs, and has no other rank to watch it, would stay.
 */
static void *wait_for_signals(void *context)
{
	const sigset_t *signals = context;
	const struct timespec period = {1, 0};
	uint64_t seen = 0;
	double first = 0, moved = 0;

	for (;;) {
		int number = first > 0 ? sigtimedwait(signals, NULL, &period)
				       : sigwaitinfo(signals, NULL);
		const int limit = atomic_load(&patience);

		if (number > 0 && first == 0) {
			first = mu_now();
			atomic_store(&came, number);
		} else if (number > 0 && mu_now() - first >= SAME_SECONDS) {
			end_by(number, signals);
		}
		if (moved == 0 || mu_progress() != seen) {
			seen = mu_progress();
			moved = mu_now();
		} else if (first > 0 && limit > 0 && mu_now() - moved >= limit) {
			tell_deaf(limit);
			end_by(atomic_load(&came), signals);
		}
	}
	return NULL;
}

/*
 * Only this thread receives these signals, without a handler: kernels of oneDNN use memory
 * that the frame of a handler would overwrite. Call before any other thread is created. Signals
 * that are ignored stay ignored.
 */
static void take_signals(void)
{
	static const int numbers[] = {SIGTERM, SIGINT, SIGUSR1};
	static sigset_t signals;
	struct sigaction action;
	pthread_t thread;

	sigemptyset(&signals);
	for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
		if (sigaction(numbers[i], NULL, &action) == 0 && action.sa_handler != SIG_IGN)
			sigaddset(&signals, numbers[i]);
	pthread_sigmask(SIG_BLOCK, &signals, NULL);
	if (pthread_create(&thread, NULL, wait_for_signals, &signals) != 0)
		pthread_sigmask(SIG_UNBLOCK, &signals, NULL); /* they end the process */
	else
		pthread_detach(thread);
}

int main(int argc, char **argv)
{
	enum mu_status st;
	MPI_Comm world = MPI_COMM_NULL;
	struct mu_train_end end = {.signal = &came, .patience = &patience};
	int rank = 0, size = 1, exit_status;

	mu_streams_begin();
	if (!mu_world_launched() && mu_train_answer(argc, argv)) {
		/* also where MPI cannot start, as on the login nodes of some clusters */
		return mu_streams_end("trainer", 0);
	}
	mu_place_unbind();
	limit_spinning(argv);
	look_for_no_profiler();
	fix_bits_of_gpus();
	take_signals();
	signal(SIGPIPE, SIG_IGN); /* halt.c ends training where the log has no reader */
	mu_world_follow_launcher();
	mu_trace_configure(false, mu_comm_colours());
	st = mu_conf_choose_interface(argc, argv);
	if (st != MU_OK && mu_world_spans_hosts())
		mu_world_refuse(st, "trainer");
	mu_trace_clear(); /* mu_train reports an error of the host once for all ranks */
	st = mu_world_open(&argc, &argv, &world);
	if (st != MU_OK)
		mu_world_fail(st, "trainer", rank, "");
	st = mu_comm_rank(world, &rank, &size);
	if (st == MU_OK)
		st = mu_train(world, argc, argv, &end);
	rank = size > 1 ? rank : -1; /* in messages */
	exit_status = st != MU_OK && end.final ? MU_TRAIN_EXIT_FINAL
		      : st == MU_OK && end.halted ? MU_TRAIN_EXIT_HALTED
						  : mu_world_exit_status(st);
	if (st != MU_OK && !mu_train_agreed(&end)) {
		mu_world_tell(st, "trainer", rank, end.who);
		mu_world_abort(exit_status);
	}
	if (st != MU_OK)
		mu_world_report(st, "trainer", rank, end.who);
	exit_status = mu_streams_end("trainer", exit_status);
	mu_log_close_files();
	return atomic_load(&came) ? mu_world_close_signalled(&world, exit_status)
				  : mu_world_close(&world, exit_status);
}
