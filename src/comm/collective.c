/* SPDX-License-Identifier: Apache-2.0 */
/* Collectives: MPI's non-blocking ones with polite waits. For agreement and set-up, never for
 * gradients, whose order of summation must not depend on MPI. */
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "comm/wait/watch.h"
#include "icollective.h"

#define PIECE_BYTES ((size_t)1 << 30)

/*
 * Memory of the values of a collective. Where the wait for it fails it stays posted, and MPI may
 * still read and write its memory, which for a caller's few values is often the stack. These
 * travel in a copy in the heap, where large ones lie already: its memory is kept (mu_memory_keep).
 */
enum { FEW_BYTES = 1 << 14 };

struct copy {
	size_t nbytes;
	max_align_t values[];
};

/* NULL, where the values travel as they are: too many, or there is no memory. */
static struct copy *copy_of(const void *values, size_t nbytes)
{
	struct copy *c = NULL;

	if (nbytes > 0 && nbytes <= FEW_BYTES)
		c = malloc(sizeof *c + nbytes);
	if (c) {
		c->nbytes = nbytes;
		memcpy(c->values, values, nbytes);
	}
	return c;
}

/* Waits. to: where what has arrived in the copy goes; NULL: nothing has. */
static enum mu_status finish(MPI_Comm comm, MPI_Request *request, const char *what, struct copy *c,
			     void *to)
{
	enum mu_status st = MU_OK;

	st = mu_watch_collective(&(struct mu_meeting){.comm = comm, .what = what}, request);
	if (st != MU_OK)
		mu_memory_keep();
	else if (c && to)
		memcpy(to, c->values, c->nbytes);
	mu_free(c);
	return st;
}

enum mu_status mu_barrier(MPI_Comm comm)
{
	enum mu_status st = MU_OK;
	MPI_Request request = MPI_REQUEST_NULL;

	MU_TRY(mu_ibarrier(comm, &request));
	MU_TRY(finish(comm, &request, "a barrier", NULL, NULL));
out:
	return st;
}

enum mu_status mu_meet(MPI_Comm comm)
{
	enum mu_status st = MU_OK;
	const struct mu_meeting meeting = {.comm = comm, .what = "all to come", .setup = true};
	MPI_Request request = MPI_REQUEST_NULL;

	MU_TRY(mu_ibarrier(comm, &request));
	MU_TRY(mu_watch_collective(&meeting, &request));
out:
	return st;
}

enum mu_status mu_bcast(void *data, size_t nbytes, int root, MPI_Comm comm)
{
	enum mu_status st = MU_OK;
	char *p = data;

	MU_SAME(comm, nbytes);
	MU_SAME(comm, root);
	while (nbytes > 0) {
		size_t n = nbytes < PIECE_BYTES ? nbytes : PIECE_BYTES;
		MPI_Request request = MPI_REQUEST_NULL;
		struct copy *c = copy_of(p, n);

		MU_TRY(mu_ibcast(c ? (void *)c->values : p, n, root, comm, &request));
		MU_TRY(finish(comm, &request, "a broadcast", c, p));
		p += n;
		nbytes -= n;
	}
out:
	return st;
}

static enum mu_status allreduce(void *values, size_t n, MPI_Datatype type, MPI_Op op, MPI_Comm comm)
{
	enum mu_status st = MU_OK;
	MPI_Request request = MPI_REQUEST_NULL;
	const size_t nbytes = n * (type == MPI_DOUBLE ? sizeof(double) : sizeof(long));
	struct copy *c = NULL;

	MU_SAME(comm, n);
	c = copy_of(values, nbytes);
	MU_TRY(mu_iallreduce(MPI_IN_PLACE, c ? c->values : values, n, type, op, comm, &request));
	MU_TRY(finish(comm, &request, "an all-reduce", c, values));
out:
	return st;
}

enum mu_status mu_allreduce_double(double *values, size_t n, MPI_Op op, MPI_Comm comm)
{
	return allreduce(values, n, MPI_DOUBLE, op, comm);
}

