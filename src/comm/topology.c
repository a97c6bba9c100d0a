/* SPDX-License-Identifier: Apache-2.0 */
/* Topology: the node of each rank, the servers, and the communicators. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cores.h"
#include "comm/wait/wake.h"
#include "comm/wait/watch.h"

const char *mu_role_name(enum mu_role role)
{
	return role == MU_ROLE_WORKER ? "worker" : "server";
}

const char *mu_topology_who(const struct mu_topology *t, char *text, size_t nbytes)
{
	snprintf(text, nbytes, "%s %d (rank %d, %s)", mu_role_name(t->role), t->index, t->rank,
		 t->host);
	return text;
}

const char *mu_topology_name(const struct mu_topology *t, int rank, char *text, size_t nbytes)
{
	for (int w = 0; w < t->num_workers; w++)
		if (t->worker_ranks[w] == rank)
			snprintf(text, nbytes, "worker %d (rank %d, %s)", w, rank, t->hosts[rank]);
	for (int s = 0; s < t->num_servers; s++)
		if (t->server_ranks[s] == rank)
			snprintf(text, nbytes, "server %d (rank %d, %s)", s, rank, t->hosts[rank]);
	return text;
}

static enum mu_status dup_world(struct mu_topology *t, MPI_Comm comm)
{
	enum mu_status st = MU_OK;
	MPI_Request request = MPI_REQUEST_NULL;

	MU_MPI(MPI_Comm_idup(comm, &t->world, &request));
	MU_TRY(mu_wait_all(1, &request, "the other ranks at start"));
	MU_MPI(MPI_Comm_set_errhandler(t->world, MPI_ERRORS_RETURN));
	MU_MPI(MPI_Comm_rank(t->world, &t->rank));
	MU_MPI(MPI_Comm_size(t->world, &t->size));
out:
	return st;
}

/* A node is identified by its lowest rank; nodes are numbered in that order. */
static void number_nodes(struct mu_topology *t, const int *lowest)
{
	for (int r = 0; r < t->size; r++) {
		if (lowest[r] == r)
			t->node_of[r] = t->num_nodes++;
		else
			t->node_of[r] = t->node_of[lowest[r]];
	}
}

static enum mu_status find_nodes(struct mu_topology *t)
{
	enum mu_status st = MU_OK;
	int *lowest = NULL;
	int mine = t->rank;

	/*
	 * MPI has no non-blocking split. This one and the split by roles block inside MPI, once, at
	 * start. The collective before each is a polite wait for all ranks, so that the split
	 * itself is short.
	 */
	MU_TRY(mu_barrier(t->world));
	MU_MPI(MPI_Comm_split_type(t->world, MPI_COMM_TYPE_SHARED, t->rank, MPI_INFO_NULL,
				   &t->node));
	MU_MPI(MPI_Comm_set_errhandler(t->node, MPI_ERRORS_RETURN));
	MU_MPI(MPI_Comm_rank(t->node, &t->node_rank));
	MU_MPI(MPI_Comm_size(t->node, &t->node_size));
	MU_TRY(mu_bcast(&mine, sizeof mine, 0, t->node));
	MU_TRY(MU_ALLOC(lowest, (size_t)t->size, "lowest rank of every rank's node"));
	MU_TRY(MU_ALLOC(t->node_of, (size_t)t->size, "node of every rank"));
	MU_TRY(MU_ALLOC(t->slot_of, (size_t)t->size, "places in the node"));
	MU_TRY(mu_allgather(&mine, lowest, sizeof mine, t->world));
	number_nodes(t, lowest);
	for (int r = 0, n = 0; r < t->size; r++)
		t->slot_of[r] = t->node_of[r] == t->node_of[t->rank] ? n++ : -1;
out:
	mu_free(lowest);
	return st;
}

/* The highest rank of a node that is not a server yet, -1 if there is none. */
static int last_free_rank(const struct mu_topology *t, int node, const bool *is_server)
{
	for (int r = t->size; r-- > 0;) {
		if (t->node_of[r] == node && !is_server[r])
			return r;
	}
	return -1;
}

static void spread_servers(const struct mu_topology *t, bool *is_server)
{
	for (int dealt = 0, node = 0; dealt < t->num_servers; node = (node + 1) % t->num_nodes) {
		int r = last_free_rank(t, node, is_server);

		if (r < 0)
			continue;
		is_server[r] = true;
		dealt++;
	}
}

static void pack_servers(const struct mu_topology *t, bool *is_server)
{
	for (int dealt = 0, node = t->num_nodes - 1; dealt < t->num_servers;) {
		int r = last_free_rank(t, node, is_server);

		if (r < 0) {
			node--;
			continue;
		}
		is_server[r] = true;
		dealt++;
	}
}

static enum mu_status set_roles(struct mu_topology *t, const bool *is_server)
{
	enum mu_status st = MU_OK;
	int workers = 0;
	int servers = 0;

	MU_TRY(MU_ALLOC(t->worker_ranks, (size_t)t->num_workers, "ranks of the workers"));
	MU_TRY(MU_ALLOC(t->server_ranks, (size_t)t->num_servers + 1, "ranks of the servers"));
	for (int r = 0; r < t->size; r++) {
		if (r == t->rank) {
			t->role = is_server[r] ? MU_ROLE_SERVER : MU_ROLE_WORKER;
			t->index = is_server[r] ? servers : workers;
		}
		if (t->node_of[r] == t->node_of[t->rank] && !is_server[r]) {
			t->node_worker += r < t->rank;
			t->node_num_workers++;
		}
		if (is_server[r])
			t->server_ranks[servers++] = r;
		else
			t->worker_ranks[workers++] = r;
	}
out:
	return st;
}

