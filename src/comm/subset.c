/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators of some ranks of another one, as MPI's attributes. See icollective.h. */
#include "icollective.h"

/* Tags of a context: the first ones are its owner's, those above of its collectives. Context 0 is
 * that of the communicator itself. */
enum { CONTEXT_TAGS = 1024, OWNER_TAGS = 868 };

/* An attribute of the communicator: freed with it, and, if it was made for subsets, with the last
 * one. */
struct mu_base {
	MPI_Comm comm;
	int refs; /* the attribute, and subsets */
	bool owned;
	int next; /* context */
	int highest_tag;
};

/* ---- attributes ---- */

static void drop_base(struct mu_base *b)
{
	MPI_Comm comm = b->comm;

	b->refs--;
	if (b->refs == 0)
		mu_free(b);
	else if (b->refs == 1 && b->owned)
		mu_comm_close(&comm); /* which drops the attribute's */
}

void mu_subset_drop(struct mu_subset *s)
{
	if (--s->refs > 0)
		return;
	drop_base(s->base);
	mu_icollective_free(s->spare);
	mu_free(s);
}

static int copy_subset(MPI_Comm comm, int key, void *extra, void *in, void *out, int *flag)
{
	struct mu_subset *s = in;

	(void)comm;
	(void)key;
	(void)extra;
	s->refs++;
	*(void **)out = in;
	*flag = 1;
	return MPI_SUCCESS;
}

static int delete_subset(MPI_Comm comm, int key, void *value, void *extra)
{
	(void)comm;
	(void)key;
	(void)extra;
	mu_subset_drop(value);
	return MPI_SUCCESS;
}

static int delete_base(MPI_Comm comm, int key, void *value, void *extra)
{
	struct mu_base *b = value;

	(void)comm;
	(void)key;
	(void)extra;
	b->owned = false;
	drop_base(b);
	return MPI_SUCCESS;
}

/* MPI identifies attributes by a number that is created once per process. */
enum mu_status mu_subset_key(int *out)
{
	enum mu_status st = MU_OK;
	static int key = MPI_KEYVAL_INVALID;

	if (key == MPI_KEYVAL_INVALID)
		MU_MPI(MPI_Comm_create_keyval(copy_subset, delete_subset, &key, NULL));
	*out = key;
out:
	return st;
}

static enum mu_status base_key(int *out)
{
	enum mu_status st = MU_OK;
	static int key = MPI_KEYVAL_INVALID;

	if (key == MPI_KEYVAL_INVALID)
		MU_MPI(MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, delete_base, &key, NULL));
	*out = key;
out:
	return st;
}

struct mu_subset *mu_subset_of(MPI_Comm comm)
{
	struct mu_subset *s = NULL;
	int key, found = 0;

	if (mu_subset_key(&key) != MU_OK || MPI_Comm_get_attr(comm, key, &s, &found) != MPI_SUCCESS)
		mu_trace_clear();
	return found ? s : NULL;
}

enum mu_status mu_subset_base(MPI_Comm comm, bool owned, struct mu_base **out)
{
	enum mu_status st = MU_OK;
	struct mu_base *b = NULL;
	int *highest = NULL;
	int key, found = 0;

	MU_TRY(base_key(&key));
	MU_MPI(MPI_Comm_get_attr(comm, key, out, &found));
	if (found)
		goto out;
	MU_TRY(MU_ALLOC(b, 1, "communicator"));
	*b = (struct mu_base){.comm = comm, .refs = 1, .owned = owned, .next = 1};
	MU_MPI(MPI_Comm_get_attr(comm, MPI_TAG_UB, &highest, &found));
	b->highest_tag = found ? *highest : 32767; /* the least that MPI allows */
	MU_MPI(MPI_Comm_set_attr(comm, key, b));
	*out = b;
	b = NULL;
out:
	mu_free(b);
	return st;
}

/* ---- subsets ---- */

enum mu_status mu_comm_rank(MPI_Comm comm, int *rank, int *size)
{
	enum mu_status st = MU_OK;
	const struct mu_subset *s = mu_subset_of(comm);

	if (s) {
		*rank = s->rank;
		*size = s->size;
		goto out;
	}
	MU_MPI(MPI_Comm_rank(comm, rank));
	MU_MPI(MPI_Comm_size(comm, size));
out:
	return st;
}

int mu_subset_next(const struct mu_subset *s)
{
	return s->base->next;
}

MPI_Comm mu_subset_comm(const struct mu_subset *s)
{
	return s->base->comm;
}

/* The collectives of a subset have tags in turn: they may overlap. */
int mu_subset_tag(const struct mu_subset *s, int tag)
{
	return s->context * CONTEXT_TAGS + tag;
}

int mu_subset_turn(struct mu_subset *s)
{
	return mu_subset_tag(s, OWNER_TAGS + (int)(s->next++ % (CONTEXT_TAGS - OWNER_TAGS)));
}

enum mu_status mu_comm_address(MPI_Comm comm, MPI_Comm *real, int *rank, int *tag)
{
	enum mu_status st = MU_OK;
	const struct mu_subset *s = mu_subset_of(comm);

	*real = s ? mu_subset_comm(s) : comm;
	if (!s)
		goto out;
	if (*tag >= OWNER_TAGS)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"tag %d among some ranks of a job: tags below %d are needed", *tag,
			OWNER_TAGS);
	*rank = s->ranks[*rank];
	*tag = mu_subset_tag(s, *tag);
out:
	return st;
}

enum mu_status mu_subset_new(struct mu_base *b, int context, int n, struct mu_subset **out)
{
	enum mu_status st = MU_OK;
	const size_t nbytes = sizeof **out + (size_t)n * sizeof *(*out)->ranks;

	context = context > 0 ? context : b->next;
	if (context > b->highest_tag / CONTEXT_TAGS - 1)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"communicator %d of some ranks: this MPI's tags (up to %d) are enough for "
			"%d",
			context, b->highest_tag, b->highest_tag / CONTEXT_TAGS - 1);
	MU_TRY(mu_alloc((void **)out, nbytes, "communicator of some ranks"));
	(*out)->base = b;
	(*out)->refs = 1;
	(*out)->size = n;
	(*out)->context = context;
	b->refs++;
	b->next = context + 1;
out:
	return st;
}

void mu_comm_close(MPI_Comm *comm)
{
	if (*comm != MPI_COMM_NULL && !mu_memory_is_kept())
		MPI_Comm_free(comm);
	else if (*comm != MPI_COMM_NULL)
		mu_free(mu_subset_of(*comm)); /* keeps it; the leak sanitizer need not find it */
	*comm = MPI_COMM_NULL;
}
