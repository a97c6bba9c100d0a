/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of a save share: save.c, save_stage.c. */
#ifndef CHECKPOINT_SAVE_STATE_H
#define CHECKPOINT_SAVE_STATE_H

#include "checkpoint.h"
#include "saver.h"

/* A save goes from one to the next. */
enum checkpoint_save_stage {
	CHECKPOINT_SAVE_NONE,
	CHECKPOINT_SAVE_WRITE,  /* this worker's thread writes */
	CHECKPOINT_SAVE_AGREE,  /* it has; do all others have? */
	CHECKPOINT_SAVE_COMMIT, /* worker 0: all have */
	CHECKPOINT_SAVE_FAILED, /* another worker could not, and ends the job as soon as it knows */
};

struct checkpoint_saver {
	const struct mu_engine *e;
	struct checkpoint_rollback *back; /* its path: the newest complete file */
	enum checkpoint_save_stage stage;
	bool alone;                    /* worker 0, without the others */
	struct mu_vote vote;           /* of the workers: the lowest that failed, if any did */
	char path[CHECKPOINT_PATH];    /* as it will be called */
	char written[CHECKPOINT_PATH]; /* as it is called while it is written */
	struct mu_replace replace;     /* worker 0 */
	float *plain;                  /* this worker's arrays; kept from save to save */
	size_t n_plain;
	struct checkpoint_piece *pieces;
	size_t n_pieces;
	struct checkpoint_writer *writer;
	int lowest;                          /* worker that failed; none: how many there are */
	char message[CHECKPOINT_PATH + 256]; /* of the thread's error */
	double started, waited;              /* of the last save: when, and how long training did */
	size_t n_bytes;                      /* of the whole file's arrays */
	double last;                         /* when it was begun, or the run */
	bool late;                           /* --save-minutes: worker 0 wants a save */
	bool wanted;                         /* one is due at the end of this update */
};

/* The pieces are copied and the file is made: write them. Then mu_checkpoint_saver_poll. */
enum mu_status mu_checkpoint_saver_write(struct checkpoint_saver *s);

#endif
