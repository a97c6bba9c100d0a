/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline: threads that read, decode and augment the samples of the next steps, at most a fixed
 * number of batches ahead. Runs of samples are assigned to whichever thread is free; the result
 * does not depend on the thread. The threads call only the reader: neither MPI nor the device.
 */
#ifndef INPUT_PIPELINE_H
#define INPUT_PIPELINE_H

#include <muster/input.h>

/* Prefetches in->config.prefetch batches; otherwise `in` must be open. The threads start at once
 * and wait. */
enum mu_status mu_pipeline_new(struct mu_pipeline **out, struct mu_input *in);
void mu_pipeline_free(struct mu_pipeline *p);
/* On return no thread is reading, so the order of the records may change; the next read starts
 * anew. */
void mu_pipeline_pause(struct mu_pipeline *p);
/* Start with this step, unless it is the next one anyway. */
void mu_pipeline_start(struct mu_pipeline *p, size_t step);
/* Is this step's batch complete, or failed? Waits at most `seconds`. */
bool mu_pipeline_wait(struct mu_pipeline *p, size_t step, double seconds);
/*
 * Wait for this step's batch; the pointers of `batch` are set to its arrays, until the next call.
 */
enum mu_status mu_pipeline_borrow(struct mu_pipeline *p, size_t step, struct mu_input_batch *batch);
/* Wait for this step's batch and copy it. */
enum mu_status mu_pipeline_copy(struct mu_pipeline *p, size_t step, struct mu_input_batch *batch);

#endif
