/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to kvstore: the workers of a node send one sum of their gradients to other nodes.
 *
 * A node reduces if it has two or more workers, there are other nodes, and the store is synchronous
 * and does not compress (every worker then keeps a residual of its own). Each part of the gradients
 * for a server end on another node has a leader, one of the node's workers. The leader adds the
 * gradients of all workers of the node, in the order of workers, sends the sum, and receives the
 * result. (Several leaders per node: Kandalla et al., Designing multi-leader-based Allgather
 * algorithms for multi-core clusters, IPDPS workshops 2009.) The workers lead parts in turn, so
 * that all of them use the network at once. Every worker sends its own orders and receives its own
 * answers.
 *
 * With shared memory the leader reads the other workers' gradients in place, and receives the
 * result into the array of results that the node's workers share. A worker has counters per
 * bucket there: rounds in which it has pushed the bucket, and rounds in which it has received the
 * parts that it leads. The last worker to push wakes the leaders; a leader wakes the others when it
 * has received its parts. A third counter, for shards of gradients, is of rounds in which it has
 * summed them.
 *
 * Without shared memory (leader_messages.c) a worker sends its gradients of a part to the leader
 * with the tag of a message to the server end, and receives the result from the leader likewise.
 * The leader has its own counters only: a bucket is back when all others have received it.
 *
 * Where GPUs sum (gpu/node.c) a worker has only the sums of the parts that it leads, and pushes
 * those, also to server ends of its node. The worker that holds a server end leads all parts of
 * this end. The other workers get the result from its GPUs.
 *
 * A leader works whenever its worker calls the store: at pushes, in mu_kv_poll, and in every wait
 * for servers. A worker may wait for a worker of its node that is still in backward: that one
 * pushes and polls. After its pull of a bucket a worker is not needed for this bucket. So there is
 * no deadlock if workers reach pulls and collectives of their program in one order, which stores
 * without servers need anyway.
 */
#ifndef MUSTER_KVSTORE_NODES_H
#define MUSTER_KVSTORE_NODES_H

#include <stdatomic.h>

#include "kvstore/kv.h"

/*
 * The workers that push parts to a server end: one worker, or those of a node that reduces, which
 * lead parts in turn. In the order of workers.
 */
struct mu_kv_group {
	const size_t *workers;
	size_t n, turn;
};

/* The worker that pushes and pulls the server end's part of this number. */
static inline size_t mu_kv_group_leader(const struct mu_kv_group *g, size_t number)
{
	return g->workers[(number + g->turn) % g->n];
}

/* kv->nodes. The same on every rank. */
enum mu_status mu_kv_nodes_open(struct mu_kv *kv, enum mu_kv_node node);
/* Node of a worker, and of a server end. */
int mu_kv_worker_node(const struct mu_kv *kv, size_t w);
int mu_kv_server_node(const struct mu_kv *kv, int s);
void mu_kv_nodes_close(struct mu_kv_nodes *nodes);
/* The group of worker w for server end s. */
struct mu_kv_group mu_kv_group_of(const struct mu_kv *kv, size_t w, int s);

/* ---- routes, on workers (route.c) ---- */

/* How a part travels between this worker and its server end. */
enum mu_kv_route_kind {
	MU_KV_ROUTE_OWN,    /* by calls: this rank holds the server end */
	MU_KV_ROUTE_SHARED, /* in memory shared with the server end */
	MU_KV_ROUTE_SEND,   /* in messages, to the server end or to the part's leader */
	MU_KV_ROUTE_LEADER, /* this worker sums the gradients of its node and sends the sum */
	MU_KV_ROUTE_MEMBER, /* another worker leads the part; both ways in shared memory */
	MU_KV_ROUTE_GPU,    /* another worker of the node pushes the sum of all GPUs */
};

/* Of a part of the plan; computed once, when the store is opened. */
struct mu_kv_route {
	enum mu_kv_route_kind kind;
	int rank;      /* peer of the messages: the server's rank, or the leader's */
	size_t leader; /* MEMBER: which of the node's workers leads the part */
};

