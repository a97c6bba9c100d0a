/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 3 @np-full 1 2 3 4 7 */
/* Roles, placement, waits, collectives, agreement, and a collective that is abandoned. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include <math.h>
#include <sched.h>
#include <stdlib.h>
#include <time.h>

#include <muster/comm.h>

#include "../lib/check.h"

static MPI_Comm world;
static int rank, size;

static void must(enum mu_status st)
{
	if (!CHECK(st == MU_OK)) {
		mu_trace_print(stderr, "test_comm");
		mu_world_abort(1);
	}
}

static void sleep_seconds(double seconds)
{
	struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};

	nanosleep(&t, NULL);
}

/* Every rank has one role, and all ranks tell the same story. */
static void check_roles(const struct mu_members *m, int servers)
{
	int peers = 0;
	int peer_rank = 0;
	int seen = 0;
	long sum[2];

	CHECK(m->rank == rank && m->size == size);
	CHECK(m->num_servers == servers && m->num_workers == size - servers);
	for (int w = 0; w < m->num_workers; w++) {
		CHECK(w == 0 || m->worker_ranks[w] > m->worker_ranks[w - 1]);
		seen += m->worker_ranks[w] == rank;
		CHECK(m->worker_ranks[w] != rank || (m->role == MU_ROLE_WORKER && m->index == w));
	}
	for (int s = 0; s < m->num_servers; s++) {
		CHECK(s == 0 || m->server_ranks[s] > m->server_ranks[s - 1]);
		seen += m->server_ranks[s] == rank;
		CHECK(m->server_ranks[s] != rank || (m->role == MU_ROLE_SERVER && m->index == s));
	}
	CHECK(seen == 1);
	must(mu_comm_rank(m->peers, &peer_rank, &peers));
	CHECK(peers == (m->role == MU_ROLE_WORKER ? m->num_workers : m->num_servers));
	CHECK(peer_rank == m->index);
	CHECK(m->topology.node_of[rank] >= 0 && m->topology.node_of[rank] < m->topology.num_nodes &&
	      m->topology.node_of[0] == 0);
	CHECK(m->topology.slot_of[rank] == m->topology.node_rank);
	/* On one node, the servers are its last ranks. */
	CHECK(m->topology.num_nodes > 1 || (m->role == MU_ROLE_SERVER) == (rank >= size - servers));
	sum[0] = m->role == MU_ROLE_WORKER ? m->topology.node_worker : 0;
	sum[1] = m->role == MU_ROLE_WORKER;
	must(mu_allreduce_long(sum, 2, MPI_SUM, m->topology.node));
	CHECK(sum[1] == m->topology.node_num_workers);
	CHECK(sum[0] ==
	      (long)m->topology.node_num_workers * (m->topology.node_num_workers - 1) / 2);
}

static void test_roles(void)
{
	struct mu_members m;
	char text[128], expected[128];

	for (int servers = 0; servers < size && servers <= 3; servers++) {
		must(mu_members_init(&m, world, servers, MU_PLACEMENT_SPREAD));
		check_roles(&m, servers);
		snprintf(expected, sizeof expected, "%s %d (rank %d, %s)", mu_role_name(m.role),
			 m.index, rank, m.topology.host);
		CHECK_TEXT(mu_members_who(&m, text, sizeof text), expected);
		mu_members_release(&m);
	}
	CHECK(mu_members_init(&m, world, size, MU_PLACEMENT_SPREAD) == MU_ERR_USAGE);
	snprintf(expected, sizeof expected, "ask for at most %d server", size - 1);
	CHECK_HAS(mu_trace_message(), size == 1 ? "1 server of 1 rank leaves no worker" : expected);
	CHECK(mu_members_init(&m, world, -2, MU_PLACEMENT_SPREAD) == MU_ERR_USAGE);
	CHECK_HAS(mu_trace_message(), "-2 servers: a number of servers is 0 or more");
	mu_trace_clear();
	if (size == 1) {
		CHECK(mu_members_init(&m, world, MU_SERVERS_DEFAULT, MU_PLACEMENT_SPREAD) ==
		      MU_ERR_USAGE);
		mu_trace_clear();
	} else {
		must(mu_members_init(&m, world, MU_SERVERS_DEFAULT, MU_PLACEMENT_SPREAD));
		CHECK(m.num_servers == m.topology.num_nodes);
		mu_members_release(&m);
	}
}

