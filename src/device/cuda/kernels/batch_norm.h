/* SPDX-License-Identifier: Apache-2.0 */
/* Sums over channels, and batch-norm. batch_norm_groups.h is for contiguous channels. */
#ifndef DEVICE_CUDA_KERNELS_BATCH_NORM_H
#define DEVICE_CUDA_KERNELS_BATCH_NORM_H

#include "elements.h"

/* ---- sums over channels ---- */

/* Add the CUDA_THREADS sums of each kind pairwise, until `left` are left. */
CUDA_FUNCTION void fold(double (*room)[CUDA_THREADS], int kinds, size_t left, size_t thread,
			size_t threads)
{
	for (size_t half = CUDA_THREADS / 2; half >= left; half /= 2) {
		CUDA_BARRIER();
		for (size_t t = thread; t < half; t += threads)
			for (int kind = 0; kind < kinds; kind++)
				room[kind][t] += room[kind][t + half];
	}
	CUDA_BARRIER();
}

/* Sums over lanes of channels c .. c + 7: room[0][k] of `first`, [1][k] of `second`. */
CUDA_FUNCTION void add_lanes(double (*room)[CUDA_THREADS], const struct cuda_lanes *of, size_t c,
			     size_t thread, size_t threads)
{
	CUDA_BARRIER();
	for (size_t t = thread; t < CUDA_THREADS; t += threads) {
		const size_t k = c + t % CUDA_EIGHT;
		double first = 0, second = 0;

		for (size_t l = t / CUDA_EIGHT; k < of->channels && l < of->lanes;
		     l += CUDA_THREADS / CUDA_EIGHT) {
			first += (double)of->first[l * of->channels + k];
			second += (double)of->second[l * of->channels + k];
		}
		room[0][t] = first;
		room[1][t] = second;
	}
	fold(room, 2, CUDA_EIGHT, thread, threads);
}

CUDA_FUNCTION void channel_sums_row(const struct cuda_channel_sums *a, size_t row, size_t thread,
				    size_t threads)
{
	CUDA_SHARED double room[2][CUDA_THREADS];
	const size_t c = row * CUDA_EIGHT;

	add_lanes(room, &a->of, c, thread, threads);
	for (size_t k = thread; k < CUDA_EIGHT && c + k < a->of.channels; k += threads) {
		const float sum = (float)room[0][k];

		a->out[c + k] = a->adds ? a->out[c + k] + sum : sum;
	}
}

/* ---- batch-norm ---- */

CUDA_FUNCTION void normals_at(const struct cuda_normals *a, size_t c)
{
	double variance = a->variance ? a->variance[c] : (double)a->running_variance[c];
	double mean = a->mean ? a->mean[c] : (double)a->running_mean[c];
	double inverse = 1 / sqrt(variance + (double)a->eps);
	double gamma = a->gamma ? (double)a->gamma[c] : 1;
	struct cuda_normal *b = &a->out[c];

	b->mean = (float)mean;
	b->inverse = (float)inverse;
	b->scale = (float)(gamma * inverse);
	b->shift = a->beta[c];
}

/*
 * Of differences from the channel's first value, which is close to the others: little cancellation.
 * Sums of y and of y y in float32, which a convolution made, lose digits where |mean| is many
 * standard deviations: the variance is off by some 2^-20 (mean^2 + variance), 1 % of it at 100
 * deviations. There y itself, rounded to float16, is off by up to a twentieth of a deviation. If
 * cuDNN sums y before it is rounded, the mean is not quite that of what is normalized: the gradient
 * of y then has a small sum, which weighs as much as the mean of the convolution's input does.
 */
CUDA_FUNCTION void statistics_row(const struct cuda_statistics *a, size_t row, size_t thread,
				  size_t threads)
{
	CUDA_SHARED double room[2][CUDA_THREADS];
	const size_t c = row * CUDA_EIGHT;

	add_lanes(room, &a->of, c, thread, threads);
	for (size_t k = thread; k < CUDA_EIGHT && c + k < a->of.channels; k += threads) {
		const double mean = room[0][k] * a->share;
		const size_t at = (c + k) * a->area;

		a->mean[c + k] = mean + (a->x ? (double)number_at(a->x, a->type, at) : 0);
		a->variance[c + k] = fmax(room[1][k] * a->share - mean * mean, 0.0);
		normals_at(&a->normals, c + k);
	}
}

/* The same bits in forward, backward and restore. */
CUDA_FUNCTION float normalized(const struct cuda_normal *b, float x)
{
	return fmaf(x - b->mean, b->scale, b->shift);
}

