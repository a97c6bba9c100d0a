/* SPDX-License-Identifier: Apache-2.0 */
/* The batches of a worker, on their way from the input to the devices. */
#ifndef TRAIN_BATCH_H
#define TRAIN_BATCH_H

#include <muster/input.h>

#include "engine/engine.h"

/* The batch of a later step, which devices with memory of their own get in advance. */
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
	float *labels;            /* of the present batch */
	uint32_t *ids;
	struct train_batch_ahead *ahead; /* NULL: the devices get no batch in advance */
};

/* ---- batch.c ---- */

/* Once plans are made; engine, train and loss_scale are set. _close accepts {0}. */
enum mu_status mu_train_batch_open(struct train_batches *b);
void mu_train_batch_close(struct train_batches *b);

/* The batch of a step, read unless it is there: *count of its samples are good. */
enum mu_status mu_train_batch_load(struct train_batches *b, struct mu_input *in, size_t step,
				   size_t *count);
/* While the devices work: if this step's training batch is ready, begin to send it to them. */
enum mu_status mu_train_batch_ahead(struct train_batches *b, size_t step);
/* A new epoch begins: what was read in advance is another step's. */
void mu_train_batch_forget(struct train_batches *b);

#endif