/* Packed servers leave the first nodes to the workers. */
static void test_packed(void)
{
	struct mu_members m;

	for (int servers = 1; servers < size; servers++) {
		int first_node = 1 << 30, worker_node = 0;

		must(mu_members_init(&m, world, servers, MU_PLACEMENT_PACKED));
		CHECK(m.num_servers == servers);
		for (int s = 0; s < servers; s++)
			if (m.topology.node_of[m.server_ranks[s]] < first_node)
				first_node = m.topology.node_of[m.server_ranks[s]];
		for (int w = 0; w < m.num_workers; w++)
			if (m.topology.node_of[m.worker_ranks[w]] > worker_node)
				worker_node = m.topology.node_of[m.worker_ranks[w]];
		CHECK(worker_node <= first_node);
		mu_members_release(&m);
	}
}

/* Workers who fill their node together get disjoint cores; others stay free to run anywhere. */
static void check_cores(const struct mu_members *m, int n, const cpu_set_t *before)
{
	cpu_set_t mine, both;
	cpu_set_t *all = calloc((size_t)size, sizeof *all);
	int n_free = m->topology.node_cores - n * m->topology.node_num_workers;
	bool filled = n_free >= 0 && n_free < m->topology.node_num_workers;

	CHECK(sched_getaffinity(0, sizeof mine, &mine) == 0);
	must(mu_allgather(&mine, all, sizeof mine, world));
	if (!all || m->topology.bound || m->role == MU_ROLE_SERVER || !filled)
		CHECK(CPU_EQUAL(&mine, before));
	else
		CHECK(CPU_COUNT(&mine) == n);
	for (int w = 0; all && !m->topology.bound && filled && w < m->num_workers; w++) {
		int r = m->worker_ranks[w];

		CPU_AND(&both, &mine, &all[r]);
		if (m->role == MU_ROLE_WORKER && r != rank &&
		    m->topology.node_of[r] == m->topology.node_of[rank])
			CHECK(CPU_COUNT(&both) == 0);
	}
	free(all);
}

static void test_place(const char *threads)
{
	struct mu_members m;
	cpu_set_t before;
	int n = 0;

	CHECK(sched_getaffinity(0, sizeof before, &before) == 0);
	if (threads)
		setenv("OMP_NUM_THREADS", threads, 1);
	else
		unsetenv("OMP_NUM_THREADS");
	must(mu_members_init(&m, world, size > 1, MU_PLACEMENT_SPREAD));
	must(mu_members_place(&m, 0, &n));
	if (m.role == MU_ROLE_SERVER)
		CHECK(n == 1);
	else if (threads)
		CHECK(n == atoi(threads));
	else if (!m.topology.bound)
		CHECK(n == (m.topology.node_cores >= m.topology.node_num_workers
				    ? m.topology.node_cores / m.topology.node_num_workers
				    : 1));
	check_cores(&m, n, &before);
	mu_members_release(&m);
	CHECK(sched_setaffinity(0, sizeof before, &before) == 0);
}

/*
 * Groups of threads get all of a rank's, and cores of their own where the rank has one for each
 * thread and there is one for each group; then the thread has its cores again.
 */
static void test_groups(void)
{
	cpu_set_t before, mine, all, both;
	int n_cores;

	CHECK(sched_getaffinity(0, sizeof before, &before) == 0);
	n_cores = CPU_COUNT(&before);
	for (int n = 1; n <= n_cores + 1; n++) {
		struct mu_places *places = NULL;
		int threads, sum = 0;

		CPU_ZERO(&all);
		for (int g = 0; g < n; g++) {
			must(mu_places_save(&places));
			must(mu_place_group(g, n, n_cores, &threads));
			CHECK(sched_getaffinity(0, sizeof mine, &mine) == 0);
			mu_places_restore(places);
			sum += threads;
			CPU_AND(&both, &mine, &all);
			CPU_OR(&all, &all, &mine);
			CHECK(n > n_cores || CPU_COUNT(&both) == 0);
			CHECK(CPU_COUNT(&mine) == (n > n_cores ? n_cores : threads));
			CHECK(sched_getaffinity(0, sizeof mine, &mine) == 0 &&
			      CPU_EQUAL(&mine, &before));
		}
		CHECK(CPU_EQUAL(&all, &before));
		CHECK(sum == (n > n_cores ? n : n_cores));
	}
	mu_places_restore(NULL);
	must(mu_place_group(0, 2, n_cores + 2, &n_cores)); /* more threads than cores: not pinned */
	CHECK(sched_getaffinity(0, sizeof mine, &mine) == 0 && CPU_EQUAL(&mine, &before));
}

