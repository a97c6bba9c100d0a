/* SPDX-License-Identifier: Apache-2.0 */
/* Batch-norm over contiguous channels, in groups of eight. */
#ifndef DEVICE_CUDA_KERNELS_BATCH_NORM_GROUPS_H
#define DEVICE_CUDA_KERNELS_BATCH_NORM_GROUPS_H

#include "batch_norm.h"

/*
 * Design of the kernels over contiguous channels (the types' own; ResNet-50 spends its time here):
 * - A thread keeps one group of eight channels over many rows. Neighbouring threads have
 *   neighbouring groups: a warp reads and writes 512 contiguous bytes, for sums 64 at least.
 * - What it needs to know of its channels is loaded once, by loads of 16 bytes, into registers.
 * - The loads of several rows are in flight at a time, four of 16 bytes a thread.
 * - The type is a constant of each kernel; its loop has no branch on it and no other loads.
 * - At most 64 registers forward and 80 backward (five constants a channel): 1,024 and 768 threads
 *   a processor, with 64 and 48 KiB in flight; about 25 KiB cover the latency of an H200's memory.
 * - Sums: float in a thread, double over the threads of a block (in shared memory) and over blocks,
 *   in an order that depends on the shape and the GPU's number of processors only.
 * - Backward, the block that ends last of those with the same channels adds what they wrote, whose
 *   order does not depend on which block that is: no kernel of its own. One processor reads it, so
 *   it must be little: blocks have few groups (width_of in channel_sums.c).
 * - A block's work is written for any number of threads: tests on the host run it with one, to
 *   the same bits.
 * mpi_tests/gpu/test_sass.sh checks the machine code.
 */

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
enum { CUDA_SUMS_OF_VALUES, CUDA_SUMS_OF_GRADIENTS, CUDA_SUMS_OF_BRANCHES };

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

/* The gradients of two branches, added where the ReLU let its input pass. */
CUDA_FUNCTION void add_joined(const struct cuda_partial_sums *a, uint32_t at, uint32_t step,
			      int type, uint32_t rows, const float *mean, float *first,
			      float *second)
{
	struct cuda_halves loaded[CUDA_AT_ONCE / 2], one[CUDA_AT_ONCE / 2], other[CUDA_AT_ONCE / 2];
	uint32_t on[CUDA_AT_ONCE / 2];

	for (uint32_t r = 0; r < rows; r++) {
		loaded[r] = group_at(a->x, at + r * step);
		one[r] = group_at(a->dy, at + r * step);
		other[r] = group_at(a->more, at + r * step);
		on[r] = a->on[at + r * step];
	}
	for (uint32_t r = 0; r < rows; r++) {
		float x[CUDA_EIGHT], v[CUDA_EIGHT], dy[CUDA_EIGHT];
		struct cuda_halves sum;

		floats_of(x, type, &loaded[r]);
		floats_of(v, type, &one[r]);
		floats_of(dy, type, &other[r]);
		for (int k = 0; k < CUDA_EIGHT; k++)
			dy[k] = on[r] >> k & 1 ? v[k] + dy[k] : 0;
		sum = halves_of(type, dy);
		store_group(a->sum, at + r * step, &sum);
		floats_of(dy, type, &sum);
		for (int k = 0; k < CUDA_EIGHT; k++) {
			first[k] += dy[k];
			second[k] = fmaf(dy[k], x[k] - mean[k], second[k]);
		}
	}
}

