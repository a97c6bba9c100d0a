/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to kvstore: the workers of every node, and what they send to other nodes once for all.
 *
 * A node reduces if it has two or more workers, there are other nodes, and the store is synchronous
 * and does not compress (every worker keeps a rest of its own). Its workers do not each send a part
 * of their gradients to a server end on another node: one of them, the leader of the part, adds up
 * the gradients of all, in the order of workers, and sends the sum. The result comes back to the
 * leader. (Several leaders per node: Kandalla et al., Designing multi-leader-based Allgather
 * algorithms for multi-core clusters, IPDPS workshops 2009.) A node's parts go to its workers in
 * turn, so that all use the network at once. Orders and answers stay each worker's own.
 *
 * With shared memory gradients are added up where they lie, and what comes back lies in the array
 * of results that the node's workers share. A worker has two counters per bucket there: rounds in
 * which it has pushed it, and rounds in which the parts of it that the worker leads have come back.
 * Whoever is last to push wakes the leaders; a leader wakes the others when its parts are back.
 *
 * Without it (leader_messages.c) a worker sends the leader its gradients of a part as it would send
 * them to the server end, under the same tag, and gets the result from it in the same way. The
 * leader receives them beside its own, and passes the result on. Of the counters it has its own
 * only: a bucket is back when all others have taken it.
 *
 * Where GPUs add up (node.c) the workers of a node have sums of different parts: each pushes
 * those that it is the leader of, to server ends of its node as well, and nothing else; of parts of
 * a server end that one of these workers holds that worker is the leader. What comes back goes to
 * the other workers by their GPUs.
 *
 * A leader works whenever its worker calls the store: at pushes, in mu_kv_poll, and in every wait
 * for servers. A worker may wait for one of its node that is still in backward: that one pushes and
 * polls. A worker that has pulled a bucket owes the others nothing more of it. So nobody waits for
 * ever as long as workers come to pulls and to collectives of their program in one order, which
 * stores without servers need anyway.
 */
#ifndef MUSTER_KVSTORE_NODES_H
#define MUSTER_KVSTORE_NODES_H

#include <stdatomic.h>

#include "kvstore/kv.h"

/*
 * Who pushes parts to a server end: one worker, or the workers of a node that reduces, part by part
 * in turn. Workers in their order.
 */
struct mu_kv_group {
	const size_t *workers;
	size_t n, turn;
};

/* The worker that pushes the server end's part of this number, and gets it back. */
static inline size_t mu_kv_leader(const struct mu_kv_group *g, size_t number)
{
	return g->workers[(number + g->turn) % g->n];
}

/* kv->nodes. The same on every rank. */
enum mu_status mu_kv_nodes_open(struct mu_kv *kv, enum mu_kv_node node);
void mu_kv_nodes_close(struct mu_kv_nodes *nodes);
/* The group of worker w towards server end s. */
struct mu_kv_group mu_kv_group_of(const struct mu_kv *kv, size_t w, int s);

/* ---- routes, on workers (route.c) ---- */

/* How a part gets from this worker to its server end and back. */
enum mu_kv_way {
	MU_KV_WAY_OWN,    /* by calls: the server end is this rank's */
	MU_KV_WAY_SHARED, /* in memory that this worker shares with the server end */
	MU_KV_WAY_SEND,   /* in messages, to the server end or to the leader of the part */
	MU_KV_WAY_LEAD,   /* this worker adds up the gradients of its node and sends the sum */
	MU_KV_WAY_LED,    /* another worker of the node does; both ways in shared memory */
	MU_KV_WAY_GPU,    /* another worker of the node pushes the sum of all GPUs */
};

/* Of a part of the plan; made once, when the store is. */
struct mu_kv_route {
	enum mu_kv_way way;
	int rank;      /* that messages go to and come from: the server's, or the leader's */
	size_t leader; /* LED: which of the node's workers leads the part */
};

