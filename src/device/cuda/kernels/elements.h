/* SPDX-License-Identifier: Apache-2.0 */
/* What works element by element: activations, conversions, bias, sums, updates. */
#ifndef DEVICE_CUDA_KERNELS_ELEMENTS_H
#define DEVICE_CUDA_KERNELS_ELEMENTS_H

#include "numbers.h"

/* ---- element by element ---- */

CUDA_FUNCTION float value_of(int kind, float x)
{
	switch (kind) {
	case CUDA_RELU: return x <= 0 ? 0 : x; /* NaN stays NaN */
	case CUDA_TANH: return tanhf(x);
	case CUDA_SIGMOID: return 1 / (1 + expf(-x));
	default: return x;
	}
}

CUDA_FUNCTION float slope_of(int kind, float y)
{
	switch (kind) {
	case CUDA_RELU: return y > 0 ? 1.0f : 0.0f;
	case CUDA_TANH: return 1 - y * y;
	case CUDA_SIGMOID: return y * (1 - y);
	default: return 1;
	}
}

/* Place of element i of (samples, area, channels) in (samples, channels, area), and back. */
CUDA_FUNCTION size_t plain_place(size_t i, size_t channels, size_t area)
{
	const size_t position = i / channels;

	return (position / area * channels + i % channels) * area + position % area;
}

CUDA_FUNCTION void convert_at(const struct cuda_convert *a, size_t i)
{
	size_t from = i;
	float v;

	if (a->to_last && !a->from_last)
		from = plain_place(i, a->channels, a->area);
	else if (a->from_last && !a->to_last)
		from = (i / a->area / a->channels * a->area + i % a->area) * a->row +
		       i / a->area % a->channels;
	v = number_at(a->from, a->from_type, from);
	set_number(a->to, a->to_type, i, a->adds ? number_at(a->to, a->to_type, i) + v : v);
}

/* plain_place in 32 bits: divisions by 64 bits take longer than the memory does. */
CUDA_FUNCTION uint32_t place_of_weight(uint32_t i, uint32_t channels, uint32_t area)
{
	const uint32_t position = i / channels;

	return (position / area * channels + i % channels) * area + position % area;
}

CUDA_FUNCTION void lay_weights_row(const struct cuda_lay_weights *a, size_t row, size_t thread,
				   size_t threads)
{
	const uint32_t r = (uint32_t)row;
	uint32_t n, channels, area, at, end;
	uint16_t *laid;
	float *plain;
	int k = 0, adds;

	while (k + 1 < a->n_of && a->of[k + 1].first <= r)
		k++;
	/* by index: a pointer into the arguments puts them into local memory */
	plain = a->of[k].plain;
	laid = a->of[k].laid;
	n = a->of[k].n;
	channels = a->of[k].channels;
	area = a->of[k].area;
	adds = a->of[k].adds;
	at = (r - a->of[k].first) * CUDA_WEIGHTS_ROW;
	end = n - at < CUDA_WEIGHTS_ROW ? n : at + CUDA_WEIGHTS_ROW;
	for (uint32_t i = at + (uint32_t)thread; i < end; i += (uint32_t)threads) {
		if (a->back) {
			const uint32_t from = area == 1 ? i : place_of_weight(i, area, channels);
			const float v = number_at(laid, a->type, from);

			plain[i] = adds ? plain[i] + v : v;
		} else {
			const uint32_t from = area == 1 ? i : place_of_weight(i, channels, area);

			set_number(laid, a->type, i, plain[from]);
		}
	}
}

CUDA_FUNCTION void unpack_one(const struct cuda_unpack *a, size_t from, size_t c, size_t to)
{
	/* not mean[c]: an index that is computed puts the arguments into local memory */
	const float mean = c == 0 ? a->mean[0] : c == 1 ? a->mean[1] : a->mean[2];
	const float std = c == 0 ? a->std[0] : c == 1 ? a->std[1] : a->std[2];

	set_number(a->to, a->to_type, to, ((float)a->from[from] - mean) / std);
}

CUDA_FUNCTION void unpack_at(const struct cuda_unpack *a, size_t i)
{
	const size_t of = i / a->area;

	if (!a->to_last)
		unpack_one(a, i, of % a->channels, i);
	else
		for (size_t c = 0; c < a->channels; c++)
			unpack_one(a, (of * (a->channels - 1) + c) * a->area + i, c,
				   i * a->channels + c);
}

CUDA_FUNCTION void copy_rows_at(const struct cuda_copy_rows *a, size_t i)
{
	const size_t row = i / a->row, k = i % a->row;

	set_number(a->to, a->type, row * a->to_step + k,
		   number_at(a->from, a->type, row * a->from_step + k));
}

CUDA_FUNCTION void update_at(const struct cuda_update *a, size_t i)
{
	const struct mu_element *u = &a->of[a->classes[i / MU_ELEMENT_RUN]];

	mu_element_update(u, a->gradients[i], &a->weights[i], a->states, i);
}

/* ---- eight elements at a time, from `at` on ---- */

