/* SPDX-License-Identifier: Apache-2.0 */
/* Continuation of elements.h: sums over channels, batch-norm. */
#ifndef DEVICE_CUDA_NORMS_H
#define DEVICE_CUDA_NORMS_H

#include "elements.h"

/*
 * Design of the kernels over contiguous channels (the types' own; ResNet-50 spends its time here):
 * - A thread keeps one group of eight channels over many rows. Neighbouring threads have
 *   neighbouring groups: a warp reads and writes 512 contiguous bytes.
 * - What it needs to know of its channels is loaded once, by loads of 16 bytes, into registers.
 * - The loads of several rows are in flight at a time, four of 16 bytes a thread.
 * - The type is a constant of each kernel; its loop has no branch on it and no other loads.
 * - At most 64 registers forward and 80 backward (five constants a channel): 1,024 and 768 threads
 *   a processor, with 64 and 48 KiB in flight; about 25 KiB cover the latency of an H200's memory.
 * - Sums: float in a thread, double over the threads of a block (in shared memory) and over blocks,
 *   in an order that depends on the shape and the GPU's number of processors only.
 * - A block's work is written for any number of threads: tests on the host run it with one, to
 *   the same bits.
 * mpi_tests/gpu/test_sass.sh checks the machine code.
 */

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

