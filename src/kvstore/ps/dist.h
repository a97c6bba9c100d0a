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

/* Requests exist for far servers only, which share no memory with it (see struct mu_kv_server), and
 * for the parts that this worker sends itself (see nodes.h). */
struct mu_kv_worker {
	struct mu_kv_route *routes;    /* by part of the plan */
	struct mu_kv_group *groups;    /* of this worker towards every server end */
	MPI_Request *pushes, *pulls;   /* one per part, bucket by bucket */
	size_t *first;                 /* by bucket: its first of these; and their number at last */
	size_t *led;                   /* by bucket: its first of a part that this worker leads */
	struct mu_kv_lead lead;        /* of parts that other workers of the node push, too */
	MPI_Request *orders, *answers; /* one per server */
	size_t n_parts, n_far;         /* of these: parts, servers */
	struct mu_kv_near *near;       /* one per server */
	struct mu_kv_pipe **pipes;     /* behind near[].others */
	struct wire_order order;       /* of this step, the same for all servers */
	struct wire_answer *received;  /* one per server */
	uint64_t rounds;               /* times that all parts came, or will come, back */
	bool asked;                    /* orders are sent, the answers not yet taken */
	size_t last;                   /* push that began last */
	struct mu_kv_coded_worker coded;
};

enum mu_status mu_kv_worker_open(struct mu_kv *kv);
void mu_kv_worker_close(struct mu_kv_worker *w);
enum mu_status mu_kv_worker_init(struct mu_kv *kv);
enum mu_status mu_kv_worker_step_begin(struct mu_kv *kv);
enum mu_status mu_kv_worker_push(struct mu_kv *kv, size_t bucket);
enum mu_status mu_kv_worker_poll(struct mu_kv *kv);
enum mu_status mu_kv_worker_pull(struct mu_kv *kv, size_t bucket);
enum mu_status mu_kv_worker_step_end(struct mu_kv *kv);
/* Wait for the answers to this step's order, if they are not yet here; then the samples behind its
 * update, over all workers, are *count. */
enum mu_status mu_kv_worker_answers(struct mu_kv *kv, double *count);
enum mu_status mu_kv_worker_fetch(struct mu_kv *kv);
/* Ask the servers for the samples that they have counted: kv->progress. Outside a step. */
enum mu_status mu_kv_worker_ask(struct mu_kv *kv);
enum mu_status mu_kv_worker_finish(struct mu_kv *kv);
/*
 * kv->states from or to all servers (states.c); meanwhile the own server end goes on. meet: then
 * wait until all workers are here, which is collective over them.
 */
enum mu_status mu_kv_worker_states(struct mu_kv *kv, enum wire_kind kind, bool meet);

/* ---- server end (server.c, server_parts.c) ---- */

/* Elements that are summed, updated and copied at a time, so that they stay in the first cache. */
#define MU_KV_BLOCK ((size_t)2048)

/* What a sum over workers needs (sum_order.c). */
struct mu_kv_sum {
	size_t n_nodes;   /* that have workers */
	size_t n_workers; /* whose places hold gradients, or a node's sum */
	size_t *workers, *first;
	const float **sources, **partials;
	float *blocks;
};

/* What a server knows of a worker. */
struct mu_kv_peer {
	struct wire_order order;   /* buffer of the receive */
	struct wire_answer answer; /* buffer of the send */
	enum wire_kind doing;
	size_t parts_left;      /* of what it is doing; 0 = nothing */
	struct mu_kv_near near; /* on this node; near.gradients: also those of self */
	size_t slot;            /* its place among the far workers, if it is one */
	size_t inbox;           /* then also: where its gradients, or its node's sums, come in */
	uint64_t step;
	double count, lr;   /* of its step */
	double seen;        /* dist_async: pushes by all workers that its weights hold */
	size_t parts_here;  /* dist_async: of its step */
	uint64_t pushed;    /* dist_async: steps whose gradients have all come */
	double waits_since; /* when the last of them came, and its answer waits for others */
	bool waiting;       /* its order is here, the answer must wait for others */
	bool answered;      /* its order is answered */
	bool finished;
};

/*
 * The server end of a rank. That of a worker (a hosted one) is called by this worker; nothing is
 * sent. With near workers (shared_memory.h), those of its node, it shares memory: their gradients
 * are used where they lie. Far workers send messages.
 */
