/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the launcher says of the job, in the environment, against what MPI says. The mpirun of one
 * MPI starts programs of another as well, but each of the processes then is a job of its own, of
 * one rank: all would do the whole work and write the same files.
 */
#ifndef MU_COMM_LAUNCHER_H
#define MU_COMM_LAUNCHER_H

#include <muster/comm.h>

/*
 * MU_ERR_USAGE if a launcher started several processes and MPI knows of this one alone (the size of
 * its world is 1). The message is the first process's only: the others have the status without one,
 * and later, as the first to end can end all.
 */
enum mu_status mu_launcher_check(int size);

#endif
