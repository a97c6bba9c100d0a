/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private to kvstore: what travels between a worker and a server.
 *
 * A step of a worker, to every server: one order (tag ORDER), then each part of the gradients that
 * the server holds (tag PART + the part's number). Back: one answer (tag ANSWER), and each part of
 * the weights under the same tag as the gradients. Both sides make these messages once, as
 * persistent requests with named ranks, and post receives ahead: a worker starts the receive of a
 * part before it sends the part, a server starts the next receive before it answers. Worker 0's
 * first weights follow their order once, parts in the order of the plan, all under the tag WEIGHTS.
 * All ranks are of one machine type, so structs travel as bytes.
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
	WIRE_PULL,   /* nothing follows; weights are wanted */
	WIRE_ASK,    /* nothing follows; the answer is all that is wanted */
	WIRE_INIT,   /* weights follow, from worker 0 */
	WIRE_SAVE,   /* nothing follows; states are wanted (states.c) */
	WIRE_LOAD,   /* states follow */
	WIRE_FINISH, /* nothing follows; the answer comes when all workers have finished */
};

struct wire_order {
	uint64_t kind;
	uint64_t step; /* of this worker: 1, 2, ... */
	double count;  /* samples behind the gradients */
	double rate;   /* see mu_kv_set_rate */
	uint64_t from; /* states: elements [from, to) of the model */
	uint64_t to;
	uint64_t word; /* see notice.h */
};

/* dist_async: of all pushes to this server so far. See struct mu_kv_staleness. */
struct wire_staleness {
	double pushes, sum, max;
	double counts[MU_KV_STALENESS_BINS];
	double held_back, held_back_seconds;
};

/* Before the states themselves, tag STATE. */
struct wire_counts {
	uint64_t updates;
	double last_lr, progress;
};

struct wire_answer {
	double progress; /* samples counted, this update's included */
	double lr;       /* of this update */
	double count;    /* synchronous stores: samples behind this update, of all workers */
	uint64_t word;   /* see notice.h */
	struct wire_staleness stale;
};

#endif
