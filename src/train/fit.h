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
	size_t saved_epochs; /* what the last checkpoint after an epoch holds; 0: none yet */
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

#endif
