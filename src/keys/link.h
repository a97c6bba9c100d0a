/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private: a worker's connections to the owners of keys. See keys/wire.h.
 */
#ifndef MUSTER_KEYS_LINK_H
#define MUSTER_KEYS_LINK_H

#include "serving.h"

/* The connection to one owner. */
struct mu_keys_link {
	int rank;
	char *head, *answer; /* KEYS_HEAD_BYTES each */
	size_t head_bytes;
	void *body, *answer_body; /* of the pool; NULL = in the head */
	size_t body_bytes, answer_bytes;
	bool used, answered; /* in the present call */
};

/* What a receive is for: an item of a call to an owner, KEYS_MAX_ITEMS = the body. */
struct mu_keys_link_note {
	size_t owner, item;
};

/* All connections, with the buffers and messages of one call. */
struct mu_keys_links {
	struct mu_keys_links *next; /* of the worker's end: those that are not used */
	struct mu_keys_link *links;
	MPI_Request *heads; /* answers, one per link */
	int *completed;
	MPI_Request *sends, *receives;   /* of the present call */
	struct mu_keys_link_note *notes; /* of the receives */
	size_t n_sends, max_sends, n_receives, max_receives, max_notes;
	double began; /* the present call; for the log */
	bool finishing;
	bool left;             /* a worker has, without mu_keys_finish; failure names it */
	enum mu_status status; /* of the store */
	char failure[KEYS_TEXT_BYTES];
};

/* *out is set also after an error. */
enum mu_status mu_keys_links_new(struct mu_keys *keys, struct mu_keys_links **out);
void mu_keys_links_free(struct mu_keys *keys, struct mu_keys_links *w);
/* The call is over: buffers go back. */
void mu_keys_links_clear(struct mu_keys *keys, struct mu_keys_links *w);
/*
 * Begin a call by the buffers of keys->end; at most KEYS_MAX_ITEMS transfers. *n_answers: of owners
 * that will answer.
 */
enum mu_status mu_keys_links_send(struct mu_keys *keys, size_t n, const struct mu_transfer *x,
				  int *n_answers);
/* Pushes that nobody waits for (pushes.c): slots of struct mu_keys_ops. */
enum mu_status mu_keys_pushes_begin(struct mu_keys *keys, size_t n, const struct mu_transfer *x,
				   struct mu_keys_links **sent);
enum mu_status mu_keys_pushes_test(struct mu_keys *keys, struct mu_keys_links *sent, bool wait,
				  bool *done);
void mu_keys_pushes_end(struct mu_keys *keys, struct mu_keys_links *sent);

/*
 * Fails when a worker has freed the store without mu_keys_finish. Nobody meets that worker, or is
 * answered by the owners, any more.
 */
enum mu_status mu_keys_link_check_left(struct mu_keys *keys);
/*
 * Every wait of a worker of a store of keys ends here, in mu_keys_link_meet or in
 * mu_keys_link_wait_heads: a rank that owns keys serves meanwhile.
 */
enum mu_status mu_keys_link_wait(struct mu_keys *keys, size_t n, MPI_Request *requests,
				 const char *what);
/* The same for a collective of all workers that has begun. */
enum mu_status mu_keys_link_meet(struct mu_keys *keys, const struct mu_meeting *meeting,
				 MPI_Request *request);
/* A nap between two polls that found nothing, with the limits of a wait for a round of a key. */
enum mu_status mu_keys_link_nap(struct mu_keys *keys, struct mu_waiter *waiter,
				const struct mu_key *key);
/* A worker that owns keys: answer until all workers have finished. */
enum mu_status mu_keys_link_serve(struct mu_keys *keys);
/* Begin a message of the present call, in pieces if it is large. Zero bytes: nothing is sent. */
enum mu_status mu_keys_link_send(struct mu_keys *keys, const void *data, size_t nbytes, int rank,
				 int tag);
enum mu_status mu_keys_link_receive(struct mu_keys *keys, void *data, size_t nbytes,
				    struct mu_keys_link_note note);
/* The head of an answer is expected from this owner. */
enum mu_status mu_keys_link_receive_head(struct mu_keys *keys, size_t owner);
/*
 * Wait for the heads of all answers; n is how many that are. After an error in one of them the
 * store's status is set.
 */
enum mu_status mu_keys_link_wait_heads(struct mu_keys *keys, int n, const char *what);
/* After an error: take back the receives for what does not come. */
enum mu_status mu_keys_link_take_back(struct mu_keys_links *w);
/*
 * A call by the buffers of w has ended with this error, whose trace is there. If that was midway,
 * owners wait for the rest, so the store has failed; what messages in flight use is kept.
 */
void mu_keys_link_failed(struct mu_keys *keys, const struct mu_keys_links *w, enum mu_status st);
/*
 * Tell all owners and workers that this worker is gone, for at most a second: their ranks may be
 * gone, too. The messages are small, so that MPI need not wait for their receivers.
 */
void mu_keys_link_leave(struct mu_keys *keys);

#endif
