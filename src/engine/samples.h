/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the two engines whose devices have all layers: one.c, shared.c. */
#ifndef ENGINE_SAMPLES_H
#define ENGINE_SAMPLES_H

#include "engine/engine.h"

/* ---- samples.c: slots of struct mu_engine_ops ---- */

enum mu_status mu_engine_samples_open(struct mu_engine *e, size_t batch);
enum mu_status mu_engine_samples_open_others(struct mu_engine *e);
enum mu_status mu_engine_samples_plan(struct mu_engine *e);
enum mu_status mu_engine_samples_allocate(struct mu_engine *e);
void mu_engine_samples_close(struct mu_engine *e);
double mu_engine_samples_arena(const struct mu_engine *e);
double mu_engine_samples_activations(const struct mu_engine *e);
/* Bind the plans of a device (engine_device_fn). */
enum mu_status mu_engine_samples_bind(struct mu_engine *e, struct engine_device *d);
/* Begin the next layer of backward, if there is one. *left: layers of the device that are not done.
 * If all have begun, wait for at least one more. */
enum mu_status mu_engine_samples_backward_next(const struct engine_device *d, size_t *layer,
					       size_t *left);

/* ---- deal.c ---- */

float *mu_engine_samples_begin(struct mu_engine *e, enum mu_phase phase, size_t group,
			       const struct mu_batch *batch);
void mu_engine_samples_count(struct mu_engine *e, size_t count);
/* Copy the samples of one of several devices, if they were not sent. */
void mu_engine_samples_copy(const struct mu_engine *e, const struct engine_device *d);

/* ---- results.c ---- */

double mu_engine_samples_loss(const struct mu_engine *e);
void mu_engine_samples_measure(const struct mu_engine *e, struct mu_metrics *m);
enum mu_status mu_engine_samples_probabilities(const struct mu_engine *e, float *out);
void mu_engine_samples_predictions(const struct mu_engine *e, struct mu_prediction *out);
enum mu_status mu_engine_samples_overflowed(const struct mu_engine *e, bool *overflowed);
const char *mu_engine_samples_find_nonfinite(struct mu_engine *e);

#endif