static void test_collectives(void)
{
	double d[2] = {rank, 1};
	long l = rank;
	int *all = calloc((size_t)size, sizeof *all);

	must(mu_barrier(world));
	must(mu_allreduce_double(d, 2, MPI_SUM, world));
	CHECK(d[0] == size * (size - 1) / 2.0 && d[1] == size);
	must(mu_allreduce_long(&l, 1, MPI_MAX, world));
	CHECK(l == size - 1);
	l = rank == size - 1 ? 42 : 0;
	must(mu_bcast(&l, sizeof l, size - 1, world));
	CHECK(l == 42);
	must(mu_bcast(NULL, 0, 0, world));
	must(mu_allgather(&rank, all, sizeof rank, world));
	for (int r = 0; all && r < size; r++)
		CHECK(all[r] == r);
	free(all);
}

static enum mu_status failing(enum mu_status st)
{
	MU_FAIL(st, "a failure for the test");
out:
	return st;
}

static void test_agree(void)
{
	enum mu_status st;

	CHECK(mu_agree(MU_OK, world) == MU_OK);
	st = mu_agree(rank == size - 1 ? failing(MU_ERR_IO) : MU_OK, world);
	CHECK(st == (rank == size - 1 ? MU_ERR_IO : MU_ERR_PEER));
	if (rank < size - 1) {
		char text[64];

		snprintf(text, sizeof text, "rank %d reported", size - 1);
		CHECK_HAS(mu_trace_message(), text);
	} else {
		CHECK_HAS(mu_trace_message(), "a failure for the test");
	}
	mu_trace_clear();
}

/* MPI's errors come back as ours. */
static void test_errors(void)
{
	enum mu_status st = MU_OK;

	MU_MPI(MPI_Send(NULL, 0, MPI_BYTE, size + 5, 0, world));
out:
	CHECK(st == MU_ERR_MPI);
	CHECK_HAS(mu_trace_message(), "MPI_Send");
	mu_trace_clear();
}

/*
 * Ranks hand a token round; with more ranks than cores this takes minutes when a waiting rank keeps
 * its core.
 */
static void test_ring(bool woken)
{
	struct mu_members m;
	int token = 0;
	int from = (rank + size - 1) % size;
	int to = (rank + 1) % size;
	double start;

	must(mu_members_init(&m, world, 0, MU_PLACEMENT_SPREAD));
	start = mu_now();
	for (int turn = 0; turn < 50; turn++) {
		MPI_Request receive, send;
		int in = 0;
		int out;

		MPI_Irecv(&in, 1, MPI_INT, from, turn, m.comm, &receive);
		if (rank > 0)
			must(mu_wait_woken(woken ? &m : NULL, 1, &receive, "the token"));
		out = (rank > 0 ? in : token) + 1;
		MPI_Isend(&out, 1, MPI_INT, to, turn, m.comm, &send);
		if (woken)
			mu_wake(&m, to);
		must(mu_wait_woken(woken ? &m : NULL, 1, &receive, "the token"));
		must(mu_wait_all(1, &send, "a send"));
		token = in;
	}
	CHECK(rank > 0 || token == 50 * size);
	CHECK(mu_now() - start < 10);
	mu_members_release(&m);
}

