/* SPDX-License-Identifier: Apache-2.0 */
/* @np 3 @np-full 2 3 */
/*
 * Messages over a border between ranks, round a ring: steps of different numbers of micro-batches,
 * messages of different kinds and of none, every element exact; a buffer keeps what has come until
 * the next step. What the rank behind sends early does not overtake.
 */
#include <muster/base.h>
#include <muster/comm.h>
#include <muster/parallel.h>

#include "../lib/check.h"

enum { MICRO = 4, STEPS = 7, KINDS = 3 };

/* Of a message: short, none, long enough for a rendezvous. */
static const size_t nbytes[KINDS] = {12, 0, 400000};

static int rank, size;

static int element(int from, size_t step, size_t micro, size_t i)
{
	return (int)(1000003 * (size_t)from + 10007 * step + 101 * micro + i);
}

static void choose(size_t step, size_t *kinds, size_t *n)
{
	*n = 1 + step % MICRO;
	for (size_t k = 0; k < *n; k++)
		kinds[k] = (step + k) % KINDS;
}

/* Once a message has passed, the next one may leave: so some are under way, and some are not. */
static void exchange(struct mu_passage *out, struct mu_passage *in, size_t step)
{
	size_t kinds[MICRO], n, sent = 0, left = 0, came = 0, wrong = 0;
	struct mu_waiter waiter;

	choose(step, kinds, &n);
	CHECK(mu_passage_begin(out, kinds, n) == MU_OK);
	CHECK(mu_passage_begin(in, kinds, n) == MU_OK);
	mu_waiter_init(&waiter, NULL);
	while (left < n || came < n) {
		if (sent < n && sent <= came) {
			int *data = mu_passage_buffer(out, sent);

			for (size_t i = 0; i < nbytes[kinds[sent]] / sizeof *data; i++)
				data[i] = element(rank, step, sent, i);
			CHECK(mu_passage_send(out) == MU_OK);
			sent++;
		}
		if (!CHECK(mu_passage_test(out, &left) == MU_OK &&
			   mu_passage_test(in, &came) == MU_OK))
			return;
		CHECK(left <= sent);
		mu_waiter_nap(&waiter);
	}
	for (size_t k = 0; k < n; k++) {
		const int *data = mu_passage_buffer(in, k);

		for (size_t i = 0; i < nbytes[kinds[k]] / sizeof *data; i++)
			wrong += data[i] != element((rank + size - 1) % size, step, k, i);
	}
	CHECK(wrong == 0);
}

int main(int argc, char **argv)
{
	MPI_Comm world, comm = MPI_COMM_NULL;
	struct mu_passage *out = NULL, *in = NULL;
	struct mu_passage_config config = {
		.tag = 5, .n_micro = MICRO, .n_kinds = KINDS, .nbytes = nbytes};
	long failures;

	if (mu_world_open(&argc, &argv, &world) != MU_OK)
		return 1;
	CHECK(mu_comm_rank(world, &rank, &size) == MU_OK);
	CHECK(mu_comm_dup(world, &comm, "all ranks") == MU_OK);
	config.comm = comm;
	config.sends = true;
	config.peer = (rank + 1) % size;
	CHECK(mu_passage_new(&out, &config) == MU_OK);
	config.sends = false;
	config.peer = (rank + size - 1) % size;
	CHECK(mu_passage_new(&in, &config) == MU_OK);
	for (size_t step = 0; out && in && step < STEPS; step++)
		exchange(out, in, step);
	mu_passage_free(out);
	mu_passage_free(in);
	mu_comm_close(&comm);
	failures = check_failures();
	CHECK(mu_allreduce_long(&failures, 1, MPI_SUM, world) == MU_OK);
	return mu_world_close(&world, failures ? 1 : 0);
}
