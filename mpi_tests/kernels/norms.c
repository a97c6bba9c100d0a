/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of batch-norm's kernels and of partial sums over channels: see rig.h. */
#include "rig.h"

enum { LANES = 5 };

/* Element k of channel c of (samples, channels, area). */
static size_t place(const struct variant *v, size_t c, size_t k)
{
	return (k / v->area * v->channels + c) * v->area + k % v->area;
}

static struct cuda_normal *normals_of(const struct variant *v)
{
	struct cuda_normal *b = rig_bytes(v->channels * sizeof *b, 0);

	for (size_t c = 0; c < v->channels; c++)
		b[c] = (struct cuda_normal){0.125f * (float)(c % 5), 0.75f, c % 3 ? 1.5f : -0.5f,
					    0.25f - 0.03125f * (float)(c % 7)};
	return b;
}

static double normalized(const struct cuda_normal *b, double x)
{
	return (x - (double)b->mean) * (double)b->scale + (double)b->shift;
}

/* dy before the activation. */
static double before_relu(const struct cuda_normal *b, int relu, double x, double dy)
{
	return relu && !(normalized(b, x) > 0) ? 0 : dy;
}

/* Moves x away from where relu's derivative changes. */
static void keep_off_zero(const struct variant *v, void *x, const struct cuda_normal *b, int last)
{
	for (size_t i = 0; i < v->n; i++) {
		const size_t c = last ? i % v->channels : i / v->area % v->channels;
		const double at = rig_at(x, v->type, i);

		if (fabs(normalized(&b[c], at)) < 1e-4)
			rig_set(x, v->type, i, at + 0.25);
	}
}

/* Contiguous channels are (samples x area, channels, 1). */
static struct variant shaped(const struct variant *v, int last)
{
	struct variant w = *v;

	w.samples = last ? v->samples * v->area : v->samples;
	w.area = last ? 1 : v->area;
	return w;
}

/* Threads of a kernel of contiguous channels: a multiple of the groups of a row. */
static size_t threads_of(const struct variant *v)
{
	return v->channels / 8 * (v->samples < 7 ? v->samples : 7);
}

static void normalize_case(const struct variant *v, int type, int groups, enum kernel_id kernel)
{
	for (int way = 0; way < 4; way++) {
		const struct variant w = shaped(v, groups || (way & 1));
		const struct cuda_normal *normals = normals_of(&w);
		const void *x = rig_numbers(type, v->n, 41);
		const void *add = way & 2 ? rig_numbers(type, v->n, 42) : NULL;
		const void *was = add ? rig_copy(add, type, v->n) : NULL;
		void *y = add && v->odd ? (void *)(uintptr_t)add : rig_numbers(type, v->n, 43);
		uint8_t *on = groups && way == 2 ? rig_bytes(v->n / 8, 0xee) : NULL;
		float *bit = rig_floats(1, 0);
		const struct cuda_normalize a = {.normals = normals,
						 .x = x,
						 .add = add,
						 .y = y,
						 .on = on,
						 .type = type,
						 .relu = v->odd,
						 .samples = w.samples,
						 .channels = w.channels,
						 .area = w.area,
						 .n = groups ? threads_of(&w) : v->n};

		rig_run(kernel, v, groups ? a.n : (a.n + 7) / 8, &a);
		for (size_t i = 0; i < v->n; i++) {
			double out = normalized(&normals[i / w.area % w.channels],
						rig_at(x, type, i)) +
				     (was ? rig_at(was, type, i) : 0);

			rig_expect(y, type, i, v->odd ? rig_relu(out) : out);
			if (!on)
				continue;
			*bit = (float)(on[i / 8] >> i % 8 & 1);
			rig_expect(bit, CUDA_FLOAT32, 0, rig_at(y, type, i) > 0);
		}
	}
}

void test_normalize(const struct variant *v)
{
	normalize_case(v, v->type, 0, KERNEL_normalize);
}

