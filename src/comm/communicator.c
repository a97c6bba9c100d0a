/* SPDX-License-Identifier: Apache-2.0 */
/* Making communicators without blocking calls: MPI's duplicates, and subsets. See icollective.h. */
#include <stdlib.h>
#include <string.h>

#include "comm/wait/watch.h"
#include "icollective.h"

static enum mu_status wait_for_handle(MPI_Request *request)
{
	return mu_wait_all(1, request, "a communicator of this rank alone");
}

/* A handle of s, which takes over the caller's reference; like: whose other attributes it gets. */
static enum mu_status handle(struct mu_subset *s, MPI_Comm like, MPI_Comm *out)
{
	enum mu_status st = MU_OK;
	MPI_Request request = MPI_REQUEST_NULL;
	int key;

	MU_TRY(mu_subset_key(&key));
	MU_MPI(MPI_Comm_idup(like, out, &request));
	MU_TRY(wait_for_handle(&request));
	MU_MPI(MPI_Comm_set_errhandler(*out, MPI_ERRORS_RETURN));
	MU_MPI(MPI_Comm_set_attr(*out, key, s));
	s = NULL;
out:
	if (s)
		mu_subset_drop(s);
	return st;
}

enum mu_status mu_subset_make(MPI_Comm comm, int n, const int *ranks, MPI_Comm *out)
{
	enum mu_status st = MU_OK;
	struct mu_subset *s = NULL;
	struct mu_base *b;
	int rank, size;

	MU_TRY(mu_comm_rank(comm, &rank, &size));
	MU_TRY(mu_subset_base(comm, false, &b));
	MU_TRY(mu_subset_new(b, 0, n, &s));
	for (int i = 0; i < n; i++) {
		s->ranks[i] = ranks[i];
		if (ranks[i] == rank)
			s->rank = i;
	}
	MU_TRY(handle(s, MPI_COMM_SELF, out));
out:
	return st;
}

/* ---- mu_comm_dup, mu_comm_split ---- */

/* MPI's duplicate, or the same ranks with tags of their own. */
enum mu_status mu_comm_dup(MPI_Comm comm, MPI_Comm *out, const char *what)
{
	enum mu_status st = MU_OK;
	MPI_Request request = MPI_REQUEST_NULL;
	const struct mu_meeting meeting = {.comm = comm, .what = what};
	const struct mu_subset *like = mu_subset_of(comm);
	struct mu_subset *s = NULL;
	long context;

	if (!like) {
		MU_MPI(MPI_Comm_idup(comm, out, &request));
		MU_TRY(mu_watch_collective(&meeting, &request));
		MU_MPI(MPI_Comm_set_errhandler(*out, MPI_ERRORS_RETURN));
		goto out;
	}
	context = mu_subset_next(like);
	MU_TRY(mu_allreduce_long(&context, 1, MPI_MAX, comm));
	MU_TRY(mu_subset_new(like->base, (int)context, like->size, &s));
	s->rank = like->rank;
	memcpy(s->ranks, like->ranks, (size_t)like->size * sizeof *s->ranks);
	MU_TRY(handle(s, comm, out));
out:
	return st;
}

struct choice {
	int colour, key, rank, context;
};

static int by_colour_and_key(const void *a, const void *b)
{
	const struct choice *x = a, *y = b;

	if (x->colour != y->colour)
		return x->colour < y->colour ? -1 : 1;
	if (x->key != y->key)
		return x->key < y->key ? -1 : 1;
	return x->rank - y->rank;
}

/* All ranks of comm chose, in the order of colours. */
static enum mu_status choose(MPI_Comm comm, struct mu_subset *of, const struct choice *all,
			     int size, const struct choice *mine, MPI_Comm *out)
{
	enum mu_status st = MU_OK;
	MPI_Comm own = MPI_COMM_NULL;
	struct mu_base *b = of ? of->base : NULL;
	struct mu_subset *s = NULL;
	int n = 0, context = 1;

	for (int i = 0; i < size; i++) {
		n += all[i].colour == mine->colour;
		context = all[i].context > context ? all[i].context : context;
	}
	if (!of) {
		MU_TRY(mu_comm_dup(comm, &own, "the other ranks to make a communicator"));
		MU_TRY(mu_subset_base(own, true, &b));
	}
	MU_TRY(mu_subset_new(b, context, n, &s));
	for (int i = 0, at = 0; i < size; i++) {
		if (all[i].colour != mine->colour)
			continue;
		s->rank = all[i].rank == mine->rank ? at : s->rank;
		s->ranks[at++] = of ? of->ranks[all[i].rank] : all[i].rank;
	}
	MU_TRY(handle(s, of ? comm : MPI_COMM_SELF, out));
out:
	return st;
}

enum mu_status mu_comm_split(MPI_Comm comm, int colour, int key, MPI_Comm *out)
{
	enum mu_status st = MU_OK;
	struct mu_subset *of = mu_subset_of(comm);
	struct choice mine = {.colour = colour, .key = key};
	struct choice *all = NULL;
	bool whole = true;
	int size;

	MU_TRY(mu_comm_rank(comm, &mine.rank, &size));
	mine.context = of ? mu_subset_next(of) : 1;
	MU_TRY(MU_ALLOC(all, (size_t)size, "colours of the ranks"));
	MU_TRY(mu_allgather(&mine, all, sizeof mine, comm));
	qsort(all, (size_t)size, sizeof *all, by_colour_and_key);
	for (int i = 0; i < size; i++)
		whole &= all[i].colour == colour && all[i].rank == i;
	if (whole)
		MU_TRY(mu_comm_dup(comm, out, "the other ranks to make a communicator"));
	else
		MU_TRY(choose(comm, of, all, size, &mine, out));
out:
	mu_free(all);
	return st;
}
