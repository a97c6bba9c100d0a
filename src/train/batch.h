/* SPDX-License-Identifier: Apache-2.0 */
/* The batches of the training loop, on their way from the input to the devices. */
#ifndef TRAIN_BATCH_H
#define TRAIN_BATCH_H

#include "train.h"

/* The batch of a later step, which is on its way to devices with memory of their own. */
struct train_ahead {
	bool there;
	size_t step, count; /* count: samples that are good */
	float *labels;
	uint32_t *ids;
};

/* ---- batch.c ---- */

/* Its memory, once plans are made. */
enum mu_status mu_train_batch_open(struct train_run *run);
void mu_train_batch_close(struct train_run *run);

/* The batch of a step, read unless it is there: *count of its samples are good. */
enum mu_status mu_train_batch_load(struct train_run *run, struct mu_input *in, size_t step,
				   size_t *count);
/* If this step's batch of the training is ready it goes to the devices now, which are at work. */
enum mu_status mu_train_batch_ahead(struct train_run *run, size_t step);
/* Steps begin anew: what is there is another step's. */
void mu_train_batch_forget(struct train_run *run);

#endif
