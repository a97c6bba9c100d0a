/* SPDX-License-Identifier: Apache-2.0 */
/* Topology: the node of each rank, and the cores of this one. See topology.h. */
#include "topology.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cores.h"
#include "icollective.h"
#include "launcher.h"

/* What a rank says of its place. */
struct place {
	char host[64];
	uint64_t key; /* of ranks of one host, if the launcher does not tell them apart */
	int local;    /* number among its launcher's ranks of a node; -1: not known */
};

static void add(uint64_t *hash, const void *data, size_t nbytes)
{
	const unsigned char *bytes = data;

	for (size_t i = 0; i < nbytes; i++) /* FNV-1a */
		*hash = (*hash ^ bytes[i]) * 0x100000001b3ULL;
}

/* Hosts may have the same name. */
static void add_boot(uint64_t *hash)
{
	FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
	char boot[64] = "";

	if (file && !fgets(boot, sizeof boot, file))
		*boot = '\0';
	if (file)
		fclose(file);
	add(hash, boot, strlen(boot));
}

/* Containers of one host may have a name and a /dev/shm each. */
static void add_container(uint64_t *hash, const char *host)
{
	struct stat shm;

	add(hash, host, strlen(host));
	if (stat("/dev/shm", &shm) == 0) {
		add(hash, &shm.st_dev, sizeof shm.st_dev);
		add(hash, &shm.st_ino, sizeof shm.st_ino);
	}
}

/* Where the launcher numbers the ranks of a host, a container of each rank's own is no node: ranks
 * that cannot share memory exchange messages (window.c). */
static void find_place(struct place *p, int size)
{
	const struct mu_launcher_place by_launcher = mu_launcher_place(size);

	*p = (struct place){.key = 0xcbf29ce484222325ULL, .local = by_launcher.local};
	if (gethostname(p->host, sizeof p->host) != 0)
		snprintf(p->host, sizeof p->host, "unknown host");
	p->host[sizeof p->host - 1] = '\0';
	add(&p->key, &by_launcher.node, sizeof by_launcher.node);
	add(&p->key, &by_launcher.local_size, sizeof by_launcher.local_size);
	add_boot(&p->key);
	if (p->local < 0)
		add_container(&p->key, p->host);
}

/* A launcher may take one host for several nodes: each has one rank of a number. So ranks of equal
 * key and number are on different nodes, one after the other. */
static void tell_apart(struct place *all, int size)
{
	for (int r = size; r-- > 0;) {
		int before = 0;

		for (int q = 0; q < r && all[r].local >= 0; q++)
			before += all[q].key == all[r].key && all[q].local == all[r].local;
		all[r].local = before; /* lower ranks do not look at it */
	}
}

/* A node is identified by its lowest rank; nodes are numbered in that order. */
static void number_nodes(struct mu_topology *t, int size, const struct place *all)
{
	for (int r = 0; r < size; r++) {
		int lowest = 0;

		while (all[lowest].key != all[r].key || all[lowest].local != all[r].local)
			lowest++;
		t->node_of[r] = lowest == r ? t->num_nodes++ : t->node_of[lowest];
	}
}

/* MPI's own call for it, MPI_Comm_split_type, polls inside MPI: see icollective.h. */
static enum mu_status make_node(struct mu_topology *t, MPI_Comm comm, int rank, int size)
{
	enum mu_status st = MU_OK;
	int *ranks = NULL;
	int n = 0;

	MU_TRY(MU_ALLOC(ranks, (size_t)size, "ranks of the node"));
	t->my_node = t->node_of[rank];
	for (int r = 0; r < size; r++) {
		t->slot_of[r] = t->node_of[r] == t->my_node ? n : -1;
		if (t->slot_of[r] >= 0)
			ranks[n++] = r;
	}
	t->node_rank = t->slot_of[rank];
	t->node_size = n;
	if (t->num_nodes == 1)
		MU_TRY(mu_comm_dup(comm, &t->node, "the other ranks at start"));
	else
		MU_TRY(mu_subset_make(comm, n, ranks, &t->node));
out:
	mu_free(ranks);
	return st;
}

enum mu_status mu_topology_open(struct mu_topology *t, MPI_Comm comm)
{
	enum mu_status st = MU_OK;
	struct place *all = NULL;
	struct place mine;
	int rank, size;

	MU_TRY(mu_comm_rank(comm, &rank, &size));
	MU_TRY(MU_ALLOC(all, (size_t)size, "places of the ranks"));
	MU_TRY(MU_ALLOC(t->hosts, (size_t)size, "hosts of the ranks"));
	MU_TRY(MU_ALLOC(t->node_of, (size_t)size, "node of every rank"));
	MU_TRY(MU_ALLOC(t->slot_of, (size_t)size, "places in the node"));
	find_place(&mine, size);
	MU_TRY(mu_allgather(&mine, all, sizeof mine, comm));
	memcpy(t->host, mine.host, sizeof t->host);
	for (int r = 0; r < size; r++)
		memcpy(t->hosts[r], all[r].host, sizeof t->hosts[r]);
	tell_apart(all, size);
	number_nodes(t, size, all);
	MU_TRY(make_node(t, comm, rank, size));
out:
	mu_free(all);
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
