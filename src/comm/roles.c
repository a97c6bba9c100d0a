/* SPDX-License-Identifier: Apache-2.0 */
/* Roles, numbers and names of members. */
#include <stdio.h>

#include <muster/comm.h>

const char *mu_role_name(enum mu_role role)
{
	return role == MU_ROLE_WORKER ? "worker" : "server";
}

bool mu_members_alone(const struct mu_members *m)
{
	return m->num_workers == 1;
}

bool mu_members_lead(const struct mu_members *m)
{
	return m->role == MU_ROLE_WORKER && m->index == 0;
}

int mu_worker_rank(const struct mu_members *m, int w)
{
	return m->worker_ranks[w];
}

int mu_server_rank(const struct mu_members *m, int s)
{
	return m->server_ranks[s];
}

enum mu_role mu_members_role(const struct mu_members *m, int rank, int *index)
{
	*index = 0;
	for (int w = 0; w < m->num_workers; w++)
		if (m->worker_ranks[w] == rank)
			*index = w;
	for (int s = 0; s < m->num_servers; s++)
		if (m->server_ranks[s] == rank) {
			*index = s;
			return MU_ROLE_SERVER;
		}
	return MU_ROLE_WORKER;
}

const char *mu_members_name(const struct mu_members *m, int rank, char *text, size_t nbytes)
{
	int index;
	const enum mu_role role = mu_members_role(m, rank, &index);

	snprintf(text, nbytes, "%s %d (rank %d, %s)", mu_role_name(role), index, rank,
		 m->topology.hosts[rank]);
	return text;
}

const char *mu_members_who(const struct mu_members *m, char *text, size_t nbytes)
{
	return mu_members_name(m, m->rank, text, nbytes);
}

const char *mu_worker_name(const struct mu_members *m, int w, char *text, size_t nbytes)
{
	return mu_members_name(m, m->worker_ranks[w], text, nbytes);
}

const char *mu_members_text(const struct mu_members *m, char *text, size_t nbytes)
{
	snprintf(text, nbytes, "%d worker%s, %d server%s", m->num_workers, MU_S(m->num_workers),
		 m->num_servers, MU_S(m->num_servers));
	return text;
}
