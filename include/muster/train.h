/* SPDX-License-Identifier: Apache-2.0 */
/*
 * train: options to a finished run. trainer(1) is a thin main over mu_train.
 */
#ifndef MUSTER_TRAIN_H
#define MUSTER_TRAIN_H

#include <mpi.h>
#include <muster/base.h>

/*
 * Run a whole training job: argv of rank 0 counts, the other ranks' is ignored. Collective over
 * comm. *agreed tells the caller how to end after an error: true, all ranks return the same status
 * and may finalize, and only the rank that is to tell of the error has a trace; false, the others
 * may be waiting for this rank and the job must be aborted. --help and the like return MU_OK.
 */
enum mu_status mu_train(MPI_Comm comm, int argc, char *const argv[], bool *agreed);

#endif
