/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of a table by number, and their gradients. */
#ifndef DEVICE_CUDA_KERNELS_EMBEDDING_H
#define DEVICE_CUDA_KERNELS_EMBEDDING_H

#include "numbers.h"

/* The row at a position of all samples, or -1 if the number is invalid. Samples that do not count
 * use row 0. */
CUDA_FUNCTION long row_at(const float *x, size_t position, size_t area, size_t count, int inputs)
{
	float v = x[position];

	if (position / area >= count)
		return 0;
	return v >= 0 && v < (float)inputs && v == floorf(v) ? (long)v : -1;
}

CUDA_FUNCTION void embed_at(const struct cuda_embed *a, size_t i)
{
	const size_t s = i / (a->units * a->area), u = i / a->area % a->units;
	const long row = row_at(a->x, s * a->area + i % a->area, a->area, a->count, a->inputs);

	if (row < 0)
		set_flag(a->bad);
	a->y[i] = row < 0 ? 0 : a->weight[(size_t)row * a->units + u];
}

/* The number at a position; samples that do not count have row 0. */
CUDA_FUNCTION float number_of(const struct cuda_embed_backward *a, size_t k)
{
	return k < a->count * a->area ? a->x[k] : 0;
}

/* The block of the first position of a row adds the gradients of all its positions, in order. Most
 * rows have one. */
CUDA_FUNCTION void embed_backward_row(const struct cuda_embed_backward *a, size_t i, size_t thread,
				      size_t threads)
{
	CUDA_SHARED int same[CUDA_THREADS];
	const float x = number_of(a, i);
	const long row = row_at(a->x, i, a->area, a->count, a->inputs);
	double before = row < 0, after = 0;
	size_t end;

	for (size_t k = thread; k < a->n; k += threads)
		if (number_of(a, k) == x) {
			before += k < i;
			after += k > i;
		}
	if (sum_of(before) > 0)
		return;
	end = sum_of(after) > 0 ? a->n : i + 1;
	for (size_t from = i; from < end; from += threads) {
		const size_t m = end - from < threads ? end - from : threads;

		same[thread] = thread < m && number_of(a, from + thread) == x;
		if (sum_of(same[thread]) == 0)
			continue;
		for (size_t u = thread; u < a->units; u += threads) {
			float *dw = a->dw + (size_t)row * a->units + u, sum = *dw;

			for (size_t k = from; k < from + m; k++)
				if (same[k - from])
					sum += a->dy[(k / a->area * a->units + u) * a->area +
						     k % a->area];
			*dw = sum;
		}
		CUDA_BARRIER();
	}
}

#endif
