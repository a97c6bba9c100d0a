/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private: requests under way, and their parts. A request has one part for each of its keys; each
 * key's parts go on in the order in which they began, whatever happens to the other keys of their
 * requests.
 */
#ifndef MUSTER_KEYS_PARTS_H
#define MUSTER_KEYS_PARTS_H

#include "link.h"

enum mu_part_stage {
	MU_PART_QUEUED, /* a push: not sent; a pull: its rounds may be open */
	MU_PART_SENT,   /* the push is on its way */
	MU_PART_DONE,
};

/* Pushes of one request that were sent together. */
struct mu_push_batch {
	struct mu_keys_links *sent;
	void **scratch; /* buffers of the pool that are being sent */
	size_t n_scratch;
	size_t n_parts; /* that use it */
};

struct mu_request_part {
	size_t key; /* index in the table */
	struct mu_kv_item item;
	enum mu_part_stage stage;
	bool pushed;  /* pushpull: the push has left */
	bool is_free; /* in this pass: no earlier part holds its key */
	bool chosen;  /* for the present call */
	struct mu_push_batch *batch;
};

struct mu_keys_request {
	struct mu_keys *keys; /* NULL: the store is freed */
	struct mu_keys_request *next;
	enum mu_use use;
	size_t n, n_open;
	struct mu_request_part *parts;
	struct mu_kv_item *chosen; /* items of the chosen parts */
	struct mu_array *arrays;
	enum mu_status status;
	char *text; /* of an error */
};

/* The first error of its parts is the request's. */
void mu_request_keep_error(struct mu_keys_request *r, enum mu_status st, const char *text);
void mu_request_unlink(struct mu_keys_request **list, struct mu_keys_request *r);
/* The request goes to the list of those that are done when this was its last open part. */
void mu_request_finish(struct mu_keys_request *r, struct mu_request_part *part, enum mu_status st,
		       const char *text);
/* The part's push needs its buffers no more. */
void mu_request_drop_batch(struct mu_keys *keys, struct mu_request_part *part);

/* ---- steps: parts.c ---- */

/* Does a part keep later ones of its key back? A push that is sent keeps its place by itself. */
bool mu_part_holds_key(const struct mu_keys_request *r, const struct mu_request_part *part);
bool mu_part_has_push(const struct mu_keys_request *r, const struct mu_request_part *part);
/* Sends the pushes that may be sent, and finishes those that have left. */
void mu_parts_move_pushes(struct mu_keys *keys);
/* The same, and pulls whose rounds have closed. waits: the part that the caller waits for. */
enum mu_status mu_parts_move(struct mu_keys *keys, const struct mu_request_part *waits);
/* A push that is sent: waits until it has left. */
void mu_parts_wait_push(struct mu_keys_request *r, struct mu_request_part *part);
/* Pulls that may go on, of the whole request or (not NULL) one part; waits for open rounds. */
void mu_parts_pull(struct mu_keys_request *r, const struct mu_request_part *only);

#endif