/* The same with constants of sums, which the kernel makes and keeps. */
static void normalize_sums_case(const struct variant *v, int type, enum kernel_id kernel)
{
	const struct variant w = shaped(v, 1);
	const double m = (double)w.samples;
	float *sums = rig_floats(w.channels, 71), *squares = rig_floats(w.channels, 72);
	double *mean = rig_bytes(w.channels * sizeof *mean, 0);
	double *variance = rig_bytes(w.channels * sizeof *mean, 0);
	struct cuda_normal *b = rig_bytes(w.channels * sizeof *b, 0);
	const struct cuda_normals normals = {.gamma = v->odd ? rig_floats(w.channels, 73) : NULL,
					     .beta = rig_floats(w.channels, 74),
					     .eps = 0.125f,
					     .out = b};
	const struct cuda_normalize a = {.from = {.of = {sums, squares, 1, w.channels},
						  .mean = mean,
						  .variance = variance,
						  .share = 1 / m,
						  .normals = normals},
					 .x = rig_numbers(type, v->n, 75),
					 .y = rig_numbers(type, v->n, 76),
					 .type = type,
					 .samples = w.samples,
					 .channels = w.channels,
					 .area = 1,
					 .n = threads_of(&w)};
	float *result = rig_floats(2, 0);

	for (size_t c = 0; c < w.channels; c++) {
		sums[c] *= (float)m;
		squares[c] = (float)m * (fabsf(squares[c]) + 3);
	}
	rig_run(kernel, v, a.n, &a);
	for (size_t c = 0; c < w.channels; c++) {
		const double is = (double)sums[c] / m;
		const double of = fmax((double)squares[c] / m - is * is, 0);
		const double inverse = 1 / sqrt(of + 0.125);

		result[0] = (float)mean[c];
		result[1] = (float)variance[c];
		rig_expect(result, CUDA_FLOAT32, 0, is);
		rig_expect(result, CUDA_FLOAT32, 1, of);
		rig_expect(&b[c], CUDA_FLOAT32, 0, is);
		rig_expect(&b[c], CUDA_FLOAT32, 1, inverse);
		rig_expect(&b[c], CUDA_FLOAT32, 2,
			   inverse * (v->odd ? (double)normals.gamma[c] : 1));
		rig_expect(&b[c], CUDA_FLOAT32, 3, (double)normals.beta[c]);
	}
	for (size_t i = 0; i < v->n; i++)
		rig_expect(a.y, type, i, normalized(&b[i % w.channels], rig_at(a.x, type, i)));
}

void test_normalize_float16(const struct variant *v)
{
	if (v->channels % 8 != 0)
		return;
	normalize_case(v, CUDA_FLOAT16, 1, KERNEL_normalize_float16);
	normalize_sums_case(v, CUDA_FLOAT16, KERNEL_normalize_float16);
}

void test_normalize_bfloat16(const struct variant *v)
{
	if (v->channels % 8 != 0)
		return;
	normalize_case(v, CUDA_BFLOAT16, 1, KERNEL_normalize_bfloat16);
	normalize_sums_case(v, CUDA_BFLOAT16, KERNEL_normalize_bfloat16);
}

static void backward_case(const struct variant *v, int type, int groups, enum kernel_id kernel)
{
	for (int last = groups; last < 2; last++) {
		const struct variant w = shaped(v, last);
		const struct cuda_normal *normals = normals_of(&w);
		void *x = rig_numbers(type, v->n, 50), *dx = rig_numbers(type, v->n, 52);
		const void *dy = rig_numbers(type, v->n, 51);
		const float *means = rig_floats(2 * w.channels, 53);
		struct variant typed = w;
		const struct cuda_normalize_backward a = {.normals = normals,
							  .x = x,
							  .dy = dy,
							  .means = means,
							  .dx = dx,
							  .type = type,
							  .relu = v->odd,
							  .samples = w.samples,
							  .channels = w.channels,
							  .area = w.area,
							  .n = groups ? threads_of(&w) : v->n};

		typed.type = type;
		keep_off_zero(&typed, x, normals, last);
		rig_run(kernel, v, groups ? a.n : (a.n + 7) / 8, &a);
		for (size_t i = 0; i < v->n; i++) {
			const size_t c = i / w.area % w.channels;
			const struct cuda_normal *b = &normals[c];
			const double at = rig_at(x, type, i);
			const double normal = (at - (double)b->mean) * (double)b->inverse;
			const double d = before_relu(b, v->odd, at, rig_at(dy, type, i));

			rig_expect(dx, type, i,
				   (double)b->scale * (d - (double)means[2 * c] -
						       normal * (double)means[2 * c + 1]));
		}
	}
}

void test_normalize_backward(const struct variant *v)
{
	backward_case(v, v->type, 0, KERNEL_normalize_backward);
}