/* A thread's share of a block: of channels c .. c + 7, groups from `at` on, `step` apart. */
CUDA_FUNCTION void add_share(const struct cuda_partial_sums *a, uint32_t at, uint32_t step,
			     size_t c, int type, int kind, float *first, float *second)
{
	const uint32_t end = (uint32_t)(a->samples * a->channels / CUDA_EIGHT);
	const uint32_t rows = kind == CUDA_SUMS_OF_VALUES ? CUDA_AT_ONCE : CUDA_AT_ONCE / 2;
	struct cuda_normal_eight b;
	float begin[CUDA_EIGHT] = {0};

	if (kind == CUDA_SUMS_OF_BRANCHES) {
		for (size_t k = 0; k < CUDA_EIGHT; k++)
			begin[k] = a->normals[c + k].mean;
		for (; at + (rows - 1) * step < end; at += rows * step)
			add_joined(a, at, step, type, rows, begin, first, second);
		for (; at < end; at += step)
			add_joined(a, at, step, type, 1, begin, first, second);
		for (size_t k = 0; k < CUDA_EIGHT; k++)
			second[k] *= a->normals[c + k].inverse;
	} else if (kind == CUDA_SUMS_OF_GRADIENTS) {
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

/* What a block adds: `together` rows at a time, of `width` groups of eight from `group` on. */
struct cuda_part {
	unsigned lane, group, width, together;
};

CUDA_FUNCTION struct cuda_part find_part(const struct cuda_partial_sums *a, size_t block)
{
	const unsigned groups = (unsigned)(a->channels / CUDA_EIGHT), most = (unsigned)a->width;
	const unsigned chunks = (groups + most - 1) / most, chunk = (unsigned)block % chunks;
	const unsigned left = groups - chunk * most, width = left < most ? left : most;
	const struct cuda_part s = {(unsigned)block / chunks, chunk * most, width,
				    CUDA_THREADS / width};

	return s;
}

enum { CUDA_QUAD = 4, CUDA_LANES_AT_ONCE = 8 };

/* What a block's threads tell each other: a row of `rows` for each of their sums, which is `width`
 * longer than the threads, so that those who add columns of it use different banks; then sums of
 * quads of channels. */
union cuda_sums_room {
	float rows[2 * CUDA_EIGHT * (CUDA_THREADS + CUDA_MOST_WIDTH)];
	double quads[CUDA_QUAD][CUDA_THREADS];
};

/* The sums of the block's threads become a lane. */
CUDA_FUNCTION void write_lane(const struct cuda_partial_sums *a, const struct cuda_part *s,
			      const union cuda_sums_room *room, unsigned thread, unsigned threads)
{
	for (unsigned i = thread; i < s->width * 2 * CUDA_EIGHT; i += threads) {
		const unsigned k = i / s->width, g = i % s->width;
		const float *row = room->rows + k * (CUDA_THREADS + s->width) + g;
		float *out = k < CUDA_EIGHT ? a->first : a->second;
		double sum = 0;

		for (unsigned r = 0; r < s->together; r++)
			sum += (double)row[r * s->width];
		out[s->lane * a->channels + (size_t)(s->group + g) * CUDA_EIGHT + k % CUDA_EIGHT] =
			(float)sum;
	}
}

/* Four channels' sums over lanes l, l + step, ... */
CUDA_FUNCTION void add_quad(const struct cuda_partial_sums *a, const float *from, unsigned l,
			    unsigned step, double *sums)
{
	const unsigned lanes = (unsigned)a->lanes;

	for (; l < lanes; l += CUDA_LANES_AT_ONCE * step) {
		float v[CUDA_LANES_AT_ONCE][CUDA_QUAD];

		for (unsigned r = 0; r < CUDA_LANES_AT_ONCE; r++)
			four_of_others(v[r], from + (l + r * step < lanes ? l + r * step : l) *
							     a->channels);
		for (unsigned r = 0; r < CUDA_LANES_AT_ONCE; r++)
			for (int k = 0; k < CUDA_QUAD; k++)
				sums[k] += l + r * step < lanes ? (double)v[r][k] : 0;
	}
}

/* All lanes of the block's channels. Thread t adds quad t % quads, of `first` or of `second`, of
 * every slices-th lane. */
CUDA_FUNCTION void add_lanes_of(const struct cuda_partial_sums *a, const struct cuda_part *s,
				union cuda_sums_room *room, unsigned thread, unsigned threads)
{
	const unsigned half = s->width * CUDA_EIGHT / CUDA_QUAD, quads = 2 * half;
	const unsigned slices = CUDA_THREADS / quads;
	const size_t begin = (size_t)s->group * CUDA_EIGHT;

	for (unsigned t = thread; t < quads * slices; t += threads) {
		const unsigned quad = t % quads;
		const float *from = (quad < half ? a->first : a->second) + begin;
		double sums[CUDA_QUAD] = {0};

		add_quad(a, from + quad % half * CUDA_QUAD, t / quads, slices, sums);
		for (int k = 0; k < CUDA_QUAD; k++)
			room->quads[k][t] = sums[k];
	}
	CUDA_BARRIER();
	for (unsigned c = thread; c < s->width * CUDA_EIGHT; c += threads) {
		const double *of = room->quads[c % CUDA_QUAD] + c / CUDA_QUAD;
		double sum = 0, product = 0;

		for (unsigned i = 0; i < slices; i++) {
			sum += of[i * quads];
			product += of[i * quads + half];
		}
		set_totals(&a->totals, begin + c, sum, product);
	}
}

CUDA_FUNCTION void sums_of_block(const struct cuda_partial_sums *a, size_t block, size_t thread,
				 size_t threads, int type, int kind)
{
	CUDA_SHARED union cuda_sums_room room;
	CUDA_SHARED bool last;
	CUDA_SHARED struct cuda_part s; /* the loop below has no registers for it */
	const unsigned groups = (unsigned)(a->channels / CUDA_EIGHT);

	if (thread == 0)
		s = find_part(a, block);
	CUDA_BARRIER();
	for (unsigned t = (unsigned)thread; t < s.width * s.together; t += (unsigned)threads) {
		const unsigned row = s.lane * s.together + t / s.width, g = s.group + t % s.width;
		float first[CUDA_EIGHT] = {0}, second[CUDA_EIGHT] = {0};

		add_share(a, row * groups + g, (uint32_t)a->lanes * s.together * groups,
			  (size_t)g * CUDA_EIGHT, type, kind, first, second);
		for (unsigned k = 0; k < CUDA_EIGHT; k++) {
			room.rows[k * (CUDA_THREADS + s.width) + t] = first[k];
			room.rows[(CUDA_EIGHT + k) * (CUDA_THREADS + s.width) + t] = second[k];
		}
	}
	CUDA_BARRIER();
	write_lane(a, &s, &room, (unsigned)thread, (unsigned)threads);
	CUDA_BARRIER();
	if (kind == CUDA_SUMS_OF_VALUES || !a->ended)
		return;
	if (thread == 0)
		last = a->lanes == 1 ||
		       last_to_end(a->ended + s.group / a->width, (uint32_t)a->lanes);
	CUDA_BARRIER();
	if (!last)
		return;
	add_lanes_of(a, &s, &room, (unsigned)thread, (unsigned)threads);
	CUDA_BARRIER();
}

#define CUDA_SUMS(name, type, kind) \
	CUDA_FUNCTION void name##_row(const struct cuda_partial_sums *a, size_t row, \
				      size_t thread, size_t threads) \
	{ \
		sums_of_block(a, row, thread, threads, type, kind); \
	}
CUDA_SUMS(value_sums_float16, CUDA_FLOAT16, CUDA_SUMS_OF_VALUES)
CUDA_SUMS(value_sums_bfloat16, CUDA_BFLOAT16, CUDA_SUMS_OF_VALUES)
CUDA_SUMS(gradient_sums_float16, CUDA_FLOAT16, CUDA_SUMS_OF_GRADIENTS)
CUDA_SUMS(gradient_sums_bfloat16, CUDA_BFLOAT16, CUDA_SUMS_OF_GRADIENTS)
CUDA_SUMS(joined_sums_float16, CUDA_FLOAT16, CUDA_SUMS_OF_BRANCHES)
CUDA_SUMS(joined_sums_bfloat16, CUDA_BFLOAT16, CUDA_SUMS_OF_BRANCHES)

enum cuda_adds { CUDA_ADDS_NOTHING, CUDA_ADDS, CUDA_ADDS_AND_MARKS };

/* `rows` rows from group `at` on, `step` apart. Values up to `low` become `low`: 0 is ReLU. */
CUDA_FUNCTION void normalize_rows(const struct cuda_normalize *a, uint32_t at, uint32_t step,
				  int type, enum cuda_adds adds, uint32_t rows,
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
		struct cuda_halves y;

		floats_of(v, type, &loaded[r]);
		if (adds)
			floats_of(add, type, &added[r]);
		for (int k = 0; k < CUDA_EIGHT; k++) {
			float sum = fmaf(v[k] - b->mean[k], b->scale[k], b->shift[k]);

			if (adds)
				sum += add[k];
			v[k] = sum <= low ? low : sum; /* NaN stays NaN */
		}
		y = halves_of(type, v);
		store_group(a->y, at + r * step, &y);
		if (adds == CUDA_ADDS_AND_MARKS)
			a->on[at + r * step] = (uint8_t)positive_bits(&y);
	}
}

