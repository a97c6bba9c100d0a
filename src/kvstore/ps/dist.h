/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to kvstore: the two ends of a store with servers.
 */
#ifndef MUSTER_KVSTORE_DIST_H
#define MUSTER_KVSTORE_DIST_H

#include "coded.h"
#include "comm/requests.h"
#include "kvstore/kv.h"
#include "shared_memory.h"
#include "wire.h"

static inline int mu_kv_part_tag(size_t part)
{
	return WIRE_TAG_PART + mu_count(part);
}

/* ---- worker end (worker.c, worker_wait.c): for struct mu_kv_ops ---- */

/* Requests: for remote servers, which share no memory with it, and for the parts that this worker
 * itself sends (see nodes.h). */
struct mu_kv_worker {
	struct mu_kv_route *routes;  /* by part of the plan */
	struct mu_kv_group *groups;  /* of this worker, one per server end */
	MPI_Request *pushes, *pulls; /* one per part, bucket by bucket */
	size_t *first;     /* by bucket: index of its first request; then the number of requests */
	size_t *first_sum; /* by bucket: its first request of a sum that this worker sends */
	struct mu_kv_leader leader;    /* of its node, if the node reduces */
	MPI_Request *orders, *answers; /* one per server */
	size_t n_parts, n_remote;      /* numbers of requests: by part, by server */
	struct mu_kv_shm *shm;         /* one per server */
	struct mu_kv_pipe **pipes;     /* memory of shm[].others */
	struct wire_order order;       /* of this step, the same for all servers */
	struct wire_answer *received;  /* one per server */
	uint64_t rounds;               /* times that the worker asked for all parts */
	bool asked;                    /* orders are sent, answers not yet received */
	size_t last;                   /* the push that began last */
	struct mu_kv_coded_worker coded;
};

void mu_kv_worker_close(struct mu_kv_worker *w);
enum mu_status mu_kv_worker_init(struct mu_kv *kv);
enum mu_status mu_kv_worker_step_begin(struct mu_kv *kv);
enum mu_status mu_kv_worker_push(struct mu_kv *kv, size_t bucket);
enum mu_status mu_kv_worker_poll(struct mu_kv *kv);
enum mu_status mu_kv_worker_pull(struct mu_kv *kv, size_t bucket);
enum mu_status mu_kv_worker_step_end(struct mu_kv *kv);
/* Wait for the answers to this step's order. *count: samples of its update, of all workers. */
enum mu_status mu_kv_worker_answers(struct mu_kv *kv, double *count);
enum mu_status mu_kv_worker_fetch(struct mu_kv *kv);
/* Ask the servers for the samples that they have counted: sets the progress. Outside a step. */
enum mu_status mu_kv_worker_ask(struct mu_kv *kv);
enum mu_status mu_kv_worker_finish(struct mu_kv *kv);
/*
 * Loads or saves kv->saved.states, from or to all servers (states.c). The worker's own server end
 * works meanwhile. barrier: then wait for all workers; collective over workers.
 */
enum mu_status mu_kv_worker_states(struct mu_kv *kv, enum wire_kind kind, bool barrier);

/* ---- server end (server.c, server_parts.c) ---- */

/* Elements that are summed, updated and copied at a time: they fit into the first cache. */
#define MU_KV_BLOCK ((size_t)2048)

/* Sums over workers (sum_order.c). */
struct mu_kv_sum {
	size_t n_nodes;   /* that have workers */
	size_t n_workers; /* whose inboxes hold gradients, or a node's sum */
	size_t *workers, *first;
	const float **sources, **partials;
	float *blocks;
};

/* A server's view of a worker. */
struct mu_kv_peer {
	struct wire_order order;   /* buffer of the receive */
	struct wire_answer answer; /* buffer of the send */
	struct wire_counts counts; /* buffer of either, with the states */
	enum wire_kind doing;
	size_t parts_left;    /* of this order; 0 = it is done */
	struct mu_kv_shm shm; /* on this node; self has shm.gradients, too */
	size_t slot;          /* index among the remote workers, if it is one */
	size_t inbox;         /* if so: where its gradients, or its node's sums, arrive */
	uint64_t step;
	double count, lr;   /* of its step */
	double seen;        /* dist_async: pushes of all workers that its weights include */
	size_t parts_here;  /* dist_async: received parts of its step */
	uint64_t pushed;    /* dist_async: steps whose gradients are complete */
	double waits_since; /* when its gradients were complete, while its answer waits */
	bool waiting;       /* its order is here, its answer waits for other workers */
	bool answered;      /* its order is answered */
	bool finished;
};

