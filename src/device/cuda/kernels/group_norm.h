/* SPDX-License-Identifier: Apache-2.0 */
/* Group normalisation: sums of each channel of each sample, the groups' from those. */
#ifndef DEVICE_CUDA_KERNELS_GROUP_NORM_H
#define DEVICE_CUDA_KERNELS_GROUP_NORM_H

#include "numbers.h"

/* Neighbouring threads read neighbouring numbers in either layout. */
CUDA_FUNCTION void group_sums_at(const struct cuda_group_sums *a, size_t i)
{
	const size_t in_plane = a->last ? i % a->channels : i / a->lanes;
	const size_t lane = a->last ? i / a->channels % a->lanes : i % a->lanes;
	const size_t sample = i / a->channels / a->lanes;
	const size_t plane = a->last ? sample * a->channels + in_plane : in_plane;
	const size_t step = a->last ? a->channels : 1;
	const size_t at = a->last ? sample * a->area * a->channels + in_plane : plane * a->area;
	double first = 0, second = 0;

	for (size_t p = lane; p < a->area; p += a->lanes) {
		const double x = (double)number_at(a->x, a->type, at + p * step);
		const double v = a->dy ? (double)number_at(a->dy, a->type, at + p * step) : x;

		first += v;
		second += v * x;
	}
	a->sums[plane * a->lanes + lane].first = first;
	a->sums[plane * a->lanes + lane].second = second;
}

CUDA_FUNCTION void group_totals_row(const struct cuda_group_totals *a, size_t row, size_t thread,
				    size_t threads)
{
	double first = 0, second = 0;

	for (size_t k = thread; k < a->lanes; k += threads) {
		first += a->sums[row * a->lanes + k].first;
		second += a->sums[row * a->lanes + k].second;
	}
	first = sum_of(first);
	second = sum_of(second);
	if (thread == 0) {
		a->totals[row].first = first;
		a->totals[row].second = second;
	}
}

/* i: group of all samples. */
CUDA_FUNCTION void group_means_at(const struct cuda_group_means *a, size_t i)
{
	const size_t own = a->channels / a->groups;
	const double n = (double)own * (double)a->area;
	const double mean = a->gamma ? (double)a->statistics[i].mean : 0;
	const double factor = a->gamma ? (double)a->statistics[i].factor : 1;
	double first = 0, second = 0, spread;

	for (size_t k = 0; k < own; k++) {
		const struct cuda_group_pair t = a->totals[i * own + k];
		const double g = a->gamma ? (double)a->gamma[i % a->groups * own + k] : 1;

		first += g * t.first;
		second += g * factor * (t.second - mean * t.first);
	}
	first /= n;
	second /= n;
	spread = fmax(second - first * first, 0.0) + (double)a->eps;
	a->out[i].mean = (float)first;
	a->out[i].factor = (float)(a->gamma ? second : 1 / sqrt(spread));
}

/* Of an element: its channel; its group among those of all samples. */
struct place_in_group {
	uint32_t channel, group;
};

CUDA_FUNCTION struct place_in_group place_in_group(uint32_t i, int last, uint32_t channels,
						   uint32_t groups, uint32_t area)
{
	const uint32_t plane = i / (last ? 1 : area);
	struct place_in_group p;

	p.channel = plane % channels;
	p.group = i / area / channels * groups + p.channel / (channels / groups);
	return p;
}

CUDA_FUNCTION void group_norm_at(const struct cuda_group_norm *a, size_t at)
{
	const int m = of_eight(at, a->n);
	float v[CUDA_EIGHT];

	eight_at(v, a->x, a->type, at, m);
	for (int k = 0; k < CUDA_EIGHT; k++)
		if (k < m) {
			const struct place_in_group p =
				place_in_group((uint32_t)at + (uint32_t)k, a->last, a->channels,
					       a->groups, a->area);
			const struct cuda_row_statistics s = a->statistics[p.group];

			v[k] = (v[k] - s.mean) * s.factor * a->gamma[p.channel] +
			       a->beta[p.channel];
		}
	set_eight(a->y, a->type, at, m, v);
}

CUDA_FUNCTION void group_norm_backward_at(const struct cuda_group_norm_backward *a, size_t at)
{
	const int m = of_eight(at, a->n);
	float x[CUDA_EIGHT], v[CUDA_EIGHT];

	eight_at(x, a->x, a->type, at, m);
	eight_at(v, a->dy, a->type, at, m);
	for (int k = 0; k < CUDA_EIGHT; k++)
		if (k < m) {
			const struct place_in_group p =
				place_in_group((uint32_t)at + (uint32_t)k, a->last, a->channels,
					       a->groups, a->area);
			const struct cuda_row_statistics s = a->statistics[p.group];
			const struct cuda_row_statistics of = a->means[p.group];

			v[k] = s.factor * (v[k] * a->gamma[p.channel] - of.mean -
					   (x[k] - s.mean) * s.factor * of.factor);
		}
	set_eight(a->dx, a->type, at, m, v);
}

CUDA_FUNCTION void group_gradients_at(const struct cuda_group_gradients *a, size_t c)
{
	const size_t group = c / (a->channels / a->groups);
	double gamma = 0, beta = 0;

	for (size_t s = 0; s < a->samples; s++) {
		const struct cuda_row_statistics of = a->statistics[s * a->groups + group];
		const struct cuda_group_pair t = a->totals[s * a->channels + c];

		gamma += (double)of.factor * (t.second - (double)of.mean * t.first);
		beta += t.first;
	}
	a->gamma[c] = (a->adds ? a->gamma[c] : 0) + (float)gamma;
	a->beta[c] = (a->adds ? a->beta[c] : 0) + (float)beta;
}

#endif
