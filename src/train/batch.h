/* SPDX-License-Identifier: Apache-2.0 */
/* The batches of a worker, on their way from the input to the devices. */
#ifndef TRAIN_BATCH_H
#define TRAIN_BATCH_H

#include <muster/input.h>

#include "engine/engine.h"
#include "train/recovery/recovery.h"

/* The batch of a later step, sent in advance to devices with their own memory. */
struct train_batch_ahead {
	bool there;
	size_t step, count; /* count: samples that are good */
	float *labels;
	uint32_t *ids;
};

struct train_batches {
	struct mu_engine *engine;
	struct mu_input *train;
	const double *loss_scale; /* of training batches */
	struct train_recovering *recovering;
	float *labels;            /* of the current batch */
	uint32_t *ids;
	struct train_batch_ahead *ahead; /* NULL: batches are not sent in advance */
};

/* ---- batch.c ---- */

/* Once plans are made; engine, train and loss_scale are set. _close accepts {0}. */
enum mu_status mu_train_batch_open(struct train_batches *b);
void mu_train_batch_close(struct train_batches *b);

/* Load the batch of a step, unless it was read in advance. *count: its good samples; 0 also if it
 * cannot be read and the run recovers. */
enum mu_status mu_train_batch_load(struct train_batches *b, struct mu_input *in, size_t step,
				   size_t *count);
/* While the devices compute: start sending them this step's training batch, if it is ready. */
enum mu_status mu_train_batch_ahead(struct train_batches *b, size_t step);
/* After forward: an error about values of the batch begins with the name of the data. */
void mu_train_batch_name(const struct mu_input *in, enum mu_status st);
/* Drop the batch read in advance: a new epoch begins. */
void mu_train_batch_forget(struct train_batches *b);

#endif