CUDA_FUNCTION void normalize_at(const struct cuda_normalize *a, size_t at)
{
	const int m = of_eight(at, a->n);
	float v[CUDA_EIGHT], add[CUDA_EIGHT];

	eight_at(v, a->x, a->type, at, m);
	if (a->add)
		eight_at(add, a->add, a->type, at, m);
	for (int k = 0; k < CUDA_EIGHT; k++) {
		float y = normalized(&a->normals[channel_of(at, k, a->channels, a->area)], v[k]);

		if (a->add)
			y += add[k];
		v[k] = a->relu ? value_of(CUDA_RELU, y) : y;
	}
	set_eight(a->y, a->type, at, m, v);
}

/* The gradient before the activation. */
CUDA_FUNCTION float normal_dy(const struct cuda_normal *b, int relu, float x, float dy)
{
	return relu && !(normalized(b, x) > 0) ? 0 : dy;
}

CUDA_FUNCTION void set_totals(const struct cuda_normal_totals *a, size_t c, double sum,
			      double product)
{
	a->means[2 * c] = (float)(sum * a->share);
	a->means[2 * c + 1] = (float)(product * a->share);
	a->d_gamma[c] = a->fixed ? 0 : (float)product;
	a->d_beta[c] = (float)sum;
	a->d_mean[c] = (float)(a->count * a->mean[c]);
	a->d_variance[c] = (float)(a->count * a->variance[c]);
}

CUDA_FUNCTION void normal_sums_row(const struct cuda_normal_sums *a, size_t row, size_t thread,
				   size_t threads)
{
	CUDA_SHARED double room[2][CUDA_THREADS];
	const size_t first = row * CUDA_EIGHT;

	add_lanes(room, &a->of, first, thread, threads);
	for (size_t k = thread; k < CUDA_EIGHT && first + k < a->of.channels; k += threads)
		set_totals(&a->totals, first + k, room[0][k], room[1][k]);
}

CUDA_FUNCTION void normalize_backward_at(const struct cuda_normalize_backward *a, size_t at)
{
	const int m = of_eight(at, a->n);
	float x[CUDA_EIGHT], v[CUDA_EIGHT];

	eight_at(x, a->x, a->type, at, m);
	eight_at(v, a->dy, a->type, at, m);
	for (int k = 0; k < CUDA_EIGHT; k++) {
		const size_t c = channel_of(at, k, a->channels, a->area);
		const struct cuda_normal *b = &a->normals[c];
		const float dy = normal_dy(b, a->relu, x[k], v[k]);
		const float normal = (x[k] - b->mean) * b->inverse;

		v[k] = b->scale * (dy - a->means[2 * c] - normal * a->means[2 * c + 1]);
	}
	set_eight(a->dx, a->type, at, m, v);
}

/* ---- partial sums ---- */

/* Contribution of element i of channel c. */
CUDA_FUNCTION void add_element(const struct cuda_partial_sums *a, size_t c, size_t i, float begin,
			       double *first, double *second)
{
	const float x = number_at(a->x, a->type, i);

	if (a->of == CUDA_OF_GRADIENTS) {
		const struct cuda_normal *b = &a->normals[c];
		const float dy = normal_dy(b, a->relu, x, number_at(a->dy, a->type, i));

		*first += (double)dy;
		*second += (double)dy * (double)((x - b->mean) * b->inverse);
	} else {
		const double d = (double)x - (double)begin;

		*first += d;
		*second += d * d;
	}
}

CUDA_FUNCTION void plane_sums_row(const struct cuda_partial_sums *a, size_t row, size_t thread,
				  size_t threads)
{
	const size_t c = row % a->channels, lane = row / a->channels;
	const size_t planes = threads / a->area, positions = threads % a->area;
	const float begin = a->of == CUDA_OF_SPREAD ? number_at(a->x, a->type, c * a->area) : 0;
	size_t sample = lane + thread / a->area * a->lanes, k = thread % a->area;
	double first = 0, second = 0;

	while (sample < a->samples) {
		add_element(a, c, (sample * a->channels + c) * a->area + k, begin, &first, &second);
		sample += planes * a->lanes;
		k += positions;
		if (k >= a->area) {
			k -= a->area;
			sample += a->lanes;
		}
	}
	first = sum_of(first);
	second = sum_of(second);
	if (thread > 0)
		return;
	a->first[row] = (float)first;
	a->second[row] = (float)second;
}

#endif