enum mu_status mu_allreduce_long(long *values, size_t n, MPI_Op op, MPI_Comm comm)
{
	return allreduce(values, n, MPI_LONG, op, comm);
}

enum mu_status mu_allreduce_float(const float *in, float *out, size_t n, MPI_Comm comm)
{
	enum mu_status st = MU_OK;
	MPI_Request request = MPI_REQUEST_NULL;

	MU_TRY(mu_iallreduce(in, out, n, MPI_FLOAT, MPI_SUM, comm, &request));
	MU_TRY(finish(comm, &request, "an all-reduce", NULL, NULL));
out:
	return st;
}

enum mu_status mu_allgather(const void *mine, void *all, size_t nbytes_each, MPI_Comm comm)
{
	enum mu_status st = MU_OK;
	MPI_Request request = MPI_REQUEST_NULL;
	struct copy *c = NULL;

	MU_SAME(comm, nbytes_each);
	c = copy_of(mine, nbytes_each);
	MU_TRY(mu_iallgather(c ? c->values : mine, all, nbytes_each, comm, &request));
	MU_TRY(finish(comm, &request, "an all-gather", c, NULL));
out:
	return st;
}

enum mu_status mu_gather(const void *mine, void *all, size_t nbytes_each, int root, MPI_Comm comm)
{
	enum mu_status st = MU_OK;
	MPI_Request request = MPI_REQUEST_NULL;
	struct copy *c = NULL;

	MU_SAME(comm, nbytes_each);
	c = copy_of(mine, nbytes_each);
	MU_TRY(mu_igather(c ? c->values : mine, all, nbytes_each, root, comm, &request));
	MU_TRY(finish(comm, &request, "a gather", c, NULL));
out:
	return st;
}

/* ---- agreement ---- */

/*
 * Agreement on a status.
 *
 * A rank that has failed cannot know where the others are: in the same agreement, in one inside or
 * after it, or in a collective that waits for this rank. Hence two rules. Agreements are messages
 * with a tag of their own, which no other collective can receive. And a rank that has failed waits
 * a moment only: if the others do not come, nobody else knows of its error (mu_trace_known), it
 * reports the cause, and ends the job.
 *
 * The minimum travels by dissemination: in round k a rank sends what it knows to the rank 2^k after
 * it, and receives from the one before it at that distance.
 */
enum { AGREE_TAG = 0, ROUNDS = 31 }; /* all other tags are positive */
#define FAILED_SECONDS 1.0

/* Not on the stack: messages of an agreement that was abandoned use it until the process ends. */
static _Thread_local struct {
	int out[ROUNDS], in[ROUNDS];
	bool abandoned;
} messages;

/* limit: time at which to abandon the wait; 0: none. */
static enum mu_status await(const struct mu_meeting *meeting, MPI_Request *requests, double limit)
{
	enum mu_status st = MU_OK;
	MPI_Status *volatile ignore = MPI_STATUSES_IGNORE; /* volatile: see mu_wait_all */
	struct mu_watch *watch = mu_watch_of(meeting->comm);
	struct mu_waiter waiter;
	int done = 0;

	mu_waiter_init(&waiter, NULL);
	waiter.watch = watch;
	for (;;) {
		MU_MPI(MPI_Testall(2, requests, &done, ignore));
		if (done)
			break;
		mu_waiter_nap(&waiter);
		if (limit == 0)
			MU_TRY(mu_waiter_check(&waiter, mu_awaited_meeting, meeting));
		else if (mu_now() >= limit)
			MU_FAIL(MU_ERR_PEER, "the other ranks do not come to agree on an error");
	}
out:
	return st;
}

/* *lowest: the minimum over all ranks. */
static enum mu_status find_lowest(const struct mu_meeting *meeting, double limit, int *lowest)
{
	enum mu_status st = MU_OK;
	MPI_Request requests[2];
	struct mu_waiter entered;
	int rank, size, i = 0;

