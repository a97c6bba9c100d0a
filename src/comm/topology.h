/* SPDX-License-Identifier: Apache-2.0 */
/* Private to comm: how members find their places. */
#ifndef MUSTER_COMM_TOPOLOGY_H
#define MUSTER_COMM_TOPOLOGY_H

#include <muster/comm.h>

/* Nodes and hosts. *t is zero but for node. Collective over comm. */
enum mu_status mu_topology_open(struct mu_topology *t, MPI_Comm comm);
/* What depends on roles: workers of this node, cores. Collective over t->node. */
enum mu_status mu_topology_fill(struct mu_topology *t, const struct mu_members *m);
void mu_topology_close(struct mu_topology *t);

#endif
