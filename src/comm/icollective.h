/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private: non-blocking collectives, and communicators of some ranks of another one.
 *
 * MPI has no non-blocking call that makes a communicator of some ranks: those that there are poll
 * inside MPI, which takes seconds where ranks outnumber cores. So such a communicator is a subset:
 * a duplicate of MPI_COMM_SELF whose attribute lists the ranks, and the communicator on which they
 * send. Its collectives are messages; a process's subsets have tags of their own there.
 */
#ifndef MUSTER_COMM_ICOLLECTIVE_H
#define MUSTER_COMM_ICOLLECTIVE_H

#include <muster/comm.h>

/*
 * As MPI's, for subsets, too. Between two tests of the request call mu_waiter_nap, which moves the
 * messages of subsets, or mu_icollective_move. in may be MPI_IN_PLACE. Sums are in the order of
 * MPICH's recursive doubling. Collective over comm.
 */
enum mu_status mu_ibarrier(MPI_Comm comm, MPI_Request *request);
enum mu_status mu_ibcast(void *data, size_t nbytes, int root, MPI_Comm comm, MPI_Request *request);
enum mu_status mu_iallgather(const void *mine, void *all, size_t nbytes_each, MPI_Comm comm,
			     MPI_Request *request);
enum mu_status mu_igather(const void *mine, void *all, size_t nbytes_each, int root, MPI_Comm comm,
			  MPI_Request *request);
enum mu_status mu_iallreduce(const void *in, void *out, size_t n, MPI_Datatype type, MPI_Op op,
			     MPI_Comm comm, MPI_Request *request);
/* Move the messages of subsets. True: some have arrived. Not collective. */
bool mu_icollective_move(void);

/*
 * Where messages to a rank of comm go: *real, and *rank and *tag there. Tags of subsets: 0 to 99,
 * else MU_ERR_UNSUPPORTED. Not collective.
 */
enum mu_status mu_comm_address(MPI_Comm comm, MPI_Comm *real, int *rank, int *tag);

/* ---- subsets: private to comm ---- */

struct mu_base;
struct move;

struct mu_subset {
	struct mu_base *base; /* the communicator of its messages */
	int refs;             /* handles, and collectives that have not ended */
	int rank, size;
	int context;        /* of its tags */
	unsigned next;      /* collectives begun so far */
	struct move *spare; /* memory of collectives that have ended */
	int ranks[];        /* in base */
};

/* Its spare memory, when it goes. */
void mu_icollective_free(struct move *all);
/* NULL: a communicator of MPI's. */
struct mu_subset *mu_subset_of(MPI_Comm comm);
MPI_Comm mu_subset_comm(const struct mu_subset *s);
int mu_subset_tag(const struct mu_subset *s, int tag);
/* The tag of its next collective. */
int mu_subset_turn(struct mu_subset *s);
void mu_subset_drop(struct mu_subset *s);
/* The attribute that holds one, with a reference. */
enum mu_status mu_subset_key(int *key);
/* The first context that is free where this process's subsets of that base send; the base of a
 * communicator. owned: it is closed with its last subset. */
int mu_subset_next(const struct mu_subset *s);
enum mu_status mu_subset_base(MPI_Comm comm, bool owned, struct mu_base **out);
/* context: 0: the first that is free. The caller sets rank and ranks, and has the reference. */
enum mu_status mu_subset_new(struct mu_base *b, int context, int n, struct mu_subset **out);
/*
 * The n ranks of comm, one of which is this one, in that order: *out has errors returned. comm is a
 * communicator of Muster's own, with tags below 1024. Each rank passes the ranks of its own subset.
 * Of several subsets of one comm all ranks make the first one first. No messages.
 */
enum mu_status mu_subset_make(MPI_Comm comm, int n, const int *ranks, MPI_Comm *out);

#endif