/* kv->ends.worker's groups and routes. After its shm[]. */
enum mu_status mu_kv_routes_open(struct mu_kv *kv);
/* The requests of its parts: of a bucket first those that are sent when it is pushed, then those
 * that wait for the node's other workers. */
enum mu_status mu_kv_routes_requests(struct mu_kv *kv);

/* ---- leaders, on workers (node_leader.c) ---- */

/* A worker of the node as this one sees it; without shared memory only itself. Counters are by
 * bucket. */
struct mu_kv_neighbour {
	const float *gradients; /* flat array */
	_Atomic uint64_t *pushed, *back, *summed;
};

/* The messages of a leader. A pair is a part that it leads and another worker of the node. */
struct mu_kv_leader_messages {
	size_t n_others, n_pairs;
	size_t n; /* elements of memory */
	size_t *first; /* by bucket: the first part that this worker leads; then their number */
	float *memory;
	float **inboxes;                 /* by pair: gradients */
	MPI_Request *gathers, *forwards; /* by pair: receives of gradients, sends of results */
	uint64_t *forwarded;             /* by bucket: rounds in which sends of its results began */
	_Atomic uint64_t *counters;      /* of this worker: pushed, back and summed, by bucket */
};

/* A worker as a leader of its node. n = 0: the node does not reduce. */
struct mu_kv_leader {
	size_t n, me; /* workers of the node; index of this one */
	const size_t *workers;
	struct mu_kv_neighbour *all;
	struct mu_kv_leader_messages *messages; /* NULL: the node shares memory */
	uint64_t *sent;               /* by bucket: rounds in which this worker sent its sums */
	size_t n_unsent, n_in_flight; /* buckets with parts that it leads, in this round */
	const float **sources;
	float *block; /* MU_KV_BLOCK elements */
};

enum mu_status mu_kv_leader_open(struct mu_kv *kv);
void mu_kv_leader_close(struct mu_kv_leader *leader);
/* Wake the other workers of the node. */
void mu_kv_leader_wake(const struct mu_kv *kv);
enum mu_status mu_kv_leader_begin(struct mu_kv *kv);
/* Call it when this worker's gradients of the bucket are ready. */
enum mu_status mu_kv_leader_push(struct mu_kv *kv, size_t bucket);
/* Sends the sums of buckets that the whole node has pushed, and forwards received results. *n: the
 * number of such buckets. */
enum mu_status mu_kv_leader_poll(struct mu_kv *kv, int *n);
/* Has the leader of this part of the plan received the result? */
bool mu_kv_leader_is_back(const struct mu_kv *kv, size_t bucket, size_t part);
/* Shards: has the leader of this part of the plan summed the node's gradients? */
bool mu_kv_leader_has_summed(const struct mu_kv *kv, size_t bucket, size_t part);
/* Has the i-th worker of the node pushed the bucket in this round? */
bool mu_kv_leader_has_pushed(const struct mu_kv *kv, size_t i, size_t bucket);

/* ---- the messages of a leader (leader_messages.c) ---- */

/* kv->ends.worker->leader.messages, after its other members. */
enum mu_status mu_kv_leader_messages_open(struct mu_kv *kv);
void mu_kv_leader_messages_close(struct mu_kv_leader_messages *messages);
/* Start the receives of the others' gradients of a round. */
enum mu_status mu_kv_leader_messages_begin(struct mu_kv_leader_messages *messages);
/* Has this worker received the others' gradients of the parts of a bucket that it leads? */
enum mu_status mu_kv_leader_gathered(struct mu_kv *kv, size_t bucket, int *all);
/* The same of the node's i-th worker alone, for reports. */
bool mu_kv_leader_has_received(const struct mu_kv *kv, size_t i, size_t bucket);
/* Gradients that the i-th worker, not this one, sent of the k-th part that this one leads. */
const float *mu_kv_leader_inbox(const struct mu_kv_leader *l, size_t k, size_t i);
/* Starts sending the results of a bucket, which are here, to the others. *done: are the sends
 * complete? */
enum mu_status mu_kv_leader_forward(struct mu_kv *kv, size_t bucket, int *done);
/* The same of the node's i-th worker alone, for reports. */
bool mu_kv_leader_has_forwarded(const struct mu_kv *kv, size_t i, size_t bucket);

#endif