/* Shards of gradients (shards.c): all NULL without. */
struct mu_kv_shards {
	struct mu_kv_slots slots; /* of the inbox of a source */
	size_t *first;		  /* by bucket: its first part; then their number */
	size_t *left;		  /* by bucket: parts that are not summed in this round */
	uint64_t *taken;	  /* by part: times that its gradients were summed */
	float *sums;		  /* for norms: n elements */
};

/* Who pushes to a server end. Remote workers send messages; the others share memory with it. */
struct mu_kv_sources {
	size_t n_workers;
	struct mu_kv_peer *peers; /* by worker */
	size_t n_remote;          /* remote workers, whose messages have requests */
	size_t *remote;           /* their numbers */
	size_t n, n_inboxes;
	struct mu_kv_group *groups; /* n; the first n_inboxes are remote */
};

/* What a server end holds of the model. */
struct mu_kv_held {
	size_t n_parts, n;        /* parts and elements */
	struct mu_kv_part *parts; /* in the order of the plan */
	struct mu_optim *optim;   /* piece p is part p; NULL: workers want the sums alone */
	struct mu_kv_norms norms; /* among the servers of a synchronous store */
	float *flat;              /* the results that the workers of its node share, or NULL */
	float *weights;           /* else n of its own */
	uint64_t *updates;        /* by part: number of updates */
};

/* What remote sources send, and what has come of it. */
struct mu_kv_arrivals {
	float *inbox;      /* n_inbox per remote source: gradients */
	size_t n_inbox;    /* n, or with shards less */
	float *outbox;     /* n per remote source: weights in flight, dist_async only */
	bool *arrived;     /* by part and worker: pushed, not yet used */
	size_t *n_arrived; /* by part: sources */
	bool *withheld;    /* bounded dist_async, by part and worker: used, not yet answered */
};

/*
 * Persistent requests of remote workers. Polled: orders by worker, then gradients by part and
 * source. (None of them is null: MPICH 4.0.2 fails if some of more than 64 are.) The others are
 * waited for before they are used again; by then they have long been complete.
 */
struct mu_kv_server_requests {
	MPI_Request *orders, *pushes;
	MPI_Request *answers, *pulls;
	int *completed; /* indices from MPI_Testsome */
};

/* dist_sync: the round. */
struct mu_kv_round {
	size_t n_waiting; /* workers whose order is here */
	bool look;        /* there may be a complete part that is not yet updated */
	size_t left;      /* parts of the round not yet updated; 0 = no round is open */
	bool whole_due;   /* all are summed and wait for finish_round */
	double count, lr;
};

/*
 * The server end of a rank. A worker that hosts one calls it, without messages. It shares memory
 * with the workers of its node (shared_memory.h) and uses their gradients in place.
 */
struct mu_kv_server {
	struct mu_kv *kv;
	const struct mu_kv_policy *policy;
	int index;   /* which server this is */
	size_t self; /* the worker of this rank; n_workers if there is none */
	struct mu_kv_sources from;
	struct mu_kv_held held;
	struct mu_kv_arrivals arrivals;
	struct mu_kv_server_requests requests;
	struct mu_kv_sum sum;
	struct mu_kv_shards shards;
	struct mu_kv_coded_server coded;
	bool started, stopped;
	size_t n_finished;
	/* See notice.h: the largest so far, and the one in answers, which is of the last round. */
	uint64_t notice, answer_notice;
	struct wire_staleness stale; /* dist_async */
	struct mu_kv_round round;
};

/* ---- staleness of dist_async (staleness.c) ---- */

/* Is worker w too many steps ahead of another one to be answered now? */
bool mu_kv_staleness_is_ahead(const struct mu_kv_server *s, size_t w);
/* Do other workers wait for worker w? */
bool mu_kv_staleness_delays_others(const struct mu_kv_server *s, size_t w);
/* Counts the staleness of worker w's push, of which a first part is here. */
void mu_kv_staleness_count(struct mu_kv_server *s, size_t w);
/* Sets kv->staleness from the servers' last answers. */
void mu_kv_staleness_gather(struct mu_kv *kv, const struct wire_answer *answers);