CUDA_FUNCTION void normal_sums_row(const struct cuda_normal_sums *a, size_t row, size_t thread,
				   size_t threads)
{
	CUDA_SHARED double room[2][CUDA_THREADS];
	const size_t first = row * CUDA_EIGHT;

	add_lanes(room, &a->of, first, thread, threads);
	for (size_t k = thread; k < CUDA_EIGHT && first + k < a->of.channels; k += threads) {
		const double sum = room[0][k], product = room[1][k];
		const size_t c = first + k;

		a->means[2 * c] = (float)(sum * a->share);
		a->means[2 * c + 1] = (float)(product * a->share);
		a->d_gamma[c] = a->fixed ? 0 : (float)product;
		a->d_beta[c] = (float)sum;
		a->d_mean[c] = (float)(a->count * a->mean[c]);
		a->d_variance[c] = (float)(a->count * a->variance[c]);
	}
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

/* ---- contiguous channels ---- */

/* What a thread keeps of its eight channels. */
struct cuda_normal_eight {
	float mean[CUDA_EIGHT], inverse[CUDA_EIGHT], scale[CUDA_EIGHT], shift[CUDA_EIGHT];
};

CUDA_FUNCTION void load_normals(struct cuda_normal_eight *b, const struct cuda_normal *from)
{
	for (int k = 0; k < CUDA_EIGHT; k++) {
		float v[4];

		four_floats(v, &from[k].mean);
		b->mean[k] = v[0];
		b->inverse[k] = v[1];
		b->scale[k] = v[2];
		b->shift[k] = v[3];
	}
}

enum { CUDA_AT_ONCE = 4 }; /* loads in flight */

/* Add `rows` rows from group `at` on, `step` apart. */
CUDA_FUNCTION void add_values(const struct cuda_partial_sums *a, uint32_t at, uint32_t step,
			      int type, uint32_t rows, const float *begin, float *first,
			      float *second)
{
	struct cuda_halves loaded[CUDA_AT_ONCE];

	for (uint32_t r = 0; r < rows; r++)
		loaded[r] = group_at(a->x, at + r * step);
	for (uint32_t r = 0; r < rows; r++) {
		float x[CUDA_EIGHT];

		floats_of(x, type, &loaded[r]);
		for (int k = 0; k < CUDA_EIGHT; k++) {
			const float d = x[k] - begin[k];

			first[k] += d;
			second[k] = fmaf(d, d, second[k]);
		}
	}
}

CUDA_FUNCTION void add_gradients(const struct cuda_partial_sums *a, uint32_t at, uint32_t step,
				 int type, uint32_t rows, const struct cuda_normal_eight *b,
				 float *first, float *second)
{
	struct cuda_halves loaded[CUDA_AT_ONCE / 2], loaded_dy[CUDA_AT_ONCE / 2];

	for (uint32_t r = 0; r < rows; r++) {
		loaded[r] = group_at(a->x, at + r * step);
		loaded_dy[r] = group_at(a->dy, at + r * step);
	}
	for (uint32_t r = 0; r < rows; r++) {
		float x[CUDA_EIGHT], dy[CUDA_EIGHT];

		floats_of(x, type, &loaded[r]);
		floats_of(dy, type, &loaded_dy[r]);
		for (int k = 0; k < CUDA_EIGHT; k++) {
			const float d = x[k] - b->mean[k];
			const bool off = a->relu && !(fmaf(d, b->scale[k], b->shift[k]) > 0);
			const float v = off ? 0 : dy[k];

			first[k] += v;
			second[k] = fmaf(v, d, second[k]);
		}
	}
}

/* A thread's share of a block: of channels c .. c + 7, groups from `at` on, `step` apart. */
CUDA_FUNCTION void add_share(const struct cuda_partial_sums *a, uint32_t at, uint32_t step,
			     size_t c, int type, bool gradients, float *first, float *second)
{
	const uint32_t end = (uint32_t)(a->samples * a->channels / CUDA_EIGHT);
	const uint32_t rows = gradients ? CUDA_AT_ONCE / 2 : CUDA_AT_ONCE;
	struct cuda_normal_eight b;
	float begin[CUDA_EIGHT] = {0};

	if (gradients) {
		load_normals(&b, a->normals + c);
		for (; at + (rows - 1) * step < end; at += rows * step)
			add_gradients(a, at, step, type, rows, &b, first, second);
		for (; at < end; at += step)
			add_gradients(a, at, step, type, 1, &b, first, second);
		for (size_t k = 0; k < CUDA_EIGHT; k++)
			second[k] *= a->normals[c + k].inverse; /* not kept: registers */
	} else {
		if (a->of == CUDA_OF_SPREAD)
			eight_halves(begin, type, (const uint16_t *)a->x + c);
		for (; at + (rows - 1) * step < end; at += rows * step)
			add_values(a, at, step, type, rows, begin, first, second);
		for (; at < end; at += step)
			add_values(a, at, step, type, 1, begin, first, second);
	}
}

/* A block adds `together` rows at a time, of `width` groups of eight channels from `group` on. */
CUDA_FUNCTION void sums_of_block(const struct cuda_partial_sums *a, size_t block, size_t thread,
				 size_t threads, int type, bool gradients)
{
	CUDA_SHARED float room[2 * CUDA_EIGHT][CUDA_THREADS];
	const unsigned groups = (unsigned)(a->channels / CUDA_EIGHT);
	const unsigned chunks = (groups + CUDA_THREADS - 1) / CUDA_THREADS;
	const unsigned group = (unsigned)block % chunks * CUDA_THREADS;
	const unsigned lane = (unsigned)block / chunks, left = groups - group;
	const unsigned width = left < CUDA_THREADS ? left : (unsigned)CUDA_THREADS;
	const unsigned together = CUDA_THREADS / width;

	for (unsigned t = (unsigned)thread; t < width * together; t += (unsigned)threads) {
		const unsigned row = lane * together + t / width, g = group + t % width;
		float first[CUDA_EIGHT] = {0}, second[CUDA_EIGHT] = {0};

		add_share(a, row * groups + g, (uint32_t)a->lanes * together * groups,
			  (size_t)g * CUDA_EIGHT, type, gradients, first, second);
		for (int k = 0; k < CUDA_EIGHT; k++) {
			room[k][t] = first[k];
			room[CUDA_EIGHT + k][t] = second[k];
		}
	}
	CUDA_BARRIER();
	for (unsigned i = (unsigned)thread; i < width * 2 * CUDA_EIGHT; i += (unsigned)threads) {
		const unsigned k = i / width, g = i % width;
		float *out = k < CUDA_EIGHT ? a->first : a->second;
		double sum = 0;

		for (unsigned r = 0; r < together; r++)
			sum += (double)room[k][r * width + g];
		out[lane * a->channels + (size_t)(group + g) * CUDA_EIGHT + k % CUDA_EIGHT] =
			(float)sum;
	}
	CUDA_BARRIER();
}

#define CUDA_SUMS(name, type, gradients) \
	CUDA_FUNCTION void name##_row(const struct cuda_partial_sums *a, size_t row, \
				      size_t thread, size_t threads) \
	{ \
		sums_of_block(a, row, thread, threads, type, gradients); \
	}
CUDA_SUMS(value_sums_float16, CUDA_FLOAT16, false)
CUDA_SUMS(value_sums_bfloat16, CUDA_BFLOAT16, false)
CUDA_SUMS(gradient_sums_float16, CUDA_FLOAT16, true)
CUDA_SUMS(gradient_sums_bfloat16, CUDA_BFLOAT16, true)

/* `rows` rows from group `at` on, `step` apart. Values up to `low` become `low`: 0 is ReLU. */
CUDA_FUNCTION void normalize_rows(const struct cuda_normalize *a, uint32_t at, uint32_t step,
				  int type, bool adds, uint32_t rows,
				  const struct cuda_normal_eight *b, float low)
{
	struct cuda_halves loaded[CUDA_AT_ONCE], added[CUDA_AT_ONCE];

	for (uint32_t r = 0; r < rows; r++) {
		loaded[r] = group_at(a->x, at + r * step);
		if (adds)
			added[r] = group_at(a->add, at + r * step);
	}
	for (uint32_t r = 0; r < rows; r++) {
		float v[CUDA_EIGHT], add[CUDA_EIGHT] = {0};

		floats_of(v, type, &loaded[r]);
		if (adds)
			floats_of(add, type, &added[r]);
		for (int k = 0; k < CUDA_EIGHT; k++) {
			float y = fmaf(v[k] - b->mean[k], b->scale[k], b->shift[k]);

			if (adds)
				y += add[k];
			v[k] = y <= low ? low : y; /* NaN stays NaN */
		}
		set_group(a->y, at + r * step, type, v);
	}
}

