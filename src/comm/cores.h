/* SPDX-License-Identifier: Apache-2.0 */
/* Private to comm: sets of cores, as exchanged by the ranks of a node. */
#ifndef MUSTER_COMM_CORES_H
#define MUSTER_COMM_CORES_H

#include <muster/comm.h>

#define CORES_MAX 4096
#define CORES_LONGS (CORES_MAX / 64)

struct cores {
	long bits[CORES_LONGS];
};

/* Cores that this process may run on. */
enum mu_status mu_cores_mine(struct cores *mine);
enum mu_status mu_cores_bind(const struct cores *mine);
int mu_cores_count(const struct cores *c);
/* Union over the ranks of a communicator. Collective over comm. */
enum mu_status mu_cores_union(struct cores *c, MPI_Comm comm);
/* n cores of c, after the first `skip`. */
struct cores mu_cores_run(const struct cores *c, int skip, int n);

#endif
