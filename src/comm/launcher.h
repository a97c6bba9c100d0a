/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Compares what the launcher says about the job, in the environment, with what MPI says. The mpirun
 * of one MPI also starts programs of another, but then each process is a job of one rank: all would
 * do the whole work and write the same files.
 */
#ifndef MU_COMM_LAUNCHER_H
#define MU_COMM_LAUNCHER_H

#include <muster/comm.h>

/*
 * MU_ERR_USAGE if a launcher started several processes and the size of MPI's world is 1. All but
 * the first process return later: the first to end may end all, and one message is enough.
 */
enum mu_status mu_launcher_check(int size);

/* Where the launcher of a job of size ranks says that this one is. */
struct mu_launcher_place {
	int node;              /* a number, the same for all ranks of a node */
	int local, local_size; /* this rank among its ranks of the node; -1, 0: it does not say */
};
struct mu_launcher_place mu_launcher_place(int size);

#endif