/* 1 / sqrt(v) to 2^-45: Newton's step in double, from float. A thread needs eight, which by the
 * root and quotient of double take as long as a kernel of their own. */
CUDA_FUNCTION double inverse_root(double v)
{
	const double y = (double)(1.0f / sqrtf((float)v));

	return y * (1.5 - 0.5 * v * y * y);
}

/* The constants of channels c .. c + 7, of a convolution's sums: normals_at's, rounded. */
CUDA_FUNCTION void make_normals(struct cuda_normal_eight *b, const struct cuda_statistics *a,
				size_t c, bool keep)
{
	for (size_t k = 0; k < CUDA_EIGHT; k++) {
		const double mean = (double)a->of.first[c + k] * a->share;
		const double square = (double)a->of.second[c + k] * a->share;
		const double variance = fmax(square - mean * mean, 0.0);
		const double inverse = inverse_root(variance + (double)a->normals.eps);
		const double gamma = a->normals.gamma ? (double)a->normals.gamma[c + k] : 1;

		b->mean[k] = (float)mean;
		b->inverse[k] = (float)inverse;
		b->scale[k] = (float)(gamma * inverse);
		b->shift[k] = a->normals.beta[c + k];
		if (!keep)
			continue;
		a->mean[c + k] = mean;
		a->variance[c + k] = variance;
		a->normals.out[c + k] =
			(struct cuda_normal){b->mean[k], b->inverse[k], b->scale[k], b->shift[k]};
	}
}

