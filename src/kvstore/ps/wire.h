/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to kvstore: the messages between a worker and a server.
 *
 * In a step a worker sends every server an order (tag ORDER) and each part of the gradients that
 * the server holds (tag PART + the part's number), and receives an answer (tag ANSWER) and each
 * part of the weights (tag as of the gradients). Both sides set these messages up once, as
 * persistent requests with named ranks, and post receives ahead: a worker starts the receive of a
 * part before it sends the part, a server starts the next receive before it answers. Worker 0 sends
 * the first weights once after their order, parts in the order of the plan, all with the tag
 * WEIGHTS. Structs are sent as bytes: all ranks have one architecture.
 */
#ifndef MUSTER_KVSTORE_WIRE_H
#define MUSTER_KVSTORE_WIRE_H

#include <stdint.h>

#include <muster/kvstore.h>

enum {
	WIRE_TAG_ORDER = 1,
	WIRE_TAG_ANSWER = 2,
	WIRE_TAG_WEIGHTS = 3,
	WIRE_TAG_STATE = 4,
	WIRE_TAG_PART = 5,
};

enum wire_kind {
	WIRE_STEP,   /* gradients follow; weights are wanted */
	WIRE_PULL,   /* weights are wanted */
	WIRE_ASK,    /* only the answer is wanted */
	WIRE_INIT,   /* weights follow, from worker 0 */
	WIRE_SAVE,   /* states are wanted (states.c) */
	WIRE_LOAD,   /* states follow */
	WIRE_FINISH, /* the answer comes when all workers have finished */
};

struct wire_order {
	uint64_t kind;
	uint64_t step; /* of this worker: 1, 2, ... */
	double count;  /* samples of the gradients */
	double rate;   /* see mu_kv_set_rate */
	uint64_t from; /* states: elements [from, to) of the model */
	uint64_t to;
	uint64_t notice; /* see notice.h */
};

/* dist_async, of all pushes to this server so far: see struct mu_kv_staleness. */
struct wire_staleness {
	double pushes, sum, max;
	double counts[MU_KV_STALENESS_BINS];
	double held_back, held_back_seconds;
};

/* Sent before the states, tag STATE. */
struct wire_counts {
	uint64_t updates;
	double last_lr, progress;
};

struct wire_answer {
	double progress; /* samples counted, including this update's */
	double lr;       /* of this update */
	double count;    /* synchronous stores: samples of this update, of all workers */
	uint64_t notice; /* see notice.h */
	struct wire_staleness stale;
};

#endif
