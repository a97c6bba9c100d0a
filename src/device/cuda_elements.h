/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What our kernels do with one element, or with a row: formulas in plain C, as the reference device
 * has them (ref_*.c). Whoever includes this defines CUDA_FUNCTION, what stands before a function,
 * and sum_of and most_of, the sum and the maximum of a number over a row's threads.
 */
#ifndef DEVICE_CUDA_ELEMENTS_H
#define DEVICE_CUDA_ELEMENTS_H

#include "cuda_args.h"

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

CUDA_FUNCTION void fill_at(const struct cuda_fill *a, size_t i)
{
	a->y[i] = a->value;
}

CUDA_FUNCTION void scale_at(const struct cuda_scale *a, size_t i)
{
	const float x = a->x[i] * a->factor;

	a->x[i] = x;
	if (!(fabsf(x) <= 3.402823466e38f)) /* FLT_MAX */
		*a->found = 1;
}

CUDA_FUNCTION void activate_at(const struct cuda_activate *a, size_t i)
{
	a->y[i] = value_of(a->kind, a->x[i]);
}

CUDA_FUNCTION void activate_backward_at(const struct cuda_activate_backward *a, size_t i)
{
	a->dx[i] = a->dy[i] * slope_of(a->kind, a->y[i]);
}

CUDA_FUNCTION void add_bias_at(const struct cuda_add_bias *a, size_t i)
{
	float bias = a->bias ? a->bias[i / a->area % a->channels] : 0;

	a->y[i] = value_of(a->kind, a->y[i] + bias);
}

CUDA_FUNCTION void add_at(const struct cuda_add *a, size_t i)
{
	float sum = a->x[0][i];

	for (int k = 1; k < a->n_x; k++)
		sum += a->x[k][i];
	a->y[i] = value_of(a->kind, sum);
}

CUDA_FUNCTION void multiply_at(const struct cuda_multiply *a, size_t i)
{
	a->y[i] = a->x[i] * a->factor[i];
}

CUDA_FUNCTION void copy_rows_at(const struct cuda_copy_rows *a, size_t i)
{
	a->to[i / a->row * a->to_step + i % a->row] =
		a->from[i / a->row * a->from_step + i % a->row];
}

CUDA_FUNCTION void update_at(const struct cuda_update *a, size_t i)
{
	const struct mu_element *u = &a->of[a->classes[i / MU_ELEMENT_RUN]];

	mu_element_update(u, a->gradients[i], &a->weights[i], a->states, i);
}

/* ---- sums over channels ---- */

/* Element k of channel c of (samples, channels, area). */
CUDA_FUNCTION size_t in_channel(size_t k, size_t c, size_t channels, size_t area)
{
	return (k / area * channels + c) * area + k % area;
}

CUDA_FUNCTION void channel_sums_row(const struct cuda_channel_sums *a, size_t c, size_t thread,
				    size_t threads)
{
	double sum = 0;

	for (size_t k = thread; k < a->samples * a->area; k += threads)
		sum += (double)a->x[in_channel(k, c, a->n, a->area)];
	sum = sum_of(sum);
	if (thread > 0)
		return;
	a->out[c] = (float)sum;
	if (a->second)
		a->second[c] = (float)sum;
}

/* ---- batch-norm ---- */

CUDA_FUNCTION void statistics_row(const struct cuda_statistics *a, size_t c, size_t thread,
				  size_t threads)
{
	const size_t m = a->samples * a->area;
	double sum = 0, squares = 0, mean;

	for (size_t k = thread; k < m; k += threads)
		sum += (double)a->x[in_channel(k, c, a->n, a->area)];
	mean = sum_of(sum) / (double)m;
	for (size_t k = thread; k < m; k += threads) {
		double d = (double)a->x[in_channel(k, c, a->n, a->area)] - mean;

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

/* The same bits in forward, in backward and when it is restored. */
CUDA_FUNCTION float normalized(const struct cuda_normal *b, float x)
{
	return fmaf(x - b->mean, b->scale, b->shift);
}

CUDA_FUNCTION void normalize_at(const struct cuda_normalize *a, size_t i)
{
	float y = normalized(&a->normals[i / a->area % a->channels], a->x[i]);

	a->y[i] = a->relu ? value_of(CUDA_RELU, y) : y;
}

/* The gradient in front of the activation. */
CUDA_FUNCTION float normal_dy(const struct cuda_normal *b, int relu, float x, float dy)
{
	return relu && !(normalized(b, x) > 0) ? 0 : dy;
}

CUDA_FUNCTION void normal_sums_row(const struct cuda_normal_sums *a, size_t c, size_t thread,
				   size_t threads)
{
	const size_t m = a->samples * a->area;
	const struct cuda_normal *b = &a->normals[c];
	double sum = 0, product = 0;

	for (size_t k = thread; k < m; k += threads) {
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

CUDA_FUNCTION void normalize_backward_at(const struct cuda_normalize_backward *a, size_t i)
{
	size_t c = i / a->area % a->channels;
	const struct cuda_normal *b = &a->normals[c];
	float dy = normal_dy(b, a->relu, a->x[i], a->dy[i]);
	float normal = (a->x[i] - b->mean) * b->inverse;

	a->dx[i] = b->scale * (dy - a->means[2 * c] - normal * a->means[2 * c + 1]);
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

/* Its part inside the image. */
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
	const int position = (int)(i % out_area);
	const float *image = a->x + i / out_area * ((size_t)w->in[0] * (size_t)w->in[1]);
	struct cuda_span rows = window_of(w, 0, position / w->out[1]);
	struct cuda_span columns = window_of(w, 1, position % w->out[1]);
	const float area = area_of(rows, columns);
	int best;
	float sum = 0;

	rows = inside(w, 0, rows);
	columns = inside(w, 1, columns);
	best = rows.begin * w->in[1] + columns.begin;
	for (int y = rows.begin; y < rows.end; y++)
		for (int x = columns.begin; x < columns.end; x++) {
			float v = image[y * w->in[1] + x];

			sum += v;
			if (v > image[best])
				best = y * w->in[1] + x;
		}
	a->y[i] = w->average ? sum / area : image[best];
	if (a->winners)
		a->winners[i] = best;
}

/* Output positions along dimension d whose windows hold input position i. */
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
	const size_t plane = i / in_area * ((size_t)w->out[0] * (size_t)w->out[1]);
	const int position = (int)(i % in_area);
	struct cuda_span rows = windows_with(w, 0, position / w->in[1]);
	struct cuda_span columns = windows_with(w, 1, position % w->in[1]);
	float sum = 0;

	for (int y = rows.begin; y < rows.end; y++)
		for (int x = columns.begin; x < columns.end; x++) {
			size_t k = plane + (size_t)(y * w->out[1] + x);

			if (w->average)
				sum += a->dy[k] / area_of(window_of(w, 0, y), window_of(w, 1, x));
			else if (a->winners[k] == position)
				sum += a->dy[k];
		}
	a->dx[i] = sum;
}

#endif
