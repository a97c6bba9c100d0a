/* SPDX-License-Identifier: Apache-2.0 */
/* Members: how they become workers and servers, and what they say to each other. */

#include "comm/wait/wake.h"
#include "comm/wait/watch.h"
#include "icollective.h"
#include "topology.h"

enum mu_status mu_members_follow(const struct mu_members *m, void *data, size_t nbytes)
{
	return mu_bcast(data, nbytes, m->worker_ranks[0], m->comm);
}

enum mu_status mu_peers_agree(const struct mu_members *m, enum mu_status st)
{
	return mu_agree(st, m->peers);
}

enum mu_status mu_peers_gather(const struct mu_members *m, const void *mine, size_t nbytes,
			       void **all, int *n)
{
	enum mu_status st = MU_OK;

	*n = m->role == MU_ROLE_WORKER ? m->num_workers : m->num_servers;
	MU_TRY(mu_agree(mu_alloc(all, (size_t)*n * nbytes, "values of all workers"), m->peers));
	MU_TRY(mu_allgather(mine, *all, nbytes, m->peers));
out:
	return st;
}

enum mu_status mu_peers_share(const struct mu_members *m, void *data, size_t nbytes)
{
	return mu_bcast(data, nbytes, 0, m->peers);
}

enum mu_status mu_peers_reduce(const struct mu_members *m, long *values, size_t n, MPI_Op op)
{
	return mu_allreduce_long(values, n, op, m->peers);
}

enum mu_status mu_peers_sum(const struct mu_members *m, double *values, size_t n)
{
	return mu_allreduce_double(values, n, MPI_SUM, m->peers);
}

enum mu_status mu_peers_meet(const struct mu_members *m)
{
	return mu_barrier(m->peers);
}

enum mu_status mu_peers_dup(const struct mu_members *m, MPI_Comm *out)
{
	return mu_comm_dup(m->peers, out, "the other ranks to make a communicator");
}

enum mu_status mu_peers_split(const struct mu_members *m, int colour, MPI_Comm *out)
{
	return mu_comm_split(m->peers, colour, m->index, out);
}

struct mu_meeting mu_peers_meeting(const struct mu_members *m, const char *what)
{
	return (struct mu_meeting){.comm = m->peers, .what = what};
}

/* ---- roles ---- */

/* The highest rank of a node that is not a server yet, -1 if there is none. */
static int last_free_rank(const struct mu_members *m, int node, const bool *is_server)
{
	for (int r = m->size; r-- > 0;) {
		if (m->topology.node_of[r] == node && !is_server[r])
			return r;
	}
	return -1;
}

static void spread_servers(const struct mu_members *m, bool *is_server)
{
	for (int dealt = 0, node = 0; dealt < m->num_servers;
	     node = (node + 1) % m->topology.num_nodes) {
		int r = last_free_rank(m, node, is_server);

		if (r < 0)
			continue;
		is_server[r] = true;
		dealt++;
	}
}

static void pack_servers(const struct mu_members *m, bool *is_server)
{
	for (int dealt = 0, node = m->topology.num_nodes - 1; dealt < m->num_servers;) {
		int r = last_free_rank(m, node, is_server);

		if (r < 0) {
			node--;
			continue;
		}
		is_server[r] = true;
		dealt++;
	}
}

static enum mu_status set_roles(struct mu_members *m, const bool *is_server)
{
	enum mu_status st = MU_OK;
	int workers = 0;
	int servers = 0;

	MU_TRY(MU_ALLOC(m->worker_ranks, (size_t)m->num_workers, "ranks of the workers"));
	MU_TRY(MU_ALLOC(m->server_ranks, (size_t)m->num_servers + 1, "ranks of the servers"));
	for (int r = 0; r < m->size; r++) {
		if (r == m->rank) {
			m->role = is_server[r] ? MU_ROLE_SERVER : MU_ROLE_WORKER;
			m->index = is_server[r] ? servers : workers;
		}
		if (is_server[r])
			m->server_ranks[servers++] = r;
		else
			m->worker_ranks[workers++] = r;
	}
out:
	return st;
}

int mu_members_usual_servers(const struct mu_members *m)
{
	const int most = m->size / 4 > 1 ? m->size / 4 : 1;

	return m->topology.num_nodes < most ? m->topology.num_nodes : most;
}