/* kv->worker's groups and routes. After its near[]. */
enum mu_status mu_kv_routes_open(struct mu_kv *kv);
/* The requests of its parts: of a bucket first those that are sent when it is pushed, then those
 * that wait for the node's other workers. */
enum mu_status mu_kv_routes_requests(struct mu_kv *kv);

/* ---- leaders, on workers (node_leader.c) ---- */

/* What a worker sees of one of its node, itself too; by messages of itself only. Counters are by
 * bucket. */
struct mu_kv_neighbour {
	const float *gradients; /* flat array */
	_Atomic uint64_t *pushed, *back;
};

/* What the messages of a leader need. "Pairs" are parts that it leads with each other worker. */
struct mu_kv_relay {
	size_t n_others, n_pairs;
	size_t *first; /* by bucket: its first part that this worker leads; and their number */
	float *memory;
	float **inboxes;                /* by pair: the gradients */
	MPI_Request *gathers, *spreads; /* by pair: gradients that come in, results that go on */
	uint64_t *spread;               /* by bucket: rounds in which its results began to go on */
	_Atomic uint64_t *counters;     /* of this worker: pushed and back, by bucket */
};

/* What a worker of a node that reduces knows of it. n = 0: the node does not reduce. */
struct mu_kv_lead {
	size_t n, me; /* workers of the node, and which of them this is */
	const size_t *workers;
	struct mu_kv_neighbour *all;
	struct mu_kv_relay *relay;    /* NULL: the node shares memory */
	uint64_t *sent;               /* by bucket: rounds in which this worker's parts left */
	size_t n_unsent, n_under_way; /* buckets in this round of which it leads parts */
	const float **sources;
	float *block; /* MU_KV_BLOCK elements */
};

enum mu_status mu_kv_lead_open(struct mu_kv *kv);
void mu_kv_lead_close(struct mu_kv_lead *lead);
/* Wake the other workers of the node. */
void mu_kv_lead_wake(const struct mu_kv *kv);
enum mu_status mu_kv_lead_begin(struct mu_kv *kv);
/* This worker's gradients of the bucket are ready. */
enum mu_status mu_kv_lead_push(struct mu_kv *kv, size_t bucket);
/* Send what all workers of the node have pushed, and tell them what is back; *n is how many buckets
 * that was. */
enum mu_status mu_kv_lead_poll(struct mu_kv *kv, int *n);
/* Is this part of the plan, which another worker leads or this one, back? */
bool mu_kv_lead_is_back(const struct mu_kv *kv, size_t bucket, size_t part);
/* Has the i-th worker of the node pushed the bucket in this round? */
bool mu_kv_lead_has_pushed(const struct mu_kv *kv, size_t i, size_t bucket);

/* ---- the messages of a leader (leader_messages.c) ---- */

/* kv->worker->lead.relay, after all else of it. */
enum mu_status mu_kv_relay_open(struct mu_kv *kv);
void mu_kv_relay_close(struct mu_kv_relay *relay);
/* Receive the others' gradients of a round. */
enum mu_status mu_kv_relay_begin(struct mu_kv_relay *relay);
/* Are the others' gradients of the bucket's parts that this worker leads here? */
enum mu_status mu_kv_relay_gathered(struct mu_kv *kv, size_t bucket, int *all);
/* Are those of the i-th worker of the node? For reports. */
bool mu_kv_relay_has_come(const struct mu_kv *kv, size_t i, size_t bucket);
/* Where they lie, of the k-th part that this worker leads; i is not this worker. */
const float *mu_kv_relay_gradients(const struct mu_kv_lead *l, size_t k, size_t i);
/* The results of the bucket are back: begin to pass them on, and ask whether all have taken them.
 */
enum mu_status mu_kv_relay_spread(struct mu_kv *kv, size_t bucket, int *done);
/* Has the i-th worker of the node taken what was passed on to it? For reports. */
bool mu_kv_relay_has_taken(const struct mu_kv *kv, size_t i, size_t bucket);

#endif
