/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of several batches for one update. */
#ifndef ENGINE_ACCUMULATE_H
#define ENGINE_ACCUMULATE_H

#include <muster/base.h>

/* ---- accumulate.c ---- */

/* Gradients of the batches since the last update, with --update-period above 1. */
struct engine_sum {
	float *gradients; /* NULL with --update-period 1 */
	size_t n;
	size_t batches; /* in the sum */
	size_t count;   /* their samples */
};

enum mu_status mu_engine_sum_init(struct engine_sum *sum, size_t n);
void mu_engine_sum_release(struct engine_sum *sum);
/* Add a batch's gradients, n elements. */
void mu_engine_sum_add(struct engine_sum *sum, const float *gradients, size_t count);
/* gradients[at..at + n) += the sum's elements; gradients is the whole array. */
void mu_engine_sum_add_to(const struct engine_sum *sum, float *gradients, size_t at, size_t n);
/* After the update. */
void mu_engine_sum_clear(struct engine_sum *sum);

/* to[i] += from[i] */
void mu_engine_add(float *to, const float *from, size_t n);

#endif
