/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the kernels compute for one element, or for one row: formulas in plain C, equal to those of
 * the reference device (src/device/ref). The including file defines CUDA_FUNCTION, the qualifiers
 * of a function, and sum_of and most_of, the sum and the maximum over the threads of a row.
 */
#ifndef DEVICE_CUDA_ELEMENTS_H
#define DEVICE_CUDA_ELEMENTS_H

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

CUDA_FUNCTION void scale_at(const struct cuda_scale *a, size_t i)
{
	const float x = a->x[i] * a->factor;

	a->x[i] = x;
	if (!(fabsf(x) <= 3.402823466e38f)) /* FLT_MAX */
		*a->found = 1;
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
	else if (a->from_last && !a->to_last) /* the same with channels and area exchanged */
		from = plain_place(i, a->area, a->channels);
	v = number_at(a->from, a->from_type, from);
	set_number(a->to, a->to_type, i, a->adds ? number_at(a->to, a->to_type, i) + v : v);
}

CUDA_FUNCTION void unpack_at(const struct cuda_unpack *a, size_t i)
{
	const size_t from = a->to_last ? plain_place(i, a->channels, a->area) : i;
	const size_t channel = from / a->area % a->channels;

	set_number(a->to, a->to_type, i,
		   ((float)a->from[from] - a->mean[channel]) / a->std[channel]);
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
	float v[CUDA_EIGHT];

	eight_at(v, a->y, a->type, at, m);
	for (int k = 0; k < CUDA_EIGHT; k++)
		v[k] = value_of(
			a->kind,
			v[k] + (a->bias ? a->bias[channel_of(at, k, a->channels, a->area)] : 0));
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

/* ---- lrn ---- */

/* First and one past the last channel of the window around channel c. */
CUDA_FUNCTION void lrn_window(size_t c, size_t channels, int size, size_t *from, size_t *to)
{
	size_t half = (size_t)size / 2;

	*from = c > half ? c - half : 0;
	*to = c + half + 1 < channels ? c + half + 1 : channels;
}

CUDA_FUNCTION void lrn_at(const struct cuda_lrn *a, size_t i)
{
	size_t c = i / a->area % a->channels, from, to;
	const float *pixel = a->x + (i - c * a->area); /* channel 0 */
	float sum = 0, scale;

	lrn_window(c, a->channels, a->size, &from, &to);
	for (size_t k = from; k < to; k++)
		sum += pixel[k * a->area] * pixel[k * a->area];
	scale = a->k + a->alpha / (float)a->size * sum;
	if (a->scale)
		a->scale[i] = scale;
	a->y[i] = a->x[i] * powf(scale, -a->beta);
}

CUDA_FUNCTION void lrn_backward_at(const struct cuda_lrn_backward *a, size_t i)
{
	size_t c = i / a->area % a->channels, first = i - c * a->area, from, to;
	float sum = 0;

	lrn_window(c, a->channels, a->size, &from, &to);
	for (size_t k = from; k < to; k++) {
		size_t e = first + k * a->area;

		sum += a->dy[e] * a->x[e] * powf(a->scale[e], -a->beta - 1);
	}
	a->dx[i] = a->dy[i] * powf(a->scale[i], -a->beta) -
		   2 * a->alpha * a->beta / (float)a->size * a->x[i] * sum;
}

/* ---- pooling ---- */

struct cuda_span {
	int begin, end;
};

/* The window of output position i along dimension d, clipped to the padded image. */
CUDA_FUNCTION struct cuda_span window_of(const struct cuda_windows *w, int d, int i)
{
	struct cuda_span s;

	s.begin = i * w->stride[d] - w->pad[d];
	s.end = s.begin + w->kernel[d];
	if (s.end > w->in[d] + w->pad[d])
		s.end = w->in[d] + w->pad[d];
	return s;
}

/* The part of the window inside the image. */
CUDA_FUNCTION struct cuda_span inside(const struct cuda_windows *w, int d, struct cuda_span s)
{
	if (s.begin < 0)
		s.begin = 0;
	if (s.end > w->in[d])
		s.end = w->in[d];
	return s;
}

CUDA_FUNCTION float area_of(struct cuda_span rows, struct cuda_span columns)
{
	return (float)(rows.end - rows.begin) * (float)(columns.end - columns.begin);
}

CUDA_FUNCTION void pool_at(const struct cuda_pool *a, size_t i)
{
	const struct cuda_windows *w = &a->w;
	const size_t out_area = (size_t)w->out[0] * (size_t)w->out[1];
	const size_t in_area = (size_t)w->in[0] * (size_t)w->in[1], step = a->planes;
	const int position = (int)(i / step % out_area);
	const size_t image = i / step / out_area * in_area * step + i % step;
	struct cuda_span rows = window_of(w, 0, position / w->out[1]);
	struct cuda_span columns = window_of(w, 1, position % w->out[1]);
	const float area = area_of(rows, columns);
	int best;
	float sum = 0, most;

	rows = inside(w, 0, rows);
	columns = inside(w, 1, columns);
	best = rows.begin * w->in[1] + columns.begin;
	/* A window of an average may contain only padding. */
	most = w->average ? 0 : number_at(a->x, a->type, image + (size_t)best * step);
	for (int y = rows.begin; y < rows.end; y++)
		for (int x = columns.begin; x < columns.end; x++) {
			const int k = y * w->in[1] + x;
			const float v = number_at(a->x, a->type, image + (size_t)k * step);

			sum += v;
			if (v > most) {
				best = k;
				most = v;
			}
		}
	set_number(a->y, a->type, i, w->average ? sum / area : most);
	if (a->winners)
		a->winners[i] = best;
}

/* Output positions along dimension d whose windows contain input position i. */
CUDA_FUNCTION struct cuda_span windows_with(const struct cuda_windows *w, int d, int i)
{
	const int low = i + w->pad[d] - w->kernel[d]; /* a window that begins here just misses i */
	struct cuda_span s;

	s.begin = low < 0 ? 0 : low / w->stride[d] + 1;
	s.end = (i + w->pad[d]) / w->stride[d] + 1;
	if (s.end > w->out[d])
		s.end = w->out[d];
	return s;
}

CUDA_FUNCTION void pool_backward_at(const struct cuda_pool_backward *a, size_t i)
{
	const struct cuda_windows *w = &a->w;
	const size_t in_area = (size_t)w->in[0] * (size_t)w->in[1];
	const size_t out_area = (size_t)w->out[0] * (size_t)w->out[1], step = a->planes;
	const size_t plane = i / step / in_area * out_area * step + i % step;
	const int position = (int)(i / step % in_area);
	struct cuda_span rows = windows_with(w, 0, position / w->in[1]);
	struct cuda_span columns = windows_with(w, 1, position % w->in[1]);
	float sum = 0;

	for (int y = rows.begin; y < rows.end; y++)
		for (int x = columns.begin; x < columns.end; x++) {
			size_t k = plane + (size_t)(y * w->out[1] + x) * step;

			if (w->average)
				sum += number_at(a->dy, a->type, k) /
				       area_of(window_of(w, 0, y), window_of(w, 1, x));
			else if (a->winners[k] == position)
				sum += number_at(a->dy, a->type, k);
		}
	set_number(a->dx, a->type, i, sum);
}

#endif
