/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gradient accumulation. The gradients of all batches of an update except the last are summed here.
 * The sum is added to the gradients of the last batch layer by layer, just before each is pushed.
 * Gradients are sums over samples, or n times a statistic for auxiliary arrays, so a sum is right
 * for both.
 */
#include "accumulate.h"

#include <string.h>

#include <muster/base.h>

MU_LOOP static void add_gradients(float *restrict to, const float *restrict from, size_t n)
{
	for (size_t i = 0; i < n; i++)
		to[i] += from[i];
}

void mu_engine_add(float *to, const float *from, size_t n)
{
	add_gradients(to, from, n);
}

enum mu_status mu_engine_sum_init(struct engine_sum *sum, size_t n)
{
	*sum = (struct engine_sum){.n = n};
	return MU_ALLOC(sum->gradients, n, "gradients of --update-period");
}

void mu_engine_sum_release(struct engine_sum *sum)
{
	mu_free(sum->gradients);
	*sum = (struct engine_sum){.n = 0};
}

void mu_engine_sum_add(struct engine_sum *sum, const float *gradients, size_t count)
{
	mu_clock_start(MU_CLOCK_BACKWARD);
	if (sum->batches == 0)
		memcpy(sum->gradients, gradients, sum->n * sizeof *gradients);
	else
		add_gradients(sum->gradients, gradients, sum->n);
	mu_clock_stop(MU_CLOCK_BACKWARD);
	sum->batches++;
	sum->count += count;
}

void mu_engine_sum_add_to(const struct engine_sum *sum, float *gradients, size_t at, size_t n)
{
	if (sum->batches > 0)
		add_gradients(gradients + at, sum->gradients + at, n);
}

void mu_engine_sum_clear(struct engine_sum *sum)
{
	sum->batches = 0;
	sum->count = 0;
}
