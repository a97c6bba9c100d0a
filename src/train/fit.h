/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of the training loop share: fit.c, fit_save.c. */
#ifndef TRAIN_FIT_H
#define TRAIN_FIT_H

#include "train.h"

struct train_fit {
	struct train_run *run;
	size_t epoch, done;              /* steps of it that are */
	size_t count;                    /* good samples of the present step */
	size_t first;                    /* of these, those of an earlier run */
	size_t saved;                    /* of these, when the last checkpoint was begun; 0: none */
	bool early;                      /* training ended inside the epoch */
	struct mu_metrics total, window; /* of the epoch, since the last line; this worker's */
	double before, window_before;    /* of their samples, those of an earlier run */
	double window_start, window_progress, window_data, window_comm;
	size_t window_first;
	size_t saved_epochs;       /* what the last checkpoint after an epoch holds; 0: none yet */
	size_t left_out, in_a_row; /* batches of the epoch, of this worker, that were not finite */
};

/* ---- fit_save.c. Collective over workers, but for dist_async's _save_inside ---- */

/* Inside an epoch: let a save move on, and begin one if it is due. */
enum mu_status mu_train_fit_save_inside(struct train_fit *f);
/* After an epoch, if --save-period says so. */
enum mu_status mu_train_fit_save(struct train_fit *f);
/* After the last step that this worker took of an epoch: do all end here? Then f->early. */
enum mu_status mu_train_fit_look_inside(struct train_fit *f);
/* Training ends when so many epochs are trained: tell, and save what is not. */
enum mu_status mu_train_fit_end_between(struct train_fit *f, size_t epochs);

/* ---- finite.c: MU_ERR_NUMERIC for values that are not finite ---- */

/* Are gradients to be looked at before they leave, and bad batches left out? */
bool mu_train_leaves_out(const struct train_run *run);
/*
 * *good: the loss of the present batch is finite; the gradients, after a backward pass that pushed
 * nothing. Else an error, or with --on-nan this worker is to leave the batch out.
 */
enum mu_status mu_train_judge_loss(struct train_fit *f, size_t step, bool *good);
enum mu_status mu_train_judge_gradients(struct train_fit *f, size_t step, bool *good);
/* At the end of an epoch, which `what` names: batches that were left out. */
void mu_train_tell_left_out(const struct train_fit *f, const char *what);
/* All weights; after mu_kv_fetch. */
enum mu_status mu_train_check_weights(const struct train_run *run, size_t epoch);

/*
 * loss_scale.c. Once a batch of every worker that trains with a loss scale, where backward has
 * pushed nothing, or this worker has nothing to push (idle): *good tells whether all workers'
 * gradients are finite; the scale goes on accordingly. Collective over the workers of synchronous
 * stores; without a loss scale nothing is done.
 */
enum mu_status mu_train_loss_scale_judge(struct train_fit *f, size_t step, bool idle, bool *good);

void mu_train_loss_scale_tell(const struct train_run *run, const char *what);

/* --verify-steps, after so many steps of the epoch. Collective over workers. */
enum mu_status mu_train_verify(const struct train_run *run, size_t epoch, size_t done);

#endif
