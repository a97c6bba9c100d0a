/* SPDX-License-Identifier: Apache-2.0 */
/* Layer normalisation: a thread processes eight channels of a row at a time. */
#ifndef DEVICE_CUDA_KERNELS_LAYER_NORM_H
#define DEVICE_CUDA_KERNELS_LAYER_NORM_H

#include "numbers.h"

/* First element of row i. */
CUDA_FUNCTION size_t row_begin(size_t i, size_t channels, size_t area)
{
	return i / area * channels * area + i % area;
}

/* Are eight channels from a multiple of eight on one access? */
CUDA_FUNCTION bool in_eights(size_t channels, size_t area)
{
	return area == 1 && channels % CUDA_EIGHT == 0;
}

/* Channels k .. k + 7 of the row that begins at `at`; 0 behind the last one. */
CUDA_FUNCTION void eight_of_row(float *v, const void *x, int type, size_t at, size_t k,
				size_t channels, size_t area)
{
	const int m = of_eight(k, channels);

	if (in_eights(channels, area)) {
		eight_at(v, x, type, at + k, CUDA_EIGHT);
		return;
	}
	for (int j = 0; j < CUDA_EIGHT; j++)
		v[j] = j < m ? number_at(x, type, at + (k + (size_t)j) * area) : 0;
}

CUDA_FUNCTION void set_eight_of_row(void *y, int type, size_t at, size_t k, size_t channels,
				    size_t area, const float *v)
{
	const int m = of_eight(k, channels);

	if (in_eights(channels, area)) {
		set_eight(y, type, at + k, CUDA_EIGHT, v);
		return;
	}
	for (int j = 0; j < CUDA_EIGHT; j++)
		if (j < m)
			set_number(y, type, at + (k + (size_t)j) * area, v[j]);
}

/* This thread's part of the sum of x - shift, or of its square. */
CUDA_FUNCTION float part_of_row(const struct cuda_layer_norm *a, size_t at, size_t thread,
				size_t threads, float shift, bool squares)
{
	float v[CUDA_EIGHT], sum = 0;

	for (size_t k = thread * CUDA_EIGHT; k < a->channels; k += threads * CUDA_EIGHT) {
		const int m = of_eight(k, a->channels);

		eight_of_row(v, a->x, a->type, at, k, a->channels, a->area);
		for (int j = 0; j < CUDA_EIGHT; j++) {
			const float u = j < m ? v[j] - shift : 0;

			sum += squares ? u * u : u;
		}
	}
	return sum;
}

CUDA_FUNCTION void layer_norm_row(const struct cuda_layer_norm *a, size_t row, size_t thread,
				  size_t threads)
{
	const size_t at = row_begin(row, a->channels, a->area);
	const float n = (float)a->channels;
	struct cuda_row_statistics s = {0, 0};
	float v[CUDA_EIGHT], sum;

	if (!a->rms) {
		sum = part_of_row(a, at, thread, threads, 0, false);
		s.mean = warp_sum(sum) / n;
	}
	sum = part_of_row(a, at, thread, threads, s.mean, true);
	sum = warp_sum(sum);
	s.factor = 1 / sqrtf(sum / n + a->eps);
	if (a->statistics && thread == 0)
		a->statistics[row] = s;
	for (size_t k = thread * CUDA_EIGHT; k < a->channels; k += threads * CUDA_EIGHT) {
		const int m = of_eight(k, a->channels);

		eight_of_row(v, a->x, a->type, at, k, a->channels, a->area);
		for (int j = 0; j < CUDA_EIGHT; j++)
			if (j < m)
				v[j] = (v[j] - s.mean) * s.factor * a->gamma[k + (size_t)j] +
				       (a->beta ? a->beta[k + (size_t)j] : 0);
		set_eight_of_row(a->y, a->type, at, k, a->channels, a->area, v);
	}
}

/* dx = factor (g - mean of g - xhat mean of (g xhat)), g = dy gamma; rms: without the mean of g */
CUDA_FUNCTION void layer_norm_backward_row(const struct cuda_layer_norm_backward *a, size_t row,
					   size_t thread, size_t threads)
{
	const size_t at = row_begin(row, a->channels, a->area);
	const struct cuda_row_statistics s = a->statistics[row];
	float x[CUDA_EIGHT], g[CUDA_EIGHT], mean = 0, mixed = 0;

	for (int round = 0; round < 2; round++) { /* the means, then dx */
		for (size_t k = thread * CUDA_EIGHT; k < a->channels; k += threads * CUDA_EIGHT) {
			const int m = of_eight(k, a->channels);

			eight_of_row(x, a->x, a->type, at, k, a->channels, a->area);
			eight_of_row(g, a->dy, a->type, at, k, a->channels, a->area);
			for (int j = 0; j < CUDA_EIGHT; j++) {
				x[j] = (x[j] - s.mean) * s.factor;
				g[j] *= j < m ? a->gamma[k + (size_t)j] : 0;
				if (round == 0) {
					mean += g[j];
					mixed += g[j] * x[j];
				}
				x[j] = s.factor * (g[j] - mean - x[j] * mixed);
			}
			if (round == 1)
				set_eight_of_row(a->dx, a->type, at, k, a->channels, a->area, x);
		}
		if (round == 0) {
			mean = a->rms ? 0 : warp_sum(mean) / (float)a->channels;
			mixed = warp_sum(mixed) / (float)a->channels;
		}
	}
}

CUDA_FUNCTION void layer_norm_sums_at(const struct cuda_layer_norm_sums *a, size_t i)
{
	const size_t groups = (a->channels + CUDA_EIGHT - 1) / CUDA_EIGHT;
	const size_t lane = i / groups, k = i % groups * CUDA_EIGHT;
	const size_t end = (lane + 1) * a->rows / a->lanes;
	float x[CUDA_EIGHT], dy[CUDA_EIGHT], first[CUDA_EIGHT] = {0}, second[CUDA_EIGHT] = {0};

	for (size_t row = lane * a->rows / a->lanes; row < end; row++) {
		const size_t at = row_begin(row, a->channels, a->area);
		const struct cuda_row_statistics s = a->statistics[row];

		eight_of_row(x, a->x, a->type, at, k, a->channels, a->area);
		eight_of_row(dy, a->dy, a->type, at, k, a->channels, a->area);
		for (int j = 0; j < CUDA_EIGHT; j++) {
			first[j] += dy[j] * (x[j] - s.mean) * s.factor;
			second[j] += dy[j];
		}
	}
	set_eight_of_row(a->first, CUDA_FLOAT32, lane * a->channels, k, a->channels, 1, first);
	set_eight_of_row(a->second, CUDA_FLOAT32, lane * a->channels, k, a->channels, 1, second);
}

#endif
