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
	uint8_t *bytes; /* several devices: samples that are bytes; NULL: none can be */
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

/* ---- deal.c ---- */

/*
 * For a later batch of the training, while this one is under way, on devices with memory of their
 * own (_send_ahead): _room says where samples are put, _send begins to bring them to the devices,
 * with labels and ids of batch. mu_engine_devices_begin, with the same count, finds them there.
 */
bool mu_engine_devices_send_ahead(const struct train_run *run);
void mu_engine_devices_room(const struct train_run *run, size_t group, size_t count,
			    struct mu_input_batch *samples);
enum mu_status mu_engine_devices_send(const struct train_run *run, size_t group,
				      const struct mu_batch *batch, bool as_bytes);
/* Of several devices one takes its samples, if they were not sent. */
void mu_engine_devices_copy_samples(const struct train_run *run, const struct engine_device *d);

#endif
