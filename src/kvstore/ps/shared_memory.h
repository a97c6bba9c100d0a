/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to kvstore: a worker and a server end on one node. The worker's gradients and its results
 * (weights, or sums) are in memory that the node shares; the server end reads the former and writes
 * the latter in place. Instead of messages the two exchange notes in shared memory ("part 3 is
 * ready") and wake each other (mu_wake).
 *
 * A worker writes notes into a ring: the number of a part, or NOTE_ORDER for the order in the pipe.
 * The ring cannot overflow: it has room for one order and every part once, and a worker waits for
 * the answer to an order before it sends the next, and for a part before it pushes the part again.
 * The server end increments the part's counter when the result is ready, and a counter of answers.
 * The writer of data increments the counter afterwards (release); the reader reads the counter,
 * then the data (acquire).
 */
#ifndef MUSTER_KVSTORE_SHARED_MEMORY_H
#define MUSTER_KVSTORE_SHARED_MEMORY_H

#include <stdatomic.h>

#include "kvstore/kv.h"
#include "nodes.h"
#include "wire.h"

#define NOTE_ORDER UINT32_MAX

/* In shared memory, before the counters of parts and the ring. */
struct mu_kv_pipe {
	_Alignas(MU_ALIGN) _Atomic uint64_t n_notes; /* written by the worker */
	_Atomic uint64_t progress;                   /* see mu_kv_shm_is_last */
	struct wire_order order;
	_Alignas(MU_ALIGN) _Atomic uint64_t n_answers; /* written by the server end */
	struct wire_answer answer;
};

/* One end's view of the other. pipe: NULL if the other end is not on this node. */
struct mu_kv_shm {
	struct mu_kv_pipe *pipe;
	_Atomic uint64_t *returned; /* by part of the server: times that its result was ready */
	_Atomic uint64_t *taken;    /* shards: times that its gradients were summed */
	uint32_t *ring;
	size_t n_parts;
	uint64_t notes, answers; /* so far */
	uint64_t progress;
	float *gradients, *results; /* flat arrays of the worker */
	struct mu_kv_pipe **others; /* on a worker: pipes of the node's other workers to this end */
	size_t n_others;
};

/* Do ranks of a node share memory with these settings, where there is room? */
bool mu_kv_shares_memory(const struct mu_kv *kv, enum mu_kv_node node);
/*
 * Allocates the flat arrays of this rank: in the node's shared memory if there is room. On a server
 * kv->arrays.results is the array that the workers of its node share, or NULL. Collective over
 * topology->node.
 */
enum mu_status mu_kv_arrays_open(struct mu_kv *kv, enum mu_kv_node node);
void mu_kv_arrays_close(struct mu_kv *kv);
/* Between worker w and server end s; one of them is on this rank. */
void mu_kv_shm_find(const struct mu_kv *kv, int w, int s, struct mu_kv_shm *shm);

/* Worker w of this node, if the node reduces. */
void mu_kv_shm_neighbour(const struct mu_kv *kv, int w, struct mu_kv_neighbour *n);

/* ---- worker ---- */

void mu_kv_shm_send_order(struct mu_kv_shm *shm, const struct wire_order *order);
void mu_kv_shm_send_part(struct mu_kv_shm *shm, size_t part);
/*
 * Have the node's other workers pushed at least as many parts to this server end as this one, since
 * the first step? Of workers that push at the same time at least one gets true. For synchronous
 * stores, where all take the same steps.
 */
bool mu_kv_shm_is_last(const struct mu_kv_shm *shm);
/* Has the last order been answered? */
bool mu_kv_shm_is_answered(const struct mu_kv_shm *shm);
/* Has the part's result been ready n times? */
bool mu_kv_shm_is_returned(const struct mu_kv_shm *shm, size_t part, uint64_t n);
/* Were the part's gradients summed n times? */
bool mu_kv_shm_is_taken(const struct mu_kv_shm *shm, size_t part, uint64_t n);

/* ---- server ---- */

/* The next note, if there is one. */
bool mu_kv_shm_next_note(struct mu_kv_shm *shm, uint32_t *note);
void mu_kv_shm_take(struct mu_kv_shm *shm, size_t part);
void mu_kv_shm_return(struct mu_kv_shm *shm, size_t part);
void mu_kv_shm_answer(struct mu_kv_shm *shm, const struct wire_answer *answer);

#endif