CUDA_FUNCTION void scale_at(const struct cuda_scale *a, size_t at)
{
	const int m = of_eight(at, a->n);
	float v[CUDA_EIGHT];
	bool good = true;

	eight_at(v, a->x, CUDA_FLOAT32, at, m);
	for (int k = 0; k < CUDA_EIGHT; k++) {
		v[k] *= a->factor;
		good &= k >= m || fabsf(v[k]) <= 3.402823466e38f; /* FLT_MAX */
	}
	set_eight(a->x, CUDA_FLOAT32, at, m, v);
	if (!good)
		set_flag(a->found);
}

CUDA_FUNCTION void activate_at(const struct cuda_activate *a, size_t at)
{
	const int m = of_eight(at, a->n);
	float v[CUDA_EIGHT];

	eight_at(v, a->x, a->type, at, m);
	for (int k = 0; k < CUDA_EIGHT; k++)
		v[k] = value_of(a->kind, v[k]);
	set_eight(a->y, a->type, at, m, v);
}

CUDA_FUNCTION void activate_backward_at(const struct cuda_activate_backward *a, size_t at)
{
	const int m = of_eight(at, a->n);
	float y[CUDA_EIGHT], v[CUDA_EIGHT];

	eight_at(y, a->y, a->type, at, m);
	eight_at(v, a->dy, a->type, at, m);
	for (int k = 0; k < CUDA_EIGHT; k++)
		v[k] *= slope_of(a->kind, y[k]);
	set_eight(a->dx, a->type, at, m, v);
}

/* Channel of element at + k: one division for eight elements where channels are contiguous. */
CUDA_FUNCTION size_t channel_of(size_t at, int k, size_t channels, size_t area)
{
	if (area == 1 && channels % CUDA_EIGHT == 0)
		return at % channels + (size_t)k;
	return (at + (size_t)k) / area % channels;
}

CUDA_FUNCTION void add_bias_at(const struct cuda_add_bias *a, size_t at)
{
	const int m = of_eight(at, a->n);
	float v[CUDA_EIGHT], bias[CUDA_EIGHT] = {0};

	eight_at(v, a->y, a->type, at, m);
	if (a->bias && a->area == 1 && a->channels % CUDA_EIGHT == 0)
		eight_floats(bias, a->bias + (uint32_t)at % (uint32_t)a->channels);
	else
		for (int k = 0; a->bias && k < CUDA_EIGHT; k++)
			bias[k] = a->bias[channel_of(at, k, a->channels, a->area)];
	for (int k = 0; k < CUDA_EIGHT; k++)
		v[k] = value_of(a->kind, v[k] + bias[k]);
	set_eight(a->y, a->type, at, m, v);
}

CUDA_FUNCTION void add_at(const struct cuda_add *a, size_t at)
{
	const int m = of_eight(at, a->n);
	float sum[CUDA_EIGHT], v[CUDA_EIGHT];

	eight_at(sum, a->x[0], a->type, at, m);
	for (int x = 1; x < a->n_x; x++) {
		eight_at(v, a->x[x], a->type, at, m);
		for (int k = 0; k < CUDA_EIGHT; k++)
			sum[k] += v[k];
	}
	if (a->of)
		eight_at(v, a->of, a->type, at, m);
	for (int k = 0; k < CUDA_EIGHT; k++)
		sum[k] = a->of ? sum[k] * slope_of(a->kind, v[k]) : value_of(a->kind, sum[k]);
	set_eight(a->y, a->type, at, m, sum);
}

CUDA_FUNCTION void multiply_at(const struct cuda_multiply *a, size_t at)
{
	const int m = of_eight(at, a->n);
	float v[CUDA_EIGHT], factor[CUDA_EIGHT];

	eight_at(v, a->x, a->type, at, m);
	eight_at(factor, a->factor, CUDA_FLOAT32, at, m);
	for (int k = 0; k < CUDA_EIGHT; k++)
		v[k] *= factor[k];
	set_eight(a->y, a->type, at, m, v);
}

CUDA_FUNCTION void product_of_at(const struct cuda_product_of *a, size_t at)
{
	const int m = of_eight(at, a->n);
	float x[CUDA_EIGHT], v[CUDA_EIGHT];

	eight_at(x, a->a, a->type, at, m);
	eight_at(v, a->b, a->type, at, m);
	for (int k = 0; k < CUDA_EIGHT; k++)
		v[k] *= x[k];
	set_eight(a->y, a->type, at, m, v);
}

/* v times the eight of x become the eight of dx. */
CUDA_FUNCTION void set_product(const struct cuda_product_of *a, size_t at, void *dx, const void *x,
			       const float *v)
{
	const int m = of_eight(at, a->n);
	float y[CUDA_EIGHT];

	if (!dx)
		return;
	eight_at(y, x, a->type, at, m);
	for (int k = 0; k < CUDA_EIGHT; k++)
		y[k] *= v[k];
	set_eight(dx, a->type, at, m, y);
}

CUDA_FUNCTION void product_of_backward_at(const struct cuda_product_of_backward *a, size_t at)
{
	float dy[CUDA_EIGHT];

	eight_at(dy, a->dy, a->type, at, of_eight(at, a->n));
	set_product(a, at, a->da, a->b, dy);
	set_product(a, at, a->db, a->a, dy);
}

#endif