	MU_TRY(mu_comm_rank(meeting->comm, &rank, &size));
	mu_meeting_enter(meeting, &entered);
	for (long far = 1; far < size; far *= 2, i++) {
		int to = (int)((rank + far) % size), from = (int)((rank - far + size) % size);
		int tags[2] = {AGREE_TAG, AGREE_TAG};
		MPI_Comm comm;

		messages.out[i] = *lowest;
		MU_TRY(mu_comm_address(meeting->comm, &comm, &from, &tags[0]));
		MU_TRY(mu_comm_address(meeting->comm, &comm, &to, &tags[1]));
		MU_MPI(MPI_Irecv(&messages.in[i], 1, MPI_INT, from, tags[0], comm, &requests[0]));
		MU_MPI(MPI_Isend(&messages.out[i], 1, MPI_INT, to, tags[1], comm, &requests[1]));
		MU_TRY(await(meeting, requests, limit));
		if (messages.in[i] < *lowest)
			*lowest = messages.in[i];
	}
out:
	return st;
}

/* This rank has failed, and keeps its status and trace. */
static void share_failure(const struct mu_meeting *meeting)
{
	int rank = 0, size = 0;

	if (messages.abandoned || mu_memory_is_kept())
		return; /* nobody can agree with a rank whose messages do not arrive */
	mu_trace_hold(true);
	messages.abandoned = mu_comm_rank(meeting->comm, &rank, &size) != MU_OK ||
			     find_lowest(meeting, mu_now() + FAILED_SECONDS, &rank) != MU_OK;
	mu_trace_hold(false);
	if (!messages.abandoned)
		mu_trace_set_known(size);
}

static enum mu_status agree(enum mu_status mine, const struct mu_meeting *meeting)
{
	enum mu_status st = MU_OK;
	int lowest = INT_MAX, rank, size; /* the lowest rank that failed */

	if (mine != MU_OK) {
		share_failure(meeting);
		return mine;
	}
	MU_TRY(mu_comm_rank(meeting->comm, &rank, &size));
	MU_TRY(find_lowest(meeting, 0, &lowest));
	if (lowest == INT_MAX)
		goto out;
	st = mu_trace_start(MU_ERR_PEER, __FILE__, __LINE__, "rank %d reported an error", lowest);
	mu_trace_set_known(size);
out:
	return st;
}

enum mu_status mu_agree(enum mu_status mine, MPI_Comm comm)
{
	return agree(mine, &(struct mu_meeting){.comm = comm, .what = "all ranks to agree"});
}

bool mu_agree_reporter(enum mu_status mine, MPI_Comm comm, int *reporter)
{
	const struct mu_meeting meeting = {.comm = comm, .what = "all ranks to end"};
	const bool own = mine != MU_ERR_PEER;
	enum mu_status st = MU_OK;
	int rank;

	mu_trace_hold(true);
	MU_TRY(mu_comm_rank(comm, &rank, reporter));
	*reporter = own ? rank : *reporter;
	MU_TRY(find_lowest(&meeting, own ? mu_now() + FAILED_SECONDS : 0, reporter));
out:
	mu_trace_hold(false);
	return st == MU_OK;
}

enum mu_status mu_agree_late(enum mu_status mine, MPI_Comm comm)
{
	return agree(mine, &(struct mu_meeting){
				   .comm = comm, .what = "all to come", .setup = true});
}

/* The maximum over (value, -value) shows whether all values are equal. */
enum mu_status mu_comm_same(MPI_Comm comm, long value, const char *name, const char *file, int line)
{
	enum mu_status st = MU_OK;
	MPI_Request request = MPI_REQUEST_NULL;
	long ends[2] = {value, -value};
	struct copy *c = copy_of(ends, sizeof ends);

	MU_TRY(mu_iallreduce(MPI_IN_PLACE, c ? (void *)c->values : ends, 2, MPI_LONG, MPI_MAX, comm,
			     &request));
	MU_TRY(finish(comm, &request, "the ranks to compare a value", c, ends));
	if (ends[0] != -ends[1])
		st = mu_trace_start(MU_ERR_ARGUMENT, file, line,
				    "%s is %ld here, and from %ld to %ld on the ranks", name, value,
				    -ends[1], ends[0]);
out:
	return st;
}