/* Thread i of n has group i % groups in rows i / groups, + n / groups, ... */
CUDA_FUNCTION void normalize_last(const struct cuda_normalize *a, size_t i, int type, bool adds)
{
	const uint32_t rows = adds ? CUDA_AT_ONCE / 2 : CUDA_AT_ONCE;
	const uint32_t groups = (uint32_t)(a->channels / CUDA_EIGHT), step = (uint32_t)a->n;
	const uint32_t end = (uint32_t)a->samples * groups;
	const float low = a->relu ? 0 : -INFINITY;
	struct cuda_normal_eight b;
	uint32_t at = (uint32_t)i;

	load_normals(&b, a->normals + (size_t)(at % groups) * CUDA_EIGHT);
	for (; at + (rows - 1) * step < end; at += rows * step)
		normalize_rows(a, at, step, type, adds, rows, &b, low);
	for (; at < end; at += step)
		normalize_rows(a, at, step, type, adds, 1, &b, low);
}

/* scale (dy - mean of dy - normal (mean of dy normal)); share: inverse (mean of dy normal) */
CUDA_FUNCTION void gradient_rows(const struct cuda_normalize_backward *a, uint32_t at,
				 uint32_t step, int type, uint32_t rows,
				 const struct cuda_normal_eight *b, const float *mean_dy,
				 const float *share)
{
	struct cuda_halves loaded[CUDA_AT_ONCE / 2], loaded_dy[CUDA_AT_ONCE / 2];

	for (uint32_t r = 0; r < rows; r++) {
		loaded[r] = group_at(a->x, at + r * step);
		loaded_dy[r] = group_at(a->dy, at + r * step);
	}
	for (uint32_t r = 0; r < rows; r++) {
		float x[CUDA_EIGHT], v[CUDA_EIGHT];

		floats_of(x, type, &loaded[r]);
		floats_of(v, type, &loaded_dy[r]);
		for (int k = 0; k < CUDA_EIGHT; k++) {
			const float d = x[k] - b->mean[k];
			const bool off = a->relu && !(fmaf(d, b->scale[k], b->shift[k]) > 0);
			const float dy = off ? 0 : v[k];

			v[k] = b->scale[k] * fmaf(-d, share[k], dy - mean_dy[k]);
		}
		set_group(a->dx, at + r * step, type, v);
	}
}

CUDA_FUNCTION void normalize_backward_last(const struct cuda_normalize_backward *a, size_t i,
					   int type)
{
	const uint32_t rows = CUDA_AT_ONCE / 2;
	const uint32_t groups = (uint32_t)(a->channels / CUDA_EIGHT), step = (uint32_t)a->n;
	const uint32_t end = (uint32_t)a->samples * groups;
	struct cuda_normal_eight b;
	float mean_dy[CUDA_EIGHT], share[CUDA_EIGHT];
	uint32_t at = (uint32_t)i;
	const size_t c = (size_t)(at % groups) * CUDA_EIGHT;

	load_normals(&b, a->normals + c);
	for (size_t k = 0; k < CUDA_EIGHT; k += 2) {
		float v[4];

		four_floats(v, a->means + 2 * (c + k));
		mean_dy[k] = v[0];
		share[k] = v[1] * b.inverse[k];
		mean_dy[k + 1] = v[2];
		share[k + 1] = v[3] * b.inverse[k + 1];
	}
	for (; at + (rows - 1) * step < end; at += rows * step)
		gradient_rows(a, at, step, type, rows, &b, mean_dy, share);
	for (; at < end; at += step)
		gradient_rows(a, at, step, type, 1, &b, mean_dy, share);
}

#define CUDA_LAST(suffix, type) \
	CUDA_FUNCTION void normalize_##suffix##_at(const struct cuda_normalize *a, size_t i) \
	{ \
		if (a->add) \
			normalize_last(a, i, type, true); \
		else \
			normalize_last(a, i, type, false); \
	} \
	CUDA_FUNCTION void normalize_backward_##suffix##_at( \
		const struct cuda_normalize_backward *a, size_t i) \
	{ \
		normalize_backward_last(a, i, type); \
	}
CUDA_LAST(float16, CUDA_FLOAT16)
CUDA_LAST(bfloat16, CUDA_BFLOAT16)

#endif