struct mu_kv_server {
	struct mu_kv *kv;
	const struct mu_kv_policy *policy;
	int index;    /* which server this is */
	size_t self;  /* the worker of this rank; n_workers if there is none */
	size_t n_far; /* far workers, whose messages have requests */
	size_t *far;  /* which they are */
	size_t n_sources, n_inboxes;
	struct mu_kv_group *sources;  /* of every part; the first n_inboxes are far */
	size_t n_workers, n_parts, n; /* parts and elements that this server holds */
	struct mu_kv_part *parts;     /* its own, in the order of the plan */
	struct mu_optim *optim;       /* piece p is part p; NULL: the sums are all that is wanted */
	struct mu_kv_norms norms;     /* among the servers of a synchronous store */
	float *flat;                  /* the results that the workers of its node share; or NULL: */
	float *weights;               /* n of its own */
	float *inbox;                 /* n per far source: gradients */
	float *outbox;                /* n per far source: weights under way, dist_async only */
	struct mu_kv_sum sum;
	struct mu_kv_coded_server coded;
	struct mu_kv_peer *peers;

	/*
	 * Persistent requests. Those polled: orders by worker, then gradients by part and source;
	 * far ones only. (None of these arrays holds a null
	 * request: MPICH 4.0.2 fails where some in more than 64 are.)
	 * The others are waited for just before they are needed again, when they are long complete.
	 */
	MPI_Request *orders, *pushes;
	MPI_Request *answers, *pulls;
	int *completed;    /* indices from MPI_Testsome */
	bool *arrived;     /* by part and worker that pushed it: not yet used */
	size_t *n_arrived; /* by part: sources */
	uint64_t *updates; /* by part: how many there were */

	bool started, stopped;
	size_t n_finished;
	/* See notice.h: the largest word so far; what answers say: that of the last round. */
	uint64_t heard, word;
	struct wire_staleness stale; /* dist_async */
	bool *withheld; /* dist_async with a bound, by part and worker: used, not yet answered */

	/* dist_sync: the round. */
	size_t n_waiting;  /* workers whose order is here */
	bool look;         /* for complete parts: one may be there that is not yet updated */
	size_t round_left; /* parts of the round still to be updated; 0 = no round is open */
	bool whole_due;    /* all are summed, and to be updated together: see settle */
	double round_count, round_lr;
};

/* ---- staleness of dist_async (staleness.c) ---- */

/* Is worker w's step so far ahead of another worker that it must not be answered yet? */
bool mu_kv_staleness_is_ahead(const struct mu_kv_server *s, size_t w);
/* Are there workers that must wait for worker w? */
bool mu_kv_staleness_is_late(const struct mu_kv_server *s, size_t w);
/* Worker w's next push begins to arrive. */
void mu_kv_staleness_count(struct mu_kv_server *s, size_t w);
/* kv->staleness from the servers' last answers. */
void mu_kv_staleness_gather(struct mu_kv *kv, const struct wire_answer *answers);

