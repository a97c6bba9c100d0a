/* SPDX-License-Identifier: Apache-2.0 */
/*
 * guard: checks for invalid values in training: a loss, gradients or weights that are not
 * finite (--on-nan), gradients that overflow at the loss scale (--loss-scale), weights that differ
 * between workers (--verify-steps).
 */
#ifndef TRAIN_GUARD_H
#define TRAIN_GUARD_H

#include <muster/base.h>

#include "train/recovery/recovery.h"

struct mu_engine;
struct checkpoint_loss_scale;

/*
 * The loss is multiplied by a fixed or dynamic scale (struct mu_batch). A dynamic one is halved
 * when a gradient overflows, whose batch is skipped, and doubled after a window of good batches.
 * The workers of synchronous stores have the same scale, because they agree on what overflows.
 */
struct train_loss_scale {
	double scale; /* 0: none */
	bool dynamic;
	size_t window;         /* good batches before it grows */
	size_t good, in_a_row; /* good batches since the last change; bad ones in a row */
	size_t left_out;       /* batches so far */
};

struct train_guard {
	struct mu_engine *engine;
	size_t epoch;
	size_t left_out, in_a_row; /* this worker's batches of the epoch that were not finite */
	struct train_recovering *recovering;
	struct train_loss_scale scale;
};

/* ---- guard.c ---- */

/* After batches and devices are known; g->recovering is set. before: from the checkpoint that the
 * run resumes. */
void mu_train_guard_open(struct train_guard *g, struct mu_engine *e,
			 const struct checkpoint_loss_scale *before);
/* An epoch begins. */
void mu_train_guard_epoch(struct train_guard *g, size_t epoch);
/* Must all gradients be checked before the first one is pushed? */
bool mu_train_guard_holds(const struct train_guard *g);

/* *keep: the present batch's loss is finite. Else an error, or the batch is left out: by --on-nan,
 * or because the run recovers. */
enum mu_status mu_train_guard_loss(struct train_guard *g, size_t step, bool *keep);
/*
 * *keep: the batch's gradients, of which none is pushed yet, are finite; with a loss scale those of
 * all workers. Else as above. idle: this worker has no gradients. With a loss scale once per batch
 * on every worker, and collective over the workers of synchronous stores.
 */
enum mu_status mu_train_guard_gradients(struct train_guard *g, size_t step, bool idle, bool *keep);
/* MU_ERR_NUMERIC: weights are not finite. After mu_kv_fetch. */
enum mu_status mu_train_guard_weights(const struct train_guard *g);
/* --verify-steps, after `done` steps of the epoch. Collective over workers. */
enum mu_status mu_train_guard_verify(const struct train_guard *g, size_t done);

/* At the end of an epoch, which `what` names: what was skipped, and the loss scale. */
void mu_train_guard_report(const struct train_guard *g, const char *what);
struct checkpoint_loss_scale mu_train_guard_state(const struct train_guard *g);

#endif
