/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private: the owner's end of a store of keys. It is polled, so a rank that does other
 * things too can own keys: a server does nothing else (mu_keys_serve), a worker may poll while it
 * waits. What comes is in keys/server.c, rounds in round.c, what goes in answer.c.
 */
#ifndef MUSTER_KEYS_SERVING_H
#define MUSTER_KEYS_SERVING_H

#include "store.h"
#include "wire.h"

/* ---- for the face and the worker's end ---- */

/* Make keys->server. Not collective; it answers from the first poll on. */
enum mu_status mu_keys_server_open(struct mu_keys *keys, const struct mu_keys_config *config);
void mu_keys_server_close(struct mu_keys *keys);
/*
 * Handle what has come for any open store that this rank owns keys of; *n: how many messages that
 * was, without those that ask whether a round has closed: they are no progress. Stores may be used
 * in turns, so a rank that waits in one of them answers for all. An error is one of MPI or memory.
 */
enum mu_status mu_keys_servers_poll(int *n);
/* The context is a struct mu_keys_server: workers whose pushes others wait for. */
mu_awaited_fn mu_keys_late_workers;
/* All workers have finished and have their answers. */
bool mu_keys_server_is_done(const struct mu_keys_server *s);
/* Then: the last answers have left. */
enum mu_status mu_keys_server_end(struct mu_keys_server *s);

/* ---- between the owner's files ---- */

/* A worker's part of a round that is here and not yet used. Its data follow it in memory. */
struct mu_keys_gradient {
	_Alignas(MU_ALIGN) struct mu_keys_gradient *next;
	struct mu_source source;
	bool rows; /* never compressed */
};

/* What a worker has pushed to a run, and what it waits for. */
struct mu_keys_queue {
	struct mu_keys_gradient *first, *last;
	uint64_t pushed;
	size_t waiting; /* item of its call + 1 that wants the value after its last push; 0 = none
			 */
	uint64_t asked; /* it waits for this round to close, and asks now and then; 0 = none */
};

/* A run of a key that this rank owns. */
struct mu_keys_run {
	struct mu_owned owned;
	struct mu_keys_queue *queues; /* one per worker */
	size_t n_here;                /* workers whose next gradient is here */
	size_t n_sends;               /* answers on their way out of owned.weights */
};

/* The connection to a worker, and its call that is under way. */
struct mu_keys_conn {
	size_t worker;
	int rank;
	char *head, *answer; /* KEYS_HEAD_BYTES each */
	enum keys_op op;
	bool busy;     /* a call has begun, and is not answered, or not complete */
	bool received; /* all of it is here */
	bool answered; /* an answer is wanted */
	bool finished;
	size_t n_items, n_receiving, n_unready;
	struct keys_item *items; /* KEYS_MAX_ITEMS */
	void **data;             /* of items: numbers of rows that are wanted, of the pool */
	size_t *left;            /* of items: messages that are still to come */
	char *sent;              /* of items: their value is sent; KEYS_MAX_ITEMS: the body */
	char *body;              /* of the pool, or in the head */
	size_t body_bytes, body_left;
	bool body_is_ours;
};

struct mu_keys_receive {
	size_t worker, item; /* KEYS_MAX_ITEMS: the body */
};

struct mu_keys_send {
	void *buffer;            /* of the pool, given back after it; NULL = none */
	struct mu_keys_run *run; /* whose weights are sent; NULL = none */
};

struct mu_keys_server {
	struct mu_keys *keys;
	struct mu_keys_server *next; /* open store of this rank */
	struct mu_owner owner;
	struct mu_keys_run **runs; /* by part; NULL = another owner's */
	size_t n_runs, max_runs;
	size_t n_workers;
	struct mu_keys_conn *conns;
	struct mu_source *sources; /* of a round */
	MPI_Request *heads;        /* one per worker, persistent */
	MPI_Request *answers;      /* one per worker */
	MPI_Request *receives, *sends;
	struct mu_keys_receive *receiving;
	struct mu_keys_send *sending;
	size_t n_receives, max_receives, max_receiving, n_sends, max_sends, max_sending;
	int *arrived; /* heads */
	int *completed;
	size_t max_completed;
	size_t n_rule, n_finished;
	enum mu_status status; /* of the store: the first failure */
	char failure[KEYS_TEXT_BYTES];
	bool left; /* a worker has freed the store without mu_keys_finish; failure names it */
};

/* ---- round.c ---- */

enum mu_status mu_keys_runs_make(struct mu_keys_server *s, const struct keys_new *list, size_t n);
void mu_keys_runs_release(struct mu_keys_server *s);
/*
 * Item i of a worker's call is here with its data, a buffer of the pool that begins with a
 * gradient's head and is the callee's from now on; NULL = there are none.
 */
enum mu_status mu_keys_accept(struct mu_keys_server *s, struct mu_keys_conn *c, size_t i,
			      struct mu_keys_gradient *data);
/* A worker has finished: does anybody wait for what it has not pushed? */
enum mu_status mu_keys_finished(struct mu_keys_server *s);

/* ---- answer.c ---- */

/* Room for as many indices in s->completed. */
enum mu_status mu_keys_need_completed(struct mu_keys_server *s, size_t n);
/* The value that item i wants is there: send it, or count it for the answer. */
enum mu_status mu_keys_ready(struct mu_keys_server *s, struct mu_keys_conn *c, size_t i);
/* All that a call wants is there: the answer, with the small values. */
enum mu_status mu_keys_answer(struct mu_keys_server *s, struct mu_keys_conn *c);
enum mu_status mu_keys_answer_failure(struct mu_keys_server *s, struct mu_keys_conn *c);
/* The call is over: buffers go back. */
void mu_keys_end_call(struct mu_keys_server *s, struct mu_keys_conn *c);
/* The store has failed: everybody who waits is told, now and from now on. The trace is taken. */
enum mu_status mu_keys_fail(struct mu_keys_server *s, enum mu_status status, const char *text);
/* Forget sends that are complete. */
enum mu_status mu_keys_poll_sends(struct mu_keys_server *s);
/* Let answers move on until none leaves from this run's weights. */
enum mu_status mu_keys_sends_end(struct mu_keys_server *s, const struct mu_keys_run *run);

#endif