static enum mu_status make_roles(struct mu_members *m, int num_servers, enum mu_placement placement)
{
	enum mu_status st = MU_OK;
	bool *is_server = NULL;
	bool worker;

	m->num_servers =
		num_servers == MU_SERVERS_DEFAULT ? mu_members_usual_servers(m) : num_servers;
	m->num_workers = m->size - m->num_servers;
	if (num_servers < MU_SERVERS_DEFAULT)
		MU_FAIL(MU_ERR_USAGE,
			"%d servers: a number of servers is 0 or more, or MU_SERVERS_DEFAULT",
			num_servers);
	if (m->size == 1 && m->num_servers > 0)
		MU_FAIL(MU_ERR_USAGE,
			"%d server%s of 1 rank leave%s no worker: start at least %d ranks, or "
			"use a store without servers",
			m->num_servers, MU_S(m->num_servers), m->num_servers == 1 ? "s" : "",
			m->num_servers + 1);
	if (m->num_workers < 1)
		MU_FAIL(MU_ERR_USAGE,
			"%d servers of %d ranks leave no worker: start at least %d ranks, or ask "
			"for at most %d server%s",
			m->num_servers, m->size, m->num_servers + 1, m->size - 1,
			MU_S(m->size - 1));
	MU_TRY(MU_ALLOC(is_server, (size_t)m->size, "roles"));
	if (placement == MU_PLACEMENT_PACKED)
		pack_servers(m, is_server);
	else
		spread_servers(m, is_server);
	MU_TRY(set_roles(m, is_server));
	worker = m->role == MU_ROLE_WORKER;
	if (m->num_servers == 0)
		MU_TRY(mu_comm_dup(m->comm, &m->peers, "the other workers at start"));
	else
		MU_TRY(mu_subset_make(m->comm, worker ? m->num_workers : m->num_servers,
				      worker ? m->worker_ranks : m->server_ranks, &m->peers));
out:
	mu_free(is_server);
	return st;
}

/* ---- life ---- */

enum mu_status mu_members_find(struct mu_members *m, MPI_Comm comm)
{
	enum mu_status st = MU_OK;

	*m = (struct mu_members){.comm = MPI_COMM_NULL, .peers = MPI_COMM_NULL};
	m->topology.node = MPI_COMM_NULL;
	if (mu_subset_of(comm))
		MU_FAIL(MU_ERR_UNSUPPORTED, "members of a communicator of some ranks "
			"(mu_comm_split): one of MPI's own is needed (MPI_Comm_split)");
	MU_TRY(mu_comm_dup(comm, &m->comm, "the other ranks at start"));
	MU_TRY(mu_comm_rank(m->comm, &m->rank, &m->size));
	MU_TRY(mu_topology_open(&m->topology, m->comm));
out:
	if (st != MU_OK)
		mu_members_release(m);
	return st;
}

enum mu_status mu_members_share_out(struct mu_members *m, int num_servers,
				    enum mu_placement placement)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_comm_same(m->comm, num_servers, "num_servers", __FILE__, __LINE__));
	MU_TRY(mu_comm_same(m->comm, (long)placement, "placement", __FILE__, __LINE__));
	MU_TRY(make_roles(m, num_servers, placement));
	MU_TRY(mu_topology_fill(&m->topology, m));
	MU_TRY(mu_wake_open(m));
	MU_TRY(mu_watch_open(m));
out:
	if (st != MU_OK)
		mu_members_release(m);
	return st;
}

enum mu_status mu_members_init(struct mu_members *m, MPI_Comm comm, int num_servers,
			       enum mu_placement placement)
{
	const enum mu_status st = mu_members_find(m, comm);

	return st == MU_OK ? mu_members_share_out(m, num_servers, placement) : st;
}

void mu_members_drop(struct mu_members *m)
{
	m->dropped = true;
	mu_memory_keep();
}

void mu_members_release(struct mu_members *m)
{
	mu_watch_close(m);
	mu_wake_close(m);
	mu_comm_close(&m->peers);
	mu_topology_close(&m->topology);
	mu_comm_close(&m->comm);
	mu_free(m->worker_ranks);
	mu_free(m->server_ranks);
	m->worker_ranks = m->server_ranks = NULL;
	if (m->dropped)
		mu_memory_keep_end();
	m->dropped = false;
}
