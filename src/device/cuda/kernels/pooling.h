/* SPDX-License-Identifier: Apache-2.0 */
/* Pooling. */
#ifndef DEVICE_CUDA_KERNELS_POOLING_H
#define DEVICE_CUDA_KERNELS_POOLING_H

#include "numbers.h"

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

/* Elements of a plane, or of a volume. */
CUDA_FUNCTION size_t plane_of(const int *sizes)
{
	return (size_t)sizes[0] * (size_t)sizes[1] * (size_t)sizes[2];
}

/* Position number i of a plane of these sizes, by axis. */
struct cuda_pixel {
	int y, x, z;
};

CUDA_FUNCTION struct cuda_pixel pixel_of(const int *sizes, int i)
{
	struct cuda_pixel p = {i / sizes[1], i % sizes[1], 0};

	if (sizes[2] > 1) {
		p.z = p.y / sizes[0];
		p.y %= sizes[0];
	}
	return p;
}

CUDA_FUNCTION void pool_at(const struct cuda_pool *a, size_t i)
{
	const struct cuda_windows *w = &a->w;
	const size_t out_area = plane_of(w->out), in_area = plane_of(w->in), step = a->planes;
	const struct cuda_pixel position = pixel_of(w->out, (int)(i / step % out_area));
	const size_t image = i / step / out_area * in_area * step + i % step;
	struct cuda_span rows = window_of(w, 0, position.y);
	struct cuda_span columns = window_of(w, 1, position.x);
	struct cuda_span slices = window_of(w, 2, position.z);
	const float area = area_of(rows, columns) * (float)(slices.end - slices.begin);
	int best;
	float sum = 0, most;

	rows = inside(w, 0, rows);
	columns = inside(w, 1, columns);
	slices = inside(w, 2, slices);
	best = (slices.begin * w->in[0] + rows.begin) * w->in[1] + columns.begin;
	/* A window of an average may contain only padding. */
	most = w->average ? 0 : number_at(a->x, a->type, image + (size_t)best * step);
	for (int z = slices.begin; z < slices.end; z++)
		for (int y = rows.begin; y < rows.end; y++)
			for (int x = columns.begin; x < columns.end; x++) {
				const int k = (z * w->in[0] + y) * w->in[1] + x;
				const float v = number_at(a->x, a->type, image + (size_t)k * step);

				sum += v;
				if (v > most) {
					best = k;
					most = v;
				}
			}
	set_number(a->y, a->type, i, w->average ? sum / area : most);
	if (a->winners)
		((int *)a->winners)[i] = best;
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

/* The gradient that element `position` of a plane gets from window k, the output (z, y, x). */
CUDA_FUNCTION float from_window(const struct cuda_pool_backward *a, size_t k, int position,
				struct cuda_pixel at)
{
	const struct cuda_windows *w = &a->w;

	if (!w->average)
		return ((const int *)a->winners)[k] == position ? number_at(a->dy, a->type, k) : 0;
	if (w->kernel[2] > 1) {
		const struct cuda_span slices = window_of(w, 2, at.z);

		return number_at(a->dy, a->type, k) /
		       (area_of(window_of(w, 0, at.y), window_of(w, 1, at.x)) *
			(float)(slices.end - slices.begin));
	}
	return number_at(a->dy, a->type, k) / area_of(window_of(w, 0, at.y), window_of(w, 1, at.x));
}

CUDA_FUNCTION void pool_backward_at(const struct cuda_pool_backward *a, size_t i)
{
	const struct cuda_windows *w = &a->w;
	const size_t in_area = plane_of(w->in), out_area = plane_of(w->out), step = a->planes;
	const size_t plane = i / step / in_area * out_area * step + i % step;
	const int position = (int)(i / step % in_area);
	const struct cuda_pixel own = pixel_of(w->in, position);
	const struct cuda_span rows = windows_with(w, 0, own.y);
	const struct cuda_span columns = windows_with(w, 1, own.x);
	const struct cuda_span slices = windows_with(w, 2, own.z);
	float sum = 0;

	for (int z = slices.begin; z < slices.end; z++)
		for (int y = rows.begin; y < rows.end; y++)
			for (int x = columns.begin; x < columns.end; x++) {
				const int k = (z * w->out[0] + y) * w->out[1] + x;
				const struct cuda_pixel at = {y, x, z};

				sum += from_window(a, plane + (size_t)k * step, position, at);
			}
	set_number(a->dx, a->type, i, sum);
}

/* ---- pooling of eight contiguous channels by a thread: places are counted in groups ---- */

CUDA_FUNCTION void pool_eight(const struct cuda_pool *a, uint32_t i, int type)
{
	const struct cuda_windows *w = &a->w;
	const uint32_t groups = (uint32_t)(a->planes / CUDA_EIGHT);
	const uint32_t pixel = i / groups, position = pixel % (uint32_t)(w->out[0] * w->out[1]);
	const uint32_t sample = pixel / (uint32_t)(w->out[0] * w->out[1]);
	const uint32_t image = sample * (uint32_t)(w->in[0] * w->in[1]) * groups + i % groups;
	struct cuda_span rows = window_of(w, 0, (int)position / w->out[1]);
	struct cuda_span columns = window_of(w, 1, (int)position % w->out[1]);
	const float area = area_of(rows, columns);
	const int origin = rows.begin * w->kernel[1] + columns.begin; /* of places */
	float v[CUDA_EIGHT], result[CUDA_EIGHT] = {0};
	int best[CUDA_EIGHT];
	struct cuda_halves loaded;

	rows = inside(w, 0, rows);
	columns = inside(w, 1, columns);
	for (int c = 0; c < CUDA_EIGHT; c++)
		best[c] = rows.begin * w->kernel[1] + columns.begin - origin;
	if (!w->average) { /* a window of an average may contain only padding */
		const int k = rows.begin * w->in[1] + columns.begin;

		loaded = group_at(a->x, image + (uint32_t)k * groups);
		floats_of(result, type, &loaded);
	}
	for (int y = rows.begin; y < rows.end; y++)
		for (int x = columns.begin; x < columns.end; x++) {
			const int k = y * w->in[1] + x, place = y * w->kernel[1] + x - origin;

			loaded = group_at(a->x, image + (uint32_t)k * groups);
			floats_of(v, type, &loaded);
			for (int c = 0; c < CUDA_EIGHT; c++) {
				const bool more = !w->average && v[c] > result[c];

				best[c] = more ? place : best[c];
				result[c] = w->average ? result[c] + v[c] : more ? v[c] : result[c];
			}
		}
	for (int c = 0; c < CUDA_EIGHT && w->average; c++)
		result[c] /= area;
	set_group(a->y, i, type, result);
	if (a->winners)
		set_eight_bytes((uint8_t *)a->winners + (size_t)i * CUDA_EIGHT, best);
}

/* Windows that contain a pixel, one after another: the next is (y, x), of `left`. */
struct cuda_window_loop {
	struct cuda_span columns;
	int row, column, y, x, left;
};

CUDA_FUNCTION struct cuda_window_loop windows_around(const struct cuda_windows *w, int position)
{
	struct cuda_window_loop l;
	struct cuda_span rows;

	l.row = position / w->in[1];
	l.column = position % w->in[1];
	rows = windows_with(w, 0, l.row);
	l.columns = windows_with(w, 1, l.column);
	l.y = rows.begin;
	l.x = l.columns.begin;
	l.left = (rows.end - rows.begin) * (l.columns.end - l.columns.begin);
	return l;
}

CUDA_FUNCTION void next_window(struct cuda_window_loop *l)
{
	l->left--;
	if (++l->x < l->columns.end)
		return;
	l->x = l->columns.begin;
	l->y++;
}

enum { CUDA_WINDOWS_AT_ONCE = 4 };

/* Add the gradients of windows, of which the pixel is the maximum. */
CUDA_FUNCTION void add_maxima(const struct cuda_pool_backward *a, uint32_t plane, uint32_t groups,
			      int type, struct cuda_window_loop *l, float *sum)
{
	const struct cuda_windows *w = &a->w;
	struct cuda_halves loaded[CUDA_WINDOWS_AT_ONCE];
	uint64_t winners[CUDA_WINDOWS_AT_ONCE];
	int place[CUDA_WINDOWS_AT_ONCE];

	for (int r = 0; r < CUDA_WINDOWS_AT_ONCE; r++) {
		const uint32_t k = plane + (uint32_t)(l->y * w->out[1] + l->x) * groups;

		place[r] = -1;
		if (l->left <= 0)
			continue;
		loaded[r] = group_at(a->dy, k);
		winners[r] = load_bytes((const uint8_t *)a->winners + (size_t)k * CUDA_EIGHT);
		place[r] = (l->row - window_of(w, 0, l->y).begin) * w->kernel[1] + l->column -
			   window_of(w, 1, l->x).begin;
		next_window(l);
	}
	for (int r = 0; r < CUDA_WINDOWS_AT_ONCE; r++) {
		float v[CUDA_EIGHT];

		if (place[r] < 0)
			break;
		floats_of(v, type, &loaded[r]);
		for (int c = 0; c < CUDA_EIGHT; c++)
			if ((int)(winners[r] >> 8 * c & 0xff) == place[r])
				sum[c] += v[c];
	}
}

CUDA_FUNCTION void add_averages(const struct cuda_pool_backward *a, uint32_t plane, uint32_t groups,
				int type, struct cuda_window_loop *l, float *sum)
{
	const struct cuda_windows *w = &a->w;

	for (; l->left > 0; next_window(l)) {
		const uint32_t k = plane + (uint32_t)(l->y * w->out[1] + l->x) * groups;
		const struct cuda_halves loaded = group_at(a->dy, k);
		const float area = area_of(window_of(w, 0, l->y), window_of(w, 1, l->x));
		float v[CUDA_EIGHT];

		floats_of(v, type, &loaded);
		for (int c = 0; c < CUDA_EIGHT; c++)
			sum[c] += v[c] / area;
	}
}

CUDA_FUNCTION void pool_backward_eight(const struct cuda_pool_backward *a, uint32_t i, int type)
{
	const struct cuda_windows *w = &a->w;
	const uint32_t groups = (uint32_t)(a->planes / CUDA_EIGHT), pixel = i / groups;
	const uint32_t in_area = (uint32_t)(w->in[0] * w->in[1]);
	const uint32_t out_area = (uint32_t)(w->out[0] * w->out[1]);
	const uint32_t plane = pixel / in_area * out_area * groups + i % groups;
	struct cuda_window_loop l = windows_around(w, (int)(pixel % in_area));
	float sum[CUDA_EIGHT] = {0};

	if (w->average)
		add_averages(a, plane, groups, type, &l, sum);
	else
		while (l.left > 0)
			add_maxima(a, plane, groups, type, &l, sum);
	set_group(a->dx, i, type, sum);
}

#define CUDA_POOL(suffix, type) \
	CUDA_FUNCTION void pool_##suffix##_at(const struct cuda_pool *a, size_t i) \
	{ \
		pool_eight(a, (uint32_t)i, type); \
	} \
	CUDA_FUNCTION void pool_backward_##suffix##_at(const struct cuda_pool_backward *a, \
						       size_t i) \
	{ \
		pool_backward_eight(a, (uint32_t)i, type); \
	}
CUDA_POOL(float16, CUDA_FLOAT16)
CUDA_POOL(bfloat16, CUDA_BFLOAT16)

#endif
