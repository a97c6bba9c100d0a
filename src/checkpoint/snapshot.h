/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a save: the copy in memory, the new file, the thread that writes. */
#ifndef CHECKPOINT_SNAPSHOT_H
#define CHECKPOINT_SNAPSHOT_H

#include <pthread.h>

#include "contents.h"

/* ---- snapshot.c: this worker's part, in memory ---- */

/* An array in plain order. */
struct checkpoint_piece {
	const char *weights; /* the key, which must be finite; NULL: a state */
	const float *data;
	size_t nbytes;
	uint64_t offset, checksum; /* their places in the file */
};

/* Arrays in plain order. The memory is kept from save to save. */
struct checkpoint_snapshot {
	float *plain;
	size_t n_plain;
	struct checkpoint_piece *pieces; /* by array, in their order */
	size_t n_pieces;
};

/*
 * Copy this worker's share of the arrays; pieces have no places yet: their offset is the number of
 * the array. Sets at->updates, last_lr and progress. alone: worker 0 copies all weights and states,
 * without the other workers; else collective over workers.
 */
enum mu_status mu_checkpoint_snapshot_copy(struct checkpoint_snapshot *s, const struct mu_engine *e,
					   const struct checkpoint_arrays *arrays,
					   struct checkpoint_position *at, bool alone);
void mu_checkpoint_snapshot_release(struct checkpoint_snapshot *s);

/* ---- new_file.c: the file, which worker 0 creates ---- */

struct checkpoint_new_file {
	const struct mu_engine *e;
	bool alone;                    /* worker 0 writes it without the others */
	char path[CHECKPOINT_PATH];    /* its final name */
	char written[CHECKPOINT_PATH]; /* its name while it is written */
	struct mu_replace replace;     /* worker 0 */
	size_t n_bytes;                /* of all arrays; worker 0 */
};

/*
 * Create the file with attributes and room for all arrays, and set the places of the snapshot's
 * pieces. e, alone and path are set. Collective over workers unless alone.
 */
enum mu_status mu_checkpoint_new_file_create(struct checkpoint_new_file *f,
					     const struct checkpoint_arrays *arrays,
					     const struct checkpoint_position *at,
					     struct checkpoint_snapshot *snapshot);

/* ---- writer.c: the thread that writes ---- */

/* Write the pieces into the file, and sync it to the disk. MU_ERR_NUMERIC: weights are not finite,
 * and nobody could use them. */
enum mu_status mu_checkpoint_pieces_write(const char *path, const struct checkpoint_piece *pieces,
					  size_t n);

/*
 * A thread that calls fn. To begin does not fail, because the other workers wait for the vote:
 * where no thread can be started, the caller's calls fn. _end waits for it and returns the status
 * of fn; MU_OK if nothing has begun.
 */
typedef enum mu_status checkpoint_writer_fn(void *context);
struct checkpoint_writer {
	pthread_t thread;
	bool begun, threaded;
	checkpoint_writer_fn *fn;
	void *context;
	_Atomic bool done;
	enum mu_status st; /* of fn */
	char message[CHECKPOINT_PATH + 256];
};
void mu_checkpoint_writer_begin(struct checkpoint_writer *w, checkpoint_writer_fn *fn,
				void *context);
bool mu_checkpoint_writer_done(struct checkpoint_writer *w);
enum mu_status mu_checkpoint_writer_end(struct checkpoint_writer *w);

#endif
