/* SPDX-License-Identifier: Apache-2.0 */
/* Continuation of elements.h: the layers of transformers. */
#ifndef DEVICE_CUDA_TRANSFORMER_H
#define DEVICE_CUDA_TRANSFORMER_H

#include "sequences.h"

/* ---- smooth activations: x times a function that goes from 0 to 1 ---- */

#define ROOT_2_PI 0.797884561f /* sqrt(2 / pi) */

CUDA_FUNCTION float sigmoid_of(float x)
{
	return 1 / (1 + expf(-x));
}

/* (1 + tanh u) / 2 = sigmoid(2 u), u the argument of struct mu_activation's GELU_TANH */
CUDA_FUNCTION float gelu_gate(float x)
{
	return sigmoid_of(2 * ROOT_2_PI * (x + 0.044715f * x * x * x));
}

/* (1 + erf(x / sqrt 2)) / 2, without cancellation below 0 */
CUDA_FUNCTION float normal_share(float x)
{
	return erfcf(-x * 0.707106781f) / 2;
}

CUDA_FUNCTION float smooth_of(int kind, float x)
{
	return x * (kind == CUDA_GELU	     ? normal_share(x)
		    : kind == CUDA_GELU_TANH ? gelu_gate(x)
					     : sigmoid_of(x));
}

CUDA_FUNCTION float smooth_slope(int kind, float x)
{
	const float s = kind == CUDA_GELU_TANH ? gelu_gate(x) : sigmoid_of(x);

	switch (kind) {
	case CUDA_GELU: return normal_share(x) + x * ROOT_2_PI / 2 * expf(-x * x / 2);
	case CUDA_GELU_TANH:
		return s + 2 * x * s * (1 - s) * ROOT_2_PI * (1 + 3 * 0.044715f * x * x);
	default: return s * (1 + x * (1 - s));
	}
}

CUDA_FUNCTION void smooth_at(const struct cuda_smooth *a, size_t at)
{
	const int m = of_eight(at, a->n);
	float v[CUDA_EIGHT];

	eight_at(v, a->x, a->type, at, m);
	for (int k = 0; k < CUDA_EIGHT; k++)
		v[k] = smooth_of(a->kind, v[k]);
	set_eight(a->y, a->type, at, m, v);
}

CUDA_FUNCTION void smooth_backward_at(const struct cuda_smooth_backward *a, size_t at)
{
	const int m = of_eight(at, a->n);
	float x[CUDA_EIGHT], v[CUDA_EIGHT];

	eight_at(x, a->x, a->type, at, m);
	eight_at(v, a->dy, a->type, at, m);
	for (int k = 0; k < CUDA_EIGHT; k++)
		v[k] *= smooth_slope(a->kind, x[k]);
	set_eight(a->y, a->type, at, m, v);
}

/* ---- layer norm: a thread processes eight channels of a row at a time ---- */

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

/* ---- positions ---- */

/* Place of channel k of step t of sample s. */
CUDA_FUNCTION size_t place_of(int last, size_t s, size_t k, size_t t, size_t c, size_t steps)
{
	return last ? (s * steps + t) * c + k : (s * c + k) * steps + t;
}

struct cuda_place {
	size_t s, k, t;
};

/* What lies at place i. */
CUDA_FUNCTION struct cuda_place at_place(int last, size_t i, size_t c, size_t steps)
{
	struct cuda_place p;

	p.s = i / (c * steps);
	p.k = last ? i % c : i / steps % c;
	p.t = last ? i / c % steps : i % steps;
	return p;
}

CUDA_FUNCTION void positions_at(const struct cuda_positions *a, size_t i)
{
	const struct cuda_place p = at_place(a->last, i, a->c, a->steps);
	const float x = p.t < a->first
				? a->token[p.k]
				: number_at(a->x, a->type,
					    place_of(a->last, p.s, p.k, p.t - a->first, a->c,
						     a->steps - a->first));

	set_number(a->y, a->type, i, x + a->weight[p.t * a->c + p.k]);
}

CUDA_FUNCTION void positions_backward_at(const struct cuda_positions_backward *a, size_t i)
{
	const bool of_token = i >= a->most * a->c;
	const size_t k = i % a->c, t = of_token ? 0 : i / a->c;
	float *to = of_token ? a->token + k : a->weight + i, sum = 0;

	for (size_t s = 0; s < a->samples && t < a->steps; s++)
		sum += number_at(a->dy, a->type, place_of(a->last, s, k, t, a->c, a->steps));
	*to = a->adds ? *to + sum : sum;
}

/* ---- one step ---- */

CUDA_FUNCTION void pick_step_at(const struct cuda_pick_step *a, size_t i)
{
	a->y[i] = number_at(a->x, a->type,
			    place_of(a->last, i / a->c, i % a->c, a->step, a->c, a->steps));
}

CUDA_FUNCTION void pick_step_backward_at(const struct cuda_pick_step_backward *a, size_t i)
{
	const struct cuda_place p = at_place(a->last, i, a->c, a->steps);

	set_number(a->dx, a->type, i, p.t == a->step ? a->dy[p.s * a->c + p.k] : 0);
}

#endif
