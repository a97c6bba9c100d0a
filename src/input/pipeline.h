/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pipeline: threads that read, decode and augment the samples of coming steps, at most a fixed
 * number of batches ahead. Samples of a batch are dealt out in runs to whichever thread is free;
 * what a sample becomes does not depend on the thread. The threads call nothing but the reader:
 * neither MPI nor the device.
 */
#ifndef INPUT_PIPELINE_H
#define INPUT_PIPELINE_H

#include <muster/input.h>

/* Batches of in->config.prefetch steps; in must be open otherwise. Threads start at once and wait.
 */
enum mu_status mu_pipeline_new(struct mu_pipeline **out, struct mu_input *in);
void mu_pipeline_free(struct mu_pipeline *p);
/* No thread works on return, so the order of the records may change; a read begins anew. */
void mu_pipeline_pause(struct mu_pipeline *p);
/* Begin with this step, unless it is the next one anyway. */
void mu_pipeline_start(struct mu_pipeline *p, size_t step);
/* Is this step's batch complete, or failed? Waits for it for so many seconds at most. */
bool mu_pipeline_wait(struct mu_pipeline *p, size_t step, double seconds);
/* Wait for this step's batch, whose arrays become those of batch until the next call. */
enum mu_status mu_pipeline_lend(struct mu_pipeline *p, size_t step, struct mu_input_batch *batch);
/* Wait for this step's batch and copy it. */
enum mu_status mu_pipeline_take(struct mu_pipeline *p, size_t step, struct mu_input_batch *batch);

#endif
