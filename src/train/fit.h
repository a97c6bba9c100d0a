/* SPDX-License-Identifier: Apache-2.0 */
/* fit: the training of a worker, from the first epoch to the last. */
#ifndef TRAIN_FIT_H
#define TRAIN_FIT_H

#include "batch.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/saver.h"
#include "engine/accumulate.h"
#include "guard.h"
#include "halt.h"
#include "report/observers.h"

/* Of worker 0's clocks. */
struct train_seconds {
	double all, data, comm;
};

struct train_fit {
	/* Set by the caller. */
	struct mu_engine *engine;          /* with its options, members, plan and store */
	struct mu_input *train, *validate; /* validate: NULL, there is none */
	struct train_batches *batches;
	struct train_guard *guard;
	struct train_halt *halt;
	struct train_recovering *recovering;
	struct engine_sum *sum; /* of the gradients of earlier batches of an update */
	struct report_observers *observers;
	struct checkpoint_saver *saver;             /* NULL without --model-prefix */
	const struct checkpoint_run_file *run_file; /* rewritten after saves: the energy so far */
	const struct checkpoint_position *from;     /* what the run resumes from; {0}: nothing */
	struct checkpoint_rollback *back;
	struct train_best *best;
	const struct mu_metric *target; /* of --target-accuracy; NULL: none */

	size_t epoch, step;              /* the current ones */
	size_t count;                    /* good samples of the current step */
	double begin;                    /* when it began */
	size_t first, done;              /* steps of the epoch: done by an earlier run; so far */
	bool unvalidated;                /* the last epoch is, although its validation is due */
	bool early;                      /* training ended inside the epoch */
	struct mu_metrics total, window; /* of the epoch, since the last line; this worker's */
	double before, window_before;    /* samples in them from an earlier run */
	double window_start, window_progress, window_data, window_comm;
	struct train_seconds aside; /* of the epoch: validation inside it */
	size_t window_first;
	size_t saved;        /* steps of the epoch in the last checkpoint inside it */
	size_t saved_epochs; /* epochs in the last checkpoint after an epoch; 0: none */
};

/* ---- fit.c. Collective over workers ---- */

enum mu_status mu_train_fit(struct train_fit *f);

/* ---- fit_save.c. Collective over workers, but for _inside with dist_async ---- */

/* Inside an epoch: advance a save in progress, and begin one if it is due. */
enum mu_status mu_train_fit_save_inside(struct train_fit *f);
/* Advance a save in progress. */
enum mu_status mu_train_fit_poll(struct train_fit *f);
/* After `epochs` epochs: *back, an error makes training end here and go back. */
enum mu_status mu_train_fit_goes_back(struct train_fit *f, size_t epochs, bool *back);
/* Sums the energy of all workers: before a save, and at the end. */
enum mu_status mu_train_fit_energy(struct train_fit *f);
/* After an epoch and its validation, if --save-period says so or it is the best. */
enum mu_status mu_train_fit_save(struct train_fit *f);
/* After this worker's last step of an epoch: do all workers stop here? Sets f->early. */
enum mu_status mu_train_fit_end_inside(struct train_fit *f);
/* The last save is complete. */
enum mu_status mu_train_fit_finish(struct train_fit *f);
/* Training ends after `epochs` epochs: report it, and save unless that is done. */
enum mu_status mu_train_fit_end_between(struct train_fit *f, size_t epochs);

#endif