/* A wake ends a sleep at once; without it the wait would end all the same. */
static void test_wake(void)
{
	struct mu_members m;
	struct mu_waiter waiter;
	int word = 0;

	if (size < 2)
		return;
	must(mu_members_init(&m, world, 0, MU_PLACEMENT_SPREAD));
	if (rank == 0) {
		MPI_Request request;

		MPI_Irecv(&word, 1, MPI_INT, 1, 1, m.comm, &request);
		must(mu_wait_woken(&m, 1, &request, "a late message"));
		CHECK(word == 7);
	} else if (rank == 1) {
		word = 7;
		sleep_seconds(0.05);
		MPI_Request request;

		MPI_Isend(&word, 1, MPI_INT, 0, 1, m.comm, &request);
		mu_wake(&m, 0);
		must(mu_wait_all(1, &request, "a send"));
	}
	mu_waiter_init(&waiter, &m);
	mu_waiter_nap(&waiter);
	must(mu_waiter_check(&waiter, NULL, "nothing"));
	mu_members_release(&m);
}

/* A rank that waits long uses next to no time of its core. */
static void test_idle(void)
{
	clock_t before;
	MPI_Request request;

	if (size < 2)
		return;
	must(mu_barrier(world));
	before = clock();
	if (rank == 0)
		sleep_seconds(0.4);
	MPI_Ibarrier(world, &request);
	must(mu_wait_all(1, &request, "rank 0"));
	CHECK((double)(clock() - before) / CLOCKS_PER_SEC < 0.2);
}

/* Clocks that are hours apart. */
static double own_clock(void)
{
	return mu_now() + 3600.0 * (rank + 1);
}

static void test_clock_offset(void)
{
	double offset, start = mu_now();

	must(mu_clock_offset(world, own_clock, &offset));
	if (rank == 0)
		CHECK(offset == 0);
	/* At most half of the quickest exchange, which took less than all of this. */
	CHECK(fabs(offset + 3600.0 * rank) <= mu_now() - start);
}

/*
 * The last rank fails while the others wait for its value, which comes after they have given up:
 * not into memory of who has gone on. The last test of a process: its memory is kept from then on.
 */
static void test_abandoned(void)
{
	struct mu_members m;
	long value = rank + 1;
	int there = 0;

	must(mu_members_init(&m, world, 0, MU_PLACEMENT_SPREAD));
	if (rank == size - 1) {
		mu_alarm_raise(&m, MU_ERR_MEMORY, false);
		for (int r = 0; r < size - 1; r++)
			MPI_Recv(NULL, 0, MPI_INT, r, 1, world, MPI_STATUS_IGNORE);
#ifdef MU_PARANOID /* the others have left the call in its first collective, which compares n */
		must(mu_comm_same(m.comm, 1, "n", __FILE__, __LINE__));
#else
		must(mu_allreduce_long(&value, 1, MPI_MAX, m.comm));
#endif
		for (int r = 0; r < size - 1; r++)
			MPI_Send(NULL, 0, MPI_INT, r, 2, world);
	} else {
		CHECK(mu_allreduce_long(&value, 1, MPI_MAX, m.comm) == MU_ERR_PEER);
		mu_trace_clear();
		CHECK(mu_memory_is_kept());
		MPI_Send(NULL, 0, MPI_INT, size - 1, 1, world);
		while (!there) /* here the value comes */
			MPI_Iprobe(size - 1, 2, world, &there, MPI_STATUS_IGNORE);
		MPI_Recv(NULL, 0, MPI_INT, size - 1, 2, world, MPI_STATUS_IGNORE);
		CHECK(value == rank + 1);
	}
	mu_members_release(&m);
}

int main(int argc, char **argv)
{
	static const char *const threads[] = {"1", "2", "1000"};
	long failed;

	must(mu_world_open(&argc, &argv, &world));
	MPI_Comm_rank(world, &rank);
	MPI_Comm_size(world, &size);
	test_roles();
	test_packed();
	test_collectives();
	test_agree();
	test_errors();
	test_groups();
	test_ring(false);
	test_ring(true);
	test_wake();
	test_idle();
	test_clock_offset();
	test_place(NULL);
	for (int i = 0; i < (int)(sizeof threads / sizeof *threads); i++)
		test_place(threads[i]);
	if (size > 1)
		test_abandoned();
	failed = check_failures();
	must(mu_allreduce_long(&failed, 1, MPI_SUM, world));
	return mu_world_close(&world, failed ? 1 : 0);
}
