/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to kvstore: a worker and a server end on one node. The worker's gradients lie in memory
 * that the node shares, and so does the array that comes back to it (weights, or sums); the server
 * end reads the one and writes the other where they lie. What passes between the two are notes in
 * shared memory ("part 3 is ready") and mu_wake, no messages.
 *
 * A worker writes notes into a ring: a number of a part, or NEAR_ORDER for the order beside it. No
 * more than one order and every part once are ever under way, for a worker waits for the answer to
 * an order before the next, and for a part before it pushes that again: so the ring cannot
 * overflow. The server counts up a counter of the part when it is back, and one for answers.
 * Whoever writes data counts up afterwards (release), whoever reads the count reads the data
 * afterwards (acquire).
 */
#ifndef MUSTER_KVSTORE_NEAR_H
#define MUSTER_KVSTORE_NEAR_H

#include <stdatomic.h>

#include "kvstore/kv.h"
#include "nodes.h"
#include "wire.h"

#define NEAR_ORDER UINT32_MAX

/* In shared memory; the counters of parts and the ring follow it. */
struct mu_kv_pipe {
	_Alignas(MU_ALIGN) _Atomic uint64_t n_notes; /* written by the worker */
	_Atomic uint64_t progress;                   /* see mu_kv_near_is_last */
	struct wire_order order;
	_Alignas(MU_ALIGN) _Atomic uint64_t n_answers; /* written by the server end */
	struct wire_answer answer;
};

/* What one of the two ends knows of the other. pipe: NULL if that is not on this node. */
struct mu_kv_near {
	struct mu_kv_pipe *pipe;
	_Atomic uint64_t *returned; /* by part of the server: how often it came back */
	uint32_t *ring;
	size_t n_parts;
	uint64_t notes, answers; /* passed so far */
	uint64_t progress;
	float *gradients, *results; /* flat arrays of the worker */
	struct mu_kv_pipe **others; /* on a worker: those of the node's other workers to this end */
	size_t n_others;
};

/*
 * The flat arrays of this rank: in the node's shared memory if there is room for them. On a server
 * kv->results is what the workers of its node share, or NULL. Collective over topology->node.
 */
enum mu_status mu_kv_near_open(struct mu_kv *kv, enum mu_kv_node node);
void mu_kv_near_close(struct mu_kv *kv);
/* Worker w and server end s, of which one is of this rank. */
void mu_kv_near_find(const struct mu_kv *kv, int w, int s, struct mu_kv_near *near);

/* Worker w of this node, which reduces. */
void mu_kv_near_neighbour(const struct mu_kv *kv, int w, struct mu_kv_neighbour *n);

/* ---- worker ---- */

void mu_kv_near_order(struct mu_kv_near *near, const struct wire_order *order);
void mu_kv_near_push(struct mu_kv_near *near, size_t part);
/*
 * Have the node's other workers with a pipe to this server end pushed as many parts to it as this
 * worker, counted from the first step? Of workers that have pushed equally many, one at least is
 * told so. Synchronous stores only, where all take the same steps.
 */
bool mu_kv_near_is_last(const struct mu_kv_near *near);
/* Is the answer to the last order here? */
bool mu_kv_near_answered(const struct mu_kv_near *near);
/* Did the part come back n times? */
bool mu_kv_near_returned(const struct mu_kv_near *near, size_t part, uint64_t n);

/* ---- server ---- */

/* The next note, if there is one. */
bool mu_kv_near_next(struct mu_kv_near *near, uint32_t *note);
void mu_kv_near_return(struct mu_kv_near *near, size_t part);
void mu_kv_near_answer(struct mu_kv_near *near, const struct wire_answer *answer);

#endif