void test_normalize_backward_float16(const struct variant *v)
{
	if (v->channels % 8 == 0)
		backward_case(v, CUDA_FLOAT16, 1, KERNEL_normalize_backward_float16);
}

void test_normalize_backward_bfloat16(const struct variant *v)
{
	if (v->channels % 8 == 0)
		backward_case(v, CUDA_BFLOAT16, 1, KERNEL_normalize_backward_bfloat16);
}

/* Groups of a block of a kernel of contiguous channels, of which the last chunk may have fewer;
 * chunks of a row; and rows that the block of channel c adds at a time. */
static size_t width_of(const struct variant *v)
{
	const size_t groups = v->channels / 8;

	if (v->odd)
		return groups < 4 ? 1 : groups < 32 ? groups / 2 : 16;
	return groups < 32 ? groups : 32;
}

static size_t chunks_of(size_t channels, size_t width)
{
	return (channels / 8 + width - 1) / width;
}

static size_t together(size_t channels, size_t width, size_t c)
{
	const size_t left = width > 0 ? channels / 8 - c / 8 / width * width : 0;

	return width == 0 ? 1 : 256 / (left < width ? left : width);
}

/* The last block of each chunk makes totals of its lanes: the same bits when the blocks run in the
 * other order, with the counters that the first launch left. w: v of contiguous channels. */
static void run_totals(enum kernel_id kernel, const struct variant *v, const struct variant *w,
		       struct cuda_partial_sums *a)
{
	const size_t chunks = chunks_of(a->channels, a->width);
	void *dy = (void *)(uintptr_t)a->dy; /* joined_sums may write there */
	const void *was = rig_copy(dy, w->type, v->n);
	const float *before = NULL;

	a->ended = rig_bytes(chunks * sizeof *a->ended, 0);
	for (int launch = 0; launch < 2; launch++) {
		memcpy(dy, was, 2 * v->n);
		a->totals = rig_totals(w);
		rig_run_rows(kernel, v, a->n, a);
		for (size_t k = 0; k < chunks; k++)
			CHECK(a->ended[k] == 0);
		if (before)
			CHECK(memcmp(a->totals.means, before, 2 * a->channels * sizeof *before) ==
			      0);
		before = a->totals.means;
		for (size_t c = 0; c < a->channels; c++) {
			double first = 0, second = 0;

			for (size_t l = 0; l < a->lanes; l++) {
				first += (double)a->first[l * a->channels + c];
				second += (double)a->second[l * a->channels + c];
			}
			rig_expect_totals(&a->totals, c, first, second);
		}
	}
}

/* A lane's sums over its samples: wide, of contiguous channels. */
static void sums_case(const struct variant *v, int type, int of, int wide, enum kernel_id kernel)
{
	struct variant w = shaped(v, wide);
	const size_t m = w.channels, width = wide ? width_of(v) : 0;
	const size_t lanes = w.samples < LANES || !v->odd ? 1 : LANES; /* 1: longer loops */
	struct cuda_partial_sums a = {.of = of,
				      .type = type,
				      .relu = v->odd,
				      .samples = w.samples,
				      .channels = m,
				      .area = w.area,
				      .lanes = lanes,
				      .width = width};
	void *x = rig_numbers(type, v->n, 54);

	w.type = type;
	a.n = lanes * (wide ? chunks_of(m, width) : m);
	a.x = x;
	a.dy = rig_numbers(type, v->n, 55);
	a.normals = normals_of(&w);
	keep_off_zero(&w, x, a.normals, wide);
	a.first = rig_floats(lanes * m, 56);
	a.second = rig_floats(lanes * m, 57);
	if (wide && of == CUDA_OF_GRADIENTS)
		run_totals(kernel, v, &w, &a);
	else
		rig_run_rows(kernel, v, a.n, &a);
	for (size_t i = 0; i < lanes * m; i++) {
		const struct cuda_normal *b = &a.normals[i % m];
		double first = 0, second = 0;

		for (size_t k = 0; k < w.samples * w.area; k++) {
			const size_t at = place(&w, i % m, k), sample = k / w.area;
			double d = rig_at(x, type, at), other = d;

			if (sample / together(m, width, i % m) % lanes != i / m)
				continue;
			if (of == CUDA_OF_SPREAD)
				other = d -= rig_at(x, type, place(&w, i % m, 0));
			if (of == CUDA_OF_GRADIENTS) {
				other = (d - (double)b->mean) * (double)b->inverse;
				d = before_relu(b, a.relu, d, rig_at(a.dy, type, at));
			}
			first += d;
			second += d * other;
		}
		rig_near(a.first, CUDA_FLOAT32, i, first, 100);
		rig_near(a.second, CUDA_FLOAT32, i, second, 100);
	}
}