/* When a server updates: sync.c, async.c. */
struct mu_kv_policy {
	bool needs_outbox;
	/* Worker w's order of a step has arrived. */
	enum mu_status (*step)(struct mu_kv_server *s, size_t w);
	/* The gradients of part p of worker w, or of its node, have arrived, maybe before its
	 * order. */
	enum mu_status (*part)(struct mu_kv_server *s, size_t p, size_t w);
	/*
	 * All arrived messages are handled: update one complete part, if there is one. *more: poll
	 * messages and call this again. NULL: nothing waits for this.
	 */
	enum mu_status (*next)(struct mu_kv_server *s, bool *more);
	/* Worker w wants the newest weights. */
	enum mu_status (*pull)(struct mu_kv_server *s, size_t w);
	/* Worker w has finished. */
	enum mu_status (*finish)(struct mu_kv_server *s, size_t w);
	/* The worker of a hosted end waits for weights: update what had to wait for that. */
	enum mu_status (*finish_round)(struct mu_kv_server *s);
	/* A larger notice has arrived. NULL: it can wait for the next round. */
	enum mu_status (*notice)(struct mu_kv_server *s);
};

extern const struct mu_kv_policy mu_kv_policy_sync;
extern const struct mu_kv_policy mu_kv_policy_async;

enum mu_status mu_kv_server_open(struct mu_kv *kv, const struct mu_kv_config *config,
				 const struct mu_kv_policy *policy);
void mu_kv_server_close(struct mu_kv_server *s);
/* What depends on the parts that it holds (server_parts.c). */
enum mu_status mu_kv_server_parts_open(struct mu_kv_server *s, const struct mu_kv_config *config);
void mu_kv_server_parts_close(struct mu_kv_server *s);
/* The ends of this rank: a server's, a worker's, or both (worker.c). */
enum mu_status mu_kv_ends_open(struct mu_kv *kv, const struct mu_kv_config *config,
			       const struct mu_kv_policy *policy);
enum mu_status mu_kv_server_serve(struct mu_kv *kv);

/* A hosted end, called by its worker: start, then poll as often as possible until all finished. */
enum mu_status mu_kv_server_start(struct mu_kv_server *s);
/* Handles the messages that have arrived. *n: their number. */
enum mu_status mu_kv_server_poll(struct mu_kv_server *s, int *n);
/* Sets the first weights, from a flat array. */
void mu_kv_server_set_weights(struct mu_kv_server *s, const float *weights);
/* An order of the worker of this rank; its gradients of part p. */
enum mu_status mu_kv_server_order(struct mu_kv_server *s, const struct wire_order *order);
enum mu_status mu_kv_server_part(struct mu_kv_server *s, size_t p);

/* ---- shards of gradients (shards.c) ---- */

/* s->arrivals.n_inbox, and s->shards. After s->held.parts, before the memory. */
enum mu_status mu_kv_server_shards_open(struct mu_kv_server *s);
void mu_kv_server_shards_close(struct mu_kv_shards *shards);
/* Starts the first receives. */
enum mu_status mu_kv_server_shards_start(struct mu_kv_server *s);
/* Part p of all sources is summed: receive what comes next. */
enum mu_status mu_kv_server_shards_taken(struct mu_kv_server *s, size_t p);
/* Has the server end, or this node's leader, summed this worker's gradients of a part of the plan?
 * Of parts that it sends the requests show it. */
bool mu_kv_part_is_taken(const struct mu_kv *kv, size_t bucket, size_t p);
/* worker.c */
enum mu_status mu_kv_worker_taken(struct mu_kv *kv, size_t bucket);

/* ---- states, for checkpoints (states.c) ---- */

/* Messages of kv->saved.states with all servers, in the order in which these send or receive. */
struct mu_kv_transfer {
	MPI_Request *requests;
	size_t n;
	struct wire_counts *counts; /* one per server, or one */
};

/* Starts the messages of kv->saved.states with all servers on other ranks. */
enum mu_status mu_kv_transfer_begin(struct mu_kv *kv, enum wire_kind kind,
				    struct mu_kv_transfer *p);
