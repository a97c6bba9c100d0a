/* SPDX-License-Identifier: Apache-2.0 */
/* Continuation of elements.h: sums over channels, batch-norm. */
#ifndef DEVICE_CUDA_NORMS_H
#define DEVICE_CUDA_NORMS_H

#include "elements.h"

/* ---- sums over channels ---- */

/* Element k of channel c of (samples, channels, area). */
CUDA_FUNCTION size_t in_channel(size_t k, size_t c, size_t channels, size_t area)
{
	return (k / area * channels + c) * area + k % area;
}

/* A thread's partial sum. */
CUDA_FUNCTION double sum_of_lanes(const float *sums, size_t lanes, size_t c, size_t channels,
				  size_t thread, size_t threads)
{
	double sum = 0;

	for (size_t l = thread; l < lanes; l += threads)
		sum += (double)sums[l * channels + c];
	return sum;
}

CUDA_FUNCTION void channel_sums_row(const struct cuda_channel_sums *a, size_t c, size_t thread,
				    size_t threads)
{
	double sum = 0;

	if (a->of.lanes > 0)
		sum = sum_of_lanes(a->of.first, a->of.lanes, c, a->n, thread, threads);
	else
		for (size_t k = thread; k < a->samples * a->area; k += threads)
			sum += (double)a->x[in_channel(k, c, a->n, a->area)];
	sum = sum_of(sum);
	if (thread == 0)
		a->out[c] = a->adds ? a->out[c] + (float)sum : (float)sum;
}

/* ---- batch-norm ---- */

/* Of differences from the value of row 0, which is close to the others: little cancellation. */
CUDA_FUNCTION void statistics_of_lanes(const struct cuda_statistics *a, size_t c, size_t thread,
				       size_t threads)
{
	const double m = (double)(a->samples * a->area);
	double sum = sum_of(sum_of_lanes(a->of.first, a->of.lanes, c, a->n, thread, threads));
	double squares = sum_of(sum_of_lanes(a->of.second, a->of.lanes, c, a->n, thread, threads));

	if (thread > 0)
		return;
	sum /= m;
	a->mean[c] = (double)number_at(a->x, a->type, c) + sum;
	a->variance[c] = fmax(squares / m - sum * sum, 0.0);
}

CUDA_FUNCTION void statistics_row(const struct cuda_statistics *a, size_t c, size_t thread,
				  size_t threads)
{
	const size_t m = a->samples * a->area;
	const float *x = (const float *)a->x;
	double sum = 0, squares = 0, mean;

	if (a->of.lanes > 0) {
		statistics_of_lanes(a, c, thread, threads);
		return;
	}
	for (size_t k = thread; k < m; k += threads)
		sum += (double)x[in_channel(k, c, a->n, a->area)];
	mean = sum_of(sum) / (double)m;
	for (size_t k = thread; k < m; k += threads) {
		double d = (double)x[in_channel(k, c, a->n, a->area)] - mean;

		squares += d * d;
	}
	squares = sum_of(squares);
	if (thread > 0)
		return;
	a->mean[c] = mean;
	a->variance[c] = squares / (double)m;
}

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

CUDA_FUNCTION void normal_sums_row(const struct cuda_normal_sums *a, size_t c, size_t thread,
				   size_t threads)
{
	const size_t m = a->samples * a->area;
	const struct cuda_normal *b = &a->normals[c];
	double sum = sum_of_lanes(a->of.first, a->of.lanes, c, a->n, thread, threads);
	double product = sum_of_lanes(a->of.second, a->of.lanes, c, a->n, thread, threads);

	for (size_t k = thread; k < m && a->of.lanes == 0; k += threads) {
		size_t i = in_channel(k, c, a->n, a->area);
		float dy = normal_dy(b, a->relu, a->x[i], a->dy[i]);

		sum += (double)dy;
		product += (double)dy * (double)((a->x[i] - b->mean) * b->inverse);
	}
	sum = sum_of(sum);
	product = sum_of(product);
	if (thread > 0)
		return;
	a->means[2 * c] = (float)(sum / (double)m);
	a->means[2 * c + 1] = (float)(product / (double)m);
	a->d_gamma[c] = a->fixed ? 0 : (float)product;
	a->d_beta[c] = (float)sum;
	a->d_mean[c] = (float)(a->count * a->mean[c]);
	a->d_variance[c] = (float)(a->count * a->variance[c]);
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

/* ---- contiguous channels ---- */

/* Contribution of a row to the sums of `width` channels, from element `at` on. */
CUDA_FUNCTION void add_row(const struct cuda_partial_sums *a, size_t at, size_t c,
			   const float *begin, float *first, float *second)
{
	float x[CUDA_EIGHT], dy[CUDA_EIGHT];

	eight_at(x, a->x, a->type, at, a->width);
	if (a->of == CUDA_OF_GRADIENTS)
		eight_at(dy, a->dy, a->type, at, a->width);
	for (int k = 0; k < CUDA_EIGHT; k++) {
		if (k >= a->width)
			break;
		if (a->of == CUDA_OF_GRADIENTS) {
			const struct cuda_normal *b = &a->normals[c + (size_t)k];
			const float d = normal_dy(b, a->relu, x[k], dy[k]);

			first[k] += d;
			second[k] += d * ((x[k] - b->mean) * b->inverse);
		} else {
			const float d = x[k] - begin[k];

			first[k] += d;
			second[k] += d * d;
		}
	}
}

CUDA_FUNCTION void partial_sums_at(const struct cuda_partial_sums *a, size_t i)
{
	const size_t groups = a->channels / (size_t)a->width, lane = i / groups;
	const size_t c = i % groups * (size_t)a->width;
	float begin[CUDA_EIGHT] = {0}, first[CUDA_EIGHT] = {0}, second[CUDA_EIGHT] = {0};

	if (a->of == CUDA_OF_SPREAD)
		eight_at(begin, a->x, a->type, c, a->width);
	for (size_t row = lane; row < a->rows; row += a->lanes)
		add_row(a, row * a->channels + c, c, begin, first, second);
	for (int k = 0; k < CUDA_EIGHT; k++) {
		if (k >= a->width)
			break;
		a->first[lane * a->channels + c + (size_t)k] = first[k];
		a->second[lane * a->channels + c + (size_t)k] = second[k];
	}
}

#endif
