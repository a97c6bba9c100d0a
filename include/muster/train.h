/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train: options to a finished run. trainer(1) is a thin main over mu_train.
 */
#ifndef MUSTER_TRAIN_H
#define MUSTER_TRAIN_H

#include <mpi.h>
#include <muster/base.h>

/*
 * How a job ended. agreed: all ranks return the same status and may finalize, and only the rank
 * that is to tell of an error has a trace; else the others may be waiting for this rank, and the
 * job must be aborted. who: what this rank was, such as "worker 2", or "" if that was not known
 * yet.
 */
struct mu_train_end {
	bool agreed;
	char who[32];
};

/*
 * Run a whole training job: argv of rank 0 counts, the other ranks' is ignored. --help and the like
 * return MU_OK. Collective over comm.
 */
enum mu_status mu_train(MPI_Comm comm, int argc, char *const argv[], struct mu_train_end *end);

#endif