/* They are complete: sets the counts in kv->saved.states. */
void mu_kv_transfer_end(struct mu_kv *kv, enum wire_kind kind, const struct mu_kv_transfer *p);
void mu_kv_transfer_release(struct mu_kv_transfer *p);
/* Worker w's order to save or to load; the caller answers it. */
enum mu_status mu_kv_server_states(struct mu_kv_server *s, size_t w);

/* ---- sums (sum_order.c) ---- */

enum mu_status mu_kv_sum_init(struct mu_kv_sum *sum, const struct mu_kv *kv);
void mu_kv_sum_release(struct mu_kv_sum *sum);
/*
 * The sum of all workers' gradients: elements [from, from + n) of part p, at most MU_KV_BLOCK.
 * Valid until the next call.
 */
const float *mu_kv_sum_block(struct mu_kv_server *s, size_t p, size_t from, size_t n);
/* Sums a whole part into out, which may be one worker's inbox. */
void mu_kv_sum_part(struct mu_kv_server *s, size_t p, float *out);

/* Is server end s on this rank? */
static inline bool mu_kv_is_own(const struct mu_kv *kv, int s)
{
	return mu_kv_server_rank(kv, s) == kv->members->rank;
}

/* Does this worker send messages to server end s: orders, and first weights? */
static inline bool mu_kv_sends_to(const struct mu_kv *kv, int s)
{
	return !mu_kv_is_own(kv, s) && !kv->ends.worker->shm[s].pipe;
}

/* Number of requests: orders (or answers), and one per part and remote source. */
static inline size_t mu_kv_server_requests(const struct mu_kv_server *s)
{
	return s->from.n_remote + s->from.n_inboxes * s->held.n_parts;
}

/* The worker that pushes part p of source i. */
static inline size_t mu_kv_source(const struct mu_kv_server *s, size_t p, size_t i)
{
	return mu_kv_group_leader(&s->from.groups[i], p);
}

/* Does worker w send messages to this server end? */
static inline bool mu_kv_is_remote(const struct mu_kv_server *s, size_t w)
{
	return !s->from.peers[w].shm.gradients;
}

/* Index in pushes and pulls of part p and remote worker w. */
static inline size_t mu_kv_request(const struct mu_kv_server *s, size_t p, size_t w)
{
	return p * s->from.n_inboxes + s->from.peers[w].inbox;
}

/* Worker w's gradients of part p, or its node's sum of them. */
static inline float *mu_kv_inbox(const struct mu_kv_server *s, size_t p, size_t w)
{
	if (!mu_kv_is_remote(s, w))
		return s->from.peers[w].shm.gradients + s->held.parts[p].gradient;
	return s->arrivals.inbox + s->from.peers[w].inbox * s->arrivals.n_inbox +
	       s->held.parts[p].inbox;
}

/* dist_async: the weights of part p that worker w has, or receives next. */
static inline float *mu_kv_outbox(const struct mu_kv_server *s, size_t p, size_t w)
{
	if (!mu_kv_is_remote(s, w))
		return s->from.peers[w].shm.results + s->held.parts[p].at;
	return s->arrivals.outbox + s->from.peers[w].inbox * s->held.n + s->held.parts[p].local;
}

/* This server's results of part p: weights, or sums. */
static inline float *mu_kv_held(const struct mu_kv_server *s, size_t p)
{
	return s->held.flat ? s->held.flat + s->held.parts[p].at
			    : s->held.weights + s->held.parts[p].local;
}

/* The gradients of part p of worker w are used: receive the next. */
enum mu_status mu_kv_server_receive_next(struct mu_kv_server *s, size_t p, size_t w);
/* Sends part p to worker w and wakes it, or waits until the last send of the part is complete: it
 * long is, or the worker would not have pushed. */
enum mu_status mu_kv_server_send_part(struct mu_kv_server *s, size_t p, size_t w);
enum mu_status mu_kv_server_wait_sent(struct mu_kv_server *s, size_t p, size_t w);
/* A notice of a worker, or of this rank: see notice.h. */
enum mu_status mu_kv_server_notice(struct mu_kv_server *s, uint64_t notice);
/* Answers worker w's order: samples and learning rate. */
enum mu_status mu_kv_server_answer(struct mu_kv_server *s, size_t w, double lr);

#endif