/* What the kinds of server do differently. */
struct mu_kv_policy {
	bool needs_outbox;
	/* Worker w's order of a step is here. */
	enum mu_status (*step)(struct mu_kv_server *s, size_t w);
	/* Worker w's gradients of part p, or those of its node, are here, maybe before its order.
	 */
	enum mu_status (*part)(struct mu_kv_server *s, size_t p, size_t w);
	/*
	 * All messages that are here are taken: update one complete part, if there is one. Called
	 * again after another look at messages if *more. NULL: nothing waits for this.
	 */
	enum mu_status (*next)(struct mu_kv_server *s, bool *more);
	/* Worker w wants the newest weights. */
	enum mu_status (*pull)(struct mu_kv_server *s, size_t w);
	/* Worker w is done for good. */
	enum mu_status (*finish)(struct mu_kv_server *s, size_t w);
	/* The worker of a hosted end waits for weights: do what had to wait for that. */
	enum mu_status (*settle)(struct mu_kv_server *s);
	/* A larger word than before is heard. NULL: that can wait for the next round. */
	enum mu_status (*hear)(struct mu_kv_server *s);
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

/* The same for a hosted end, by its worker: begin, then as often as possible, until all finished.
 */
enum mu_status mu_kv_server_start(struct mu_kv_server *s);
/* Handle what has come; *n is how many messages that was. */
enum mu_status mu_kv_server_poll(struct mu_kv_server *s, int *n);
/* First weights, from a flat array of this node. */
void mu_kv_server_take(struct mu_kv_server *s, const float *weights);
/* An order of the worker of this rank, and its gradients of the p-th part here. */
enum mu_status mu_kv_server_order(struct mu_kv_server *s, const struct wire_order *order);
enum mu_status mu_kv_server_part(struct mu_kv_server *s, size_t p);

/* ---- states, for checkpoints (states.c) ---- */

/* Messages of kv->states, or of a server's own states: in the same order on both sides. */
struct mu_kv_parcel {
	MPI_Request *requests;
	size_t n;
	struct wire_counts *counts; /* one per server, or one */
};

/* Begin the messages of kv->states with all servers but the own one. */
enum mu_status mu_kv_parcel_begin(struct mu_kv *kv, enum wire_kind kind, struct mu_kv_parcel *p);
/* They are done: take what has come in beside the arrays. */
void mu_kv_parcel_end(struct mu_kv *kv, enum wire_kind kind, const struct mu_kv_parcel *p);
void mu_kv_parcel_release(struct mu_kv_parcel *p);
/* Worker w's order to save or to load. */
enum mu_status mu_kv_server_states(struct mu_kv_server *s, size_t w);

/* ---- sums (sum_order.c) ---- */

enum mu_status mu_kv_sum_init(struct mu_kv_sum *sum, const struct mu_kv *kv);
void mu_kv_sum_release(struct mu_kv_sum *sum);
/*
 * The sum of all workers' gradients: n elements of part p, at most MU_KV_BLOCK, the first of them
 * at from. Valid until the next call.
 */
const float *mu_kv_sum_block(struct mu_kv_server *s, size_t p, size_t from, size_t n);
/* The same of a whole part into out, which may be the place of one worker's gradients. */
void mu_kv_sum_part(struct mu_kv_server *s, size_t p, float *out);

/* For policies. */

/* Is server end s the one of this rank? A worker calls its own, and sends it nothing. */
static inline bool mu_kv_is_own(const struct mu_kv *kv, int s)
{
	return kv->server_ranks[s] == kv->topology->rank;
}

/* Does a worker send server end s messages: orders, and first weights? */
static inline bool mu_kv_sends_to(const struct mu_kv *kv, int s)
{
	return !mu_kv_is_own(kv, s) && !kv->worker->near[s].pipe;
}

/* Orders, or answers, of a server, and one for every part and far source. */
static inline size_t mu_kv_server_requests(const struct mu_kv_server *s)
{
	return s->n_far + s->n_inboxes * s->n_parts;
}

/* The worker that pushes part p of source i. */
static inline size_t mu_kv_source(const struct mu_kv_server *s, size_t p, size_t i)
{
	return mu_kv_leader(&s->sources[i], p);
}

/* Does worker w send messages? */
static inline bool mu_kv_is_far(const struct mu_kv_server *s, size_t w)
{
	return !s->peers[w].near.gradients;
}

/* The request of part p and far worker w, in pushes and pulls. */
static inline size_t mu_kv_request(const struct mu_kv_server *s, size_t p, size_t w)
{
	return p * s->n_inboxes + s->peers[w].inbox;
}

/* Worker w's gradients of part p, or its node's sum of them. */
static inline float *mu_kv_inbox(const struct mu_kv_server *s, size_t p, size_t w)
{
	if (!mu_kv_is_far(s, w))
		return s->peers[w].near.gradients + s->parts[p].at;
	return s->inbox + s->peers[w].inbox * s->n + s->parts[p].local;
}

/* dist_async: what worker w has, or gets next, of part p. */
static inline float *mu_kv_outbox(const struct mu_kv_server *s, size_t p, size_t w)
{
	if (!mu_kv_is_far(s, w))
		return s->peers[w].near.results + s->parts[p].at;
	return s->outbox + s->peers[w].inbox * s->n + s->parts[p].local;
}

/* What this server holds of part p. */
static inline float *mu_kv_held(const struct mu_kv_server *s, size_t p)
{
	return s->flat ? s->flat + s->parts[p].at : s->weights + s->parts[p].local;
}

/*
 * The gradients of part p of this worker are used: forget that they are here and receive the next.
 */
enum mu_status mu_kv_server_reuse(struct mu_kv_server *s, size_t p, size_t w);
/* Part p is back for worker w: let it go, and wake the worker. forget waits until MPI has done
 * with the last time, which is long ago: the worker could not have pushed else. */
enum mu_status mu_kv_server_return(struct mu_kv_server *s, size_t p, size_t w);
enum mu_status mu_kv_server_forget(struct mu_kv_server *s, size_t p, size_t w);
/* A word of a worker, or of this rank: see notice.h. */
enum mu_status mu_kv_server_hear(struct mu_kv_server *s, uint64_t word);
/* Tell worker w what the samples and the learning rate are. */
enum mu_status mu_kv_server_answer(struct mu_kv_server *s, size_t w, double lr);

#endif