static enum mu_status make_roles(struct mu_topology *t, int num_servers,
				 enum mu_placement placement)
{
	enum mu_status st = MU_OK;
	bool *is_server = NULL;

	t->num_servers = num_servers == MU_SERVERS_DEFAULT ? t->num_nodes : num_servers;
	t->num_workers = t->size - t->num_servers;
	if (t->size == 1 && t->num_servers > 0)
		MU_FAIL(MU_ERR_USAGE,
			"%d server%s of 1 rank leave%s no worker: start at least %d ranks, or ask "
			"for no servers",
			t->num_servers, MU_S(t->num_servers),
			t->num_servers == 1 ? "s" : "", t->num_servers + 1);
	if (num_servers < MU_SERVERS_DEFAULT || t->num_workers < 1)
		MU_FAIL(MU_ERR_USAGE,
			"%d servers of %d ranks leave no worker: start at least %d ranks, or ask "
			"for 0 to %d servers",
			t->num_servers, t->size, t->num_servers + 1, t->size - 1);
	MU_TRY(MU_ALLOC(is_server, (size_t)t->size, "roles"));
	if (placement == MU_PLACEMENT_PACKED)
		pack_servers(t, is_server);
	else
		spread_servers(t, is_server);
	MU_TRY(set_roles(t, is_server));
	MU_TRY(mu_barrier(t->world));
	MU_MPI(MPI_Comm_split(t->world, (int)t->role, t->rank, &t->peers));
	MU_MPI(MPI_Comm_set_errhandler(t->peers, MPI_ERRORS_RETURN));
out:
	mu_free(is_server);
	return st;
}

/* Servers sleep most of the time and may share a worker's core. */
static enum mu_status find_crowd(struct mu_topology *t, const struct cores *mine)
{
	enum mu_status st = MU_OK;
	const struct cores none = {{0}};
	struct cores *all = NULL;
	int same = 0;

	MU_TRY(MU_ALLOC(all, (size_t)t->node_size, "cores of every rank of the node"));
	MU_TRY(mu_allgather(t->role == MU_ROLE_WORKER ? mine : &none, all, sizeof *all, t->node));
	for (int r = 0; r < t->node_size; r++)
		same += memcmp(&all[r], mine, sizeof *mine) == 0;
	t->machine_cores = (int)sysconf(_SC_NPROCESSORS_ONLN);
	if (t->role == MU_ROLE_WORKER && same > t->my_cores && t->my_cores < t->machine_cores)
		t->crowd = same;
out:
	mu_free(all);
	return st;
}

static enum mu_status count_cores(struct mu_topology *t)
{
	enum mu_status st = MU_OK;
	struct cores mine, all;

	MU_TRY(mu_cores_mine(&mine));
	all = mine;
	MU_TRY(mu_cores_union(&all, t->node));
	t->my_cores = mu_cores_count(&mine);
	t->node_cores = mu_cores_count(&all);
	t->bound = t->my_cores < t->node_cores;
	MU_TRY(find_crowd(t, &mine));
out:
	return st;
}

static enum mu_status find_hosts(struct mu_topology *t)
{
	enum mu_status st = MU_OK;

	MU_TRY(MU_ALLOC(t->hosts, (size_t)t->size, "hosts of the ranks"));
	MU_TRY(mu_allgather(t->host, t->hosts, sizeof *t->hosts, t->world));
out:
	return st;
}

enum mu_status mu_topology_init(struct mu_topology *t, MPI_Comm comm, int num_servers,
				enum mu_placement placement)
{
	enum mu_status st = MU_OK;

	memset(t, 0, sizeof *t);
	t->world = t->peers = t->node = MPI_COMM_NULL;
	if (gethostname(t->host, sizeof t->host) != 0)
		snprintf(t->host, sizeof t->host, "unknown host");
	t->host[sizeof t->host - 1] = '\0';
	MU_TRY(dup_world(t, comm));
	MU_TRY(mu_comm_same(t->world, num_servers, "num_servers", __FILE__, __LINE__));
	MU_TRY(mu_comm_same(t->world, (long)placement, "placement", __FILE__, __LINE__));
	MU_TRY(find_nodes(t));
	MU_TRY(make_roles(t, num_servers, placement));
	MU_TRY(count_cores(t));
	MU_TRY(find_hosts(t));
	MU_TRY(mu_wake_open(t));
	MU_TRY(mu_watch_open(t));
out:
	if (st != MU_OK)
		mu_topology_release(t);
	return st;
}

static void free_comm(MPI_Comm *comm)
{
	if (*comm != MPI_COMM_NULL)
		MPI_Comm_free(comm);
}

void mu_topology_release(struct mu_topology *t)
{
	mu_watch_close(t);
	mu_wake_close(t);
	free_comm(&t->peers);
	free_comm(&t->node);
	free_comm(&t->world);
	mu_free(t->worker_ranks);
	mu_free(t->server_ranks);
	mu_free(t->node_of);
	mu_free(t->slot_of);
	mu_free(t->hosts);
	t->hosts = NULL;
	t->worker_ranks = t->server_ranks = t->node_of = t->slot_of = NULL;
}
