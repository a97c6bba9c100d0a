/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train: runs a training job from its options; metrics. trainer(1) is a thin main around mu_train.
 */
#ifndef MUSTER_TRAIN_H
#define MUSTER_TRAIN_H

#ifdef __cplusplus
#include <atomic>
using std::atomic_int;
#else
#include <stdatomic.h>
#endif

#include <mpi.h>
#include <muster/base.h>
#include <muster/checkpoint.h>
#include <muster/device.h>
#include <muster/metrics.h>
#include <muster/net.h>

MU_BEGIN_C

/* How far a job came. */
enum mu_train_phase {
	MU_TRAIN_STARTING, /* ranks share the arguments */
	MU_TRAIN_OPTIONS,  /* options are read and checked */
	MU_TRAIN_ROLES,    /* ranks become workers and servers */
	MU_TRAIN_SETUP,    /* data, network and store are opened */
	MU_TRAIN_RUNNING,  /* workers train, servers serve */
	MU_TRAIN_DONE
};

/* How a job ended. who: role of this rank, such as "worker 2", or "" if it was not known yet. */
struct mu_train_end {
	enum mu_train_phase phase;
	char who[32];
	bool agreed; /* see mu_train_agreed */
	bool final; /* an error before the first step that the same command would meet again: exit
		       with MU_TRAIN_EXIT_FINAL */
	bool halted; /* with MU_OK: training was ended early; exit with MU_TRAIN_EXIT_HALTED */
	/* Set by the caller beforehand. A value above 0, which any thread may write, ends training
	 * on all ranks after a step, with a checkpoint. NULL: no such flag. */
	const atomic_int *signal;
	/* Set by the caller beforehand, or NULL. mu_train sets it to the seconds without progress
	 * (mu_progress) after which the caller may end a process that has received a signal and
	 * has no other rank to watch it: --comm-timeout; 0: never. */
	atomic_int *patience;
};
enum { MU_TRAIN_EXIT_FINAL = 2, MU_TRAIN_EXIT_HALTED = 85 };

/*
 * Do all ranks know of an error with which mu_train returned? Then all have the same status and may
 * finalize MPI, and only the rank that reports the error has a trace. Otherwise other ranks may be
 * waiting for this one, and the job must be aborted.
 */
bool mu_train_agreed(const struct mu_train_end *end);

/* --help, --help-all, --version and --info without a job: true if argv contains one of them and its
 * text was printed. mu_train reports errors of argv. Needs no MPI_Init. */
bool mu_train_answer(int argc, char *const argv[]);

/* Run a training job. argv of rank 0 is used; other ranks have the same options, or none. --help
 * and the like return MU_OK. Collective over comm. */
enum mu_status mu_train(MPI_Comm comm, int argc, char *const argv[], struct mu_train_end *end);

MU_END_C

#endif
