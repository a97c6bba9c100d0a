/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private: what travels between a worker of a store of keys and an owner of keys.
 *
 * A call of a worker is, to every owner concerned, one head: what is called, a table of items and,
 * if they fit, the small items' data, one after another. If they do not fit they follow as a body.
 * Every large item is a message of its own from the caller's array, its tag its place in the table.
 * Back come an answer head, with the small items' values or an error, a body if they do not fit,
 * and the large items, straight into the caller's arrays. Messages above 1 GiB are cut.
 *
 * The receives of heads are persistent; all others are posted, with their sizes and sources, when
 * the head that announces them is there, or before the call is sent. A worker has one call under
 * way at most that is answered, and to it only FAIL, FINISH and LEAVE may follow; calls of pushes
 * alone may follow each other (request.c). All ranks
 * are of one machine type, so structs travel as bytes.
 */
#ifndef MUSTER_KEYS_WIRE_H
#define MUSTER_KEYS_WIRE_H

#include <muster/keys.h>

#include <stddef.h>
#include <stdint.h>

#define KEYS_HEAD_BYTES ((size_t)32 << 10)
#define KEYS_MAX_ITEMS ((size_t)768)        /* of one call to one owner: the table fits a head */
#define KEYS_LARGE_BYTES ((size_t)64 << 10) /* from here on an item is a message of its own */
#define KEYS_TEXT_BYTES 1024
#define KEYS_MESSAGE_BYTES ((size_t)1 << 30)

/*
 * Each direction has tags of its own: a rank may be a worker and an owner. An item's tag is the
 * first one + its place in the table.
 */
enum {
	KEYS_TAG_HEAD = 1,
	KEYS_TAG_BODY = 2,
	KEYS_TAG_ANSWER = 3,
	KEYS_TAG_VALUES = 4, /* the body of an answer */
	KEYS_TAG_ITEM = 5,
	KEYS_TAG_VALUE = KEYS_TAG_ITEM + (int)KEYS_MAX_ITEMS,
	KEYS_TAG_LEFT = KEYS_TAG_VALUE + (int)KEYS_MAX_ITEMS,
};

enum keys_op {
	KEYS_CALL,   /* a table of items */
	KEYS_MAKE,   /* the body is a table of struct keys_new; from worker 0 */
	KEYS_RULE,   /* the body is a struct mu_rule_order; answered when all workers sent it */
	KEYS_FAIL,   /* the body is a message: another owner has failed. No answer. */
	KEYS_FINISH, /* answered when all workers have finished */
	/*
	 * As FAIL and FINISH of a worker that frees the store without mu_keys_finish. No answer.
	 * Workers that own nothing get its text as KEYS_TAG_LEFT: they may wait for it alone.
	 */
	KEYS_LEAVE,
};

struct keys_head {
	uint32_t op, n_items;
	uint32_t answered; /* is an answer wanted? */
	uint32_t status;   /* of FAIL: enum mu_status */
	uint64_t body_bytes;
};

struct keys_item {
	uint32_t part;
	uint16_t coding; /* enum mu_coding */
	uint16_t wanted;
	uint64_t nbytes; /* that go to the owner */
	uint64_t n_rows;
	uint32_t row_length;
	float threshold;
};

/* A run of a new key. */
struct keys_new {
	uint32_t part, dtype, owner, unused;
	int64_t key;
	uint64_t from, n;
	char name[MU_KEY_NAME_MAX + 1]; /* "": the key is a number */
};

/*
 * With an error: after it the message, then a byte for every item (and one more for the body): was
 * it sent all the same?
 */
struct keys_answer {
	uint64_t status; /* enum mu_status */
	uint64_t body_bytes;
	uint64_t left; /* with an error: a worker has freed the store without mu_keys_finish */
};

#endif
