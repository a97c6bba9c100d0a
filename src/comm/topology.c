/* SPDX-License-Identifier: Apache-2.0 */
/* Topology: the node of each rank, and the cores of this one. See topology.h. */
#include "topology.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cores.h"

/* A node is identified by its lowest rank; nodes are numbered in that order. */
static void number_nodes(struct mu_topology *t, int size, const int *lowest)
{
	for (int r = 0; r < size; r++) {
		if (lowest[r] == r)
			t->node_of[r] = t->num_nodes++;
		else
			t->node_of[r] = t->node_of[lowest[r]];
	}
}

static enum mu_status find_nodes(struct mu_topology *t, MPI_Comm comm, int rank, int size)
{
	enum mu_status st = MU_OK;
	int *lowest = NULL;
	int mine = rank;

	/*
	 * MPI has no non-blocking split. This one and the split by roles block inside MPI, once, at
	 * start. The collective before each is a polite wait for all ranks, so that the split
	 * itself is short.
	 */
	MU_TRY(mu_barrier(comm));
	MU_MPI(MPI_Comm_split_type(comm, MPI_COMM_TYPE_SHARED, rank, MPI_INFO_NULL, &t->node));
	MU_MPI(MPI_Comm_set_errhandler(t->node, MPI_ERRORS_RETURN));
	MU_TRY(mu_comm_rank(t->node, &t->node_rank, &t->node_size));
	MU_TRY(mu_bcast(&mine, sizeof mine, 0, t->node));
	MU_TRY(MU_ALLOC(lowest, (size_t)size, "lowest rank of every rank's node"));
	MU_TRY(MU_ALLOC(t->node_of, (size_t)size, "node of every rank"));
	MU_TRY(MU_ALLOC(t->slot_of, (size_t)size, "places in the node"));
	MU_TRY(mu_allgather(&mine, lowest, sizeof mine, comm));
	number_nodes(t, size, lowest);
	t->my_node = t->node_of[rank];
	for (int r = 0, n = 0; r < size; r++)
		t->slot_of[r] = t->node_of[r] == t->my_node ? n++ : -1;
out:
	mu_free(lowest);
	return st;
}

static enum mu_status find_hosts(struct mu_topology *t, MPI_Comm comm, int size)
{
	enum mu_status st = MU_OK;

	if (gethostname(t->host, sizeof t->host) != 0)
		snprintf(t->host, sizeof t->host, "unknown host");
	t->host[sizeof t->host - 1] = '\0';
	MU_TRY(MU_ALLOC(t->hosts, (size_t)size, "hosts of the ranks"));
	MU_TRY(mu_allgather(t->host, t->hosts, sizeof *t->hosts, comm));
out:
	return st;
}

enum mu_status mu_topology_open(struct mu_topology *t, MPI_Comm comm)
{
	enum mu_status st = MU_OK;
	int rank, size;

	MU_TRY(mu_comm_rank(comm, &rank, &size));
	MU_TRY(find_nodes(t, comm, rank, size));
	MU_TRY(find_hosts(t, comm, size));
out:
	return st;
}

/* Servers sleep most of the time and may share a worker's core. */
static enum mu_status find_crowd(struct mu_topology *t, bool worker, const struct cores *mine)
{
	enum mu_status st = MU_OK;
	const struct cores none = {{0}};
	struct cores *all = NULL;
	int same = 0;

	MU_TRY(MU_ALLOC(all, (size_t)t->node_size, "cores of every rank of the node"));
	MU_TRY(mu_allgather(worker ? mine : &none, all, sizeof *all, t->node));
	for (int r = 0; r < t->node_size; r++)
		same += memcmp(&all[r], mine, sizeof *mine) == 0;
	t->machine_cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
	if (worker && same > t->my_cores && t->my_cores < t->machine_cores)
		t->crowd = same;
out:
	mu_free(all);
	return st;
}

static enum mu_status count_cores(struct mu_topology *t, bool worker)
{
	enum mu_status st = MU_OK;
	struct cores mine, all;

	MU_TRY(mu_cores_mine(&mine));
	all = mine;
	MU_TRY(mu_cores_union(&all, t->node));
	t->my_cores = mu_cores_count(&mine);
	t->node_cores = mu_cores_count(&all);
	t->bound = t->my_cores < t->node_cores;
	MU_TRY(find_crowd(t, worker, &mine));
out:
	return st;
}

static enum mu_status find_workers(struct mu_topology *t, const struct mu_members *m)
{
	enum mu_status st = MU_OK;

	MU_TRY(MU_ALLOC(t->worker_slots, (size_t)t->node_size, "workers of the node"));
	t->first_worker = -1;
	for (int w = 0; w < m->num_workers; w++) {
		const int rank = m->worker_ranks[w];

		if (t->slot_of[rank] < 0)
			continue;
		if (t->first_worker < 0)
			t->first_worker = w;
		t->node_worker += rank < m->rank;
		t->worker_slots[t->node_num_workers++] = t->slot_of[rank];
	}
out:
	return st;
}

enum mu_status mu_topology_fill(struct mu_topology *t, const struct mu_members *m)
{
	enum mu_status st = MU_OK;

	MU_TRY(find_workers(t, m));
	MU_TRY(count_cores(t, m->role == MU_ROLE_WORKER));
out:
	return st;
}

void mu_topology_close(struct mu_topology *t)
{
	mu_comm_close(&t->node);
	mu_free(t->node_of);
	mu_free(t->slot_of);
	mu_free(t->worker_slots);
	mu_free(t->hosts);
	*t = (struct mu_topology){.node = MPI_COMM_NULL};
}
