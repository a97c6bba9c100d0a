/* SPDX-License-Identifier: Apache-2.0 */
/* @np 3 @np-full 1 2 3 5 8 */
/* Communicators of some ranks, whose collectives are messages. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <muster/comm.h>

#include "../lib/check.h"

static MPI_Comm world;
static int rank, size;

static void must(enum mu_status st)
{
	if (!CHECK(st == MU_OK)) {
		mu_trace_print(stderr, "test_subsets");
		mu_world_abort(1);
	}
}

static enum mu_status failing(void)
{
	enum mu_status st = MU_OK;

	MU_FAIL(MU_ERR_IO, "a failure for the test");
out:
	return st;
}

/* A collective of some ranks, by messages, against what it must give: i and n are this rank there,
 * and how many. */
static void check_collectives(MPI_Comm comm, int i, int n)
{
	enum { WORDS = 3000 }; /* more than is copied */
	int me, of, all[64] = {0};
	long *many = calloc(WORDS, sizeof *many);
	long *gathered = calloc((size_t)n * WORDS, sizeof *many);
	double sum = 0.1 * (i + 1), least = -i;

	must(mu_comm_rank(comm, &me, &of));
	CHECK(me == i && of == n && n <= 64 && many && gathered);
	must(mu_barrier(comm));
	must(mu_allgather(&i, all, sizeof i, comm));
	for (int r = 0; r < n; r++)
		CHECK(all[r] == r);
	must(mu_allreduce_double(&least, 1, MPI_MIN, comm));
	CHECK(least == 1 - n);
	must(mu_allreduce_double(&sum, 1, MPI_SUM, comm));
	CHECK(fabs(sum - 0.05 * n * (n + 1)) < 1e-12);
	for (int root = 0; root < n; root++) {
		for (int w = 0; w < WORDS; w++)
			many[w] = i + w;
		must(mu_gather(many, gathered, WORDS * sizeof *many, root, comm));
		for (int k = 0; me == root && k < n * WORDS; k++)
			CHECK(gathered[k] == k / WORDS + k % WORDS);
		must(mu_bcast(many, WORDS * sizeof *many, root, comm));
		for (int w = 0; w < WORDS; w++)
			CHECK(many[w] == root + w);
	}
	for (int w = 0; w < WORDS; w++)
		many[w] = i;
	must(mu_allreduce_long(many, WORDS, MPI_SUM, comm));
	for (int w = 0; w < WORDS; w++)
		CHECK(many[w] == n * (n - 1) / 2);
	CHECK(mu_agree(i == n - 1 ? failing() : MU_OK, comm) ==
	      (i == n - 1 ? MU_ERR_IO : MU_ERR_PEER));
	mu_trace_clear();
	free(many);
	free(gathered);
}

/* The sum that MPI gives, to the last bit, where both are MPICH's: others add in orders of their
 * own. */
static void check_order(MPI_Comm comm, int colour)
{
	double mine = 1.0 / (3 + rank), theirs = mine;
	char text[MPI_MAX_LIBRARY_VERSION_STRING];
	MPI_Comm real;
	int length;

	MPI_Comm_split(world, colour, rank, &real);
	MPI_Allreduce(MPI_IN_PLACE, &theirs, 1, MPI_DOUBLE, MPI_SUM, real);
	MPI_Comm_free(&real);
	must(mu_allreduce_double(&mine, 1, MPI_SUM, comm));
	MPI_Get_library_version(text, &length);
	CHECK(mine == theirs || strncmp(text, "MPICH Version: 4", 16) != 0);
}

/* Every other rank, in two orders; all but the last one; parts of parts, and duplicates, in whose
 * collectives ranks are at different times. */
static void test_subsets(void)
{
	const int half = rank % 2, n = (size + 1 - half) / 2, last = rank == size - 1;
	MPI_Comm comm, other, both[2], part;
	struct mu_vote vote = {.request = MPI_REQUEST_NULL};
	struct mu_members m;
	bool done = false;

	must(mu_comm_split(world, half, rank, &comm));
	check_collectives(comm, rank / 2, n);
	must(mu_comm_split(world, half, -rank, &other));
	check_collectives(other, n - 1 - rank / 2, n);
	must(mu_comm_dup(comm, &both[0], "a duplicate"));
	must(mu_comm_dup(comm, &both[1], "a duplicate"));
	check_collectives(both[1], rank / 2, n);
	check_collectives(both[0], rank / 2, n);
	must(mu_comm_split(comm, rank / 2 % 2, rank, &part));
	check_collectives(part, rank / 4, (n + 1 - rank / 2 % 2) / 2);
	check_order(comm, half);
	for (int i = 0; i < 2; i++)
		mu_comm_close(&both[i]);
	mu_comm_close(&comm); /* its messages' communicator stays for its part */
	check_collectives(part, rank / 4, (n + 1 - rank / 2 % 2) / 2);
	mu_comm_close(&part);
	mu_comm_close(&other);
	must(mu_comm_split(world, last, rank, &comm));
	check_collectives(comm, last ? 0 : rank, last ? 1 : size - 1);
	check_order(comm, last);
	mu_comm_close(&comm);
	must(mu_members_init(&m, world, size > 2, MU_PLACEMENT_SPREAD));
	must(mu_vote_open(&vote, &m));
	if (m.index == 0)
		must(mu_peers_meet(&m));
	must(mu_vote_begin(&vote, 5 + m.index));
	if (m.index > 0)
		must(mu_peers_meet(&m));
	while (!done)
		must(mu_vote_test(&vote, &done));
	CHECK(vote.least == 5);
	mu_vote_close(&vote);
	mu_members_release(&m);
}

int main(int argc, char **argv)
{
	long failed;

	must(mu_world_open(&argc, &argv, &world));
	MPI_Comm_rank(world, &rank);
	MPI_Comm_size(world, &size);
	test_subsets();
	failed = check_failures();
	must(mu_allreduce_long(&failed, 1, MPI_SUM, world));
	return mu_world_close(&world, failed ? 1 : 0);
}