void test_plane_sums(const struct variant *v)
{
	for (int of = CUDA_OF_VALUES; of <= CUDA_OF_GRADIENTS && !rig_is_long(v); of++)
		sums_case(v, v->type, of, 0, KERNEL_plane_sums);
}

#define WIDE(name, type, from, to) \
	void test_##name(const struct variant *v) \
	{ \
		for (int of = from; of <= to && v->channels % 8 == 0; of++) \
			sums_case(v, type, of, 1, KERNEL_##name); \
	}
WIDE(value_sums_float16, CUDA_FLOAT16, CUDA_OF_VALUES, CUDA_OF_SPREAD)
WIDE(value_sums_bfloat16, CUDA_BFLOAT16, CUDA_OF_VALUES, CUDA_OF_SPREAD)
WIDE(gradient_sums_float16, CUDA_FLOAT16, CUDA_OF_GRADIENTS, CUDA_OF_GRADIENTS)
WIDE(gradient_sums_bfloat16, CUDA_BFLOAT16, CUDA_OF_GRADIENTS, CUDA_OF_GRADIENTS)

/* The sum of two gradients of (rows, channels) where `on` has a bit; in place of one with odd. */
static void joined_case(const struct variant *v, int type, enum kernel_id kernel)
{
	struct variant w = shaped(v, 1);
	const size_t m = w.channels, width = width_of(v);
	const size_t lanes = w.samples < LANES ? 1 : LANES;
	const struct cuda_normal *normals = normals_of(&w);
	void *dy = rig_numbers(type, v->n, 62);
	const void *was = rig_copy(dy, type, v->n);
	const void *more = rig_numbers(type, v->n, 63), *x = rig_numbers(type, v->n, 61);
	uint8_t *on = rig_bytes(v->n / 8, 0);
	struct cuda_partial_sums a = {.of = CUDA_OF_GRADIENTS,
				      .x = x,
				      .dy = dy,
				      .more = more,
				      .on = on,
				      .sum = v->odd ? dy : rig_numbers(type, v->n, 64),
				      .normals = normals,
				      .type = type,
				      .samples = w.samples,
				      .channels = m,
				      .area = 1,
				      .lanes = lanes,
				      .width = width,
				      .n = lanes * chunks_of(m, width)};

	w.type = type;
	for (size_t i = 0; i < v->n; i++)
		on[i / 8] |= (uint8_t)((i * 7 + i / 5) % 3 > 0) << i % 8;
	a.first = rig_floats(lanes * m, 65);
	a.second = rig_floats(lanes * m, 66);
	run_totals(kernel, v, &w, &a);
	for (size_t i = 0; i < v->n; i++) {
		const double sum = rig_at(was, type, i) + rig_at(more, type, i);

		rig_expect(a.sum, type, i, on[i / 8] >> i % 8 & 1 ? sum : 0);
	}
	for (size_t i = 0; i < lanes * m; i++) {
		const struct cuda_normal *b = &normals[i % m];
		double first = 0, second = 0;

		for (size_t k = 0; k < w.samples; k++) {
			const size_t at = k * m + i % m;
			const double d = rig_at(a.sum, type, at);

			if (k / together(m, width, i % m) % lanes != i / m)
				continue;
			first += d;
			second += d * (rig_at(x, type, at) - (double)b->mean) * (double)b->inverse;
		}
		rig_near(a.first, CUDA_FLOAT32, i, first, 100);
		rig_near(a.second, CUDA_FLOAT32, i, second, 100);
	}
}

void test_joined_sums_float16(const struct variant *v)
{
	if (v->channels % 8 == 0)
		joined_case(v, CUDA_FLOAT16, KERNEL_joined_sums_float16);
}

void test_joined_sums_bfloat16(const struct variant *v)
{
	if (v->channels % 8 == 0)
		joined_case(v, CUDA_BFLOAT16, KERNEL_joined_sums_bfloat16);
}