/* Thread i of n has group i % groups in rows i / groups, + n / groups, ... */
CUDA_FUNCTION void normalize_last(const struct cuda_normalize *a, size_t i, int type,
				  enum cuda_adds adds)
{
	const uint32_t rows = adds ? CUDA_AT_ONCE / 2 : CUDA_AT_ONCE;
	const uint32_t groups = (uint32_t)(a->channels / CUDA_EIGHT), step = (uint32_t)a->n;
	const uint32_t end = (uint32_t)a->samples * groups;
	const float low = a->relu ? 0 : -INFINITY;
	struct cuda_normal_eight b;
	uint32_t at = (uint32_t)i;

	if (a->from.of.first)
		make_normals(&b, &a->from, (size_t)(at % groups) * CUDA_EIGHT, at < groups);
	else
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
		if (a->add && a->on) \
			normalize_last(a, i, type, CUDA_ADDS_AND_MARKS); \
		else if (a->add) \
			normalize_last(a, i, type, CUDA_ADDS); \
		else \
			normalize_last(a, i, type, CUDA_ADDS_NOTHING); \
	} \
	CUDA_FUNCTION void normalize_backward_##suffix##_at( \
		const struct cuda_normalize_backward *a, size_t i) \
	{ \
		normalize_backward_last(a, i, type); \
	}
CUDA_LAST(float16, CUDA_FLOAT16)
CUDA_LAST(bfloat16, CUDA_BFLOAT16)

#endif
