/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of batch-norm's kernels and of sums over channels: see rig.h. */
#include "rig.h"

enum { LANES = 5 };

/* The sum of a channel's partial sums. */
static double lanes_of(const float *sums, const struct variant *v, size_t c)
{
	double sum = 0;

	for (size_t l = 0; l < LANES; l++)
		sum += (double)sums[l * v->channels + c];
	return sum;
}

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

void test_channel_sums(const struct variant *v)
{
	struct cuda_channel_sums a = {
		.adds = v->odd, .samples = v->samples, .area = v->area, .n = v->channels};
	const float *was;

	if (rig_is_long(v))
		return;
	a.x = rig_floats(v->n, 30);
	for (int lanes = 0; lanes < 2; lanes++) {
		a.out = rig_floats(v->channels, 31);
		was = rig_copy(a.out, CUDA_FLOAT32, v->channels);
		if (lanes)
			a.of = (struct cuda_lanes){rig_floats(LANES * v->channels, 32),
						   rig_floats(LANES * v->channels, 33), LANES};
		RUN_ROWS(channel_sums, v, &a);
		for (size_t c = 0; c < v->channels; c++) {
			double sum = v->odd ? (double)was[c] : 0;

			for (size_t k = 0; k < v->samples * v->area && !lanes; k++)
				sum += (double)a.x[place(v, c, k)];
			rig_expect(a.out, CUDA_FLOAT32, c,
				   sum + (lanes ? lanes_of(a.of.first, v, c) : 0));
		}
	}
}

/* With lanes: sums of differences from row 0, and of their squares. */
void test_statistics(const struct variant *v)
{
	const double m = (double)(v->samples * v->area);
	struct cuda_statistics a = {.type = v->odd ? v->type : CUDA_FLOAT32,
				    .samples = v->samples,
				    .area = v->area,
				    .n = v->channels};
	float *result = rig_floats(2, 0);

	if (rig_is_long(v))
		return;
	a.x = rig_numbers(a.type, v->n, 34);
	a.mean = rig_bytes(v->channels * sizeof(double), 0);
	a.variance = rig_bytes(v->channels * sizeof(double), 0);
	if (v->odd)
		a.of = (struct cuda_lanes){rig_floats(LANES * v->channels, 35),
					   rig_floats(LANES * v->channels, 36), LANES};
	RUN_ROWS(statistics, v, &a);
	for (size_t c = 0; c < v->channels; c++) {
		double mean = 0, squares = 0, d;

		for (size_t k = 0; k < v->samples * v->area; k++)
			mean += rig_at(a.x, a.type, place(v, c, k)) / m;
		for (size_t k = 0; k < v->samples * v->area; k++) {
			d = rig_at(a.x, a.type, place(v, c, k)) - mean;
			squares += d * d / m;
		}
		if (v->odd) {
			d = lanes_of(a.of.first, v, c) / m;
			mean = rig_at(a.x, a.type, c) + d;
			squares = fmax(lanes_of(a.of.second, v, c) / m - d * d, 0);
		}
		result[0] = (float)a.mean[c];
		result[1] = (float)a.variance[c];
		rig_expect(result, CUDA_FLOAT32, 0, mean);
		rig_expect(result, CUDA_FLOAT32, 1, squares);
	}
}

void test_normals(const struct variant *v)
{
	const size_t n = v->channels;
	double *mean = rig_bytes(n * sizeof *mean, 0), *variance = rig_bytes(n * sizeof *mean, 0);
	float *running_mean = rig_floats(n, 37), *running_variance = rig_floats(n, 38);
	const float *gamma = rig_floats(n, 39), *beta = rig_floats(n, 40);
	struct cuda_normal *out = rig_bytes(n * sizeof *out, 0);
	struct cuda_normals a = {.gamma = v->type == CUDA_BFLOAT16 ? NULL : gamma,
				 .beta = beta,
				 .eps = 0.125f,
				 .out = out,
				 .n = n};

	for (size_t c = 0; c < n; c++) {
		running_variance[c] += 3;
		mean[c] = 2 * (double)running_mean[c];
		variance[c] = (double)running_variance[c] / 2;
	}
	if (v->odd)
		a.running_mean = running_mean, a.running_variance = running_variance;
	else
		a.mean = mean, a.variance = variance;
	RUN(normals, v, &a);
	for (size_t c = 0; c < n; c++) {
		const double m = v->odd ? (double)running_mean[c] : mean[c];
		const double s = v->odd ? (double)running_variance[c] : variance[c];
		const double inverse = 1 / sqrt(s + 0.125);

		rig_expect(&out[c], CUDA_FLOAT32, 0, m);
		rig_expect(&out[c], CUDA_FLOAT32, 1, inverse);
		rig_expect(&out[c], CUDA_FLOAT32, 2, inverse * (a.gamma ? (double)gamma[c] : 1));
		rig_expect(&out[c], CUDA_FLOAT32, 3, (double)beta[c]);
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

void test_normalize(const struct variant *v)
{
	for (int way = 0; way < 4; way++) {
		const struct variant w = shaped(v, way & 1);
		const struct cuda_normal *normals = normals_of(&w);
		const void *x = rig_numbers(v->type, v->n, 41);
		const void *add = way & 2 ? rig_numbers(v->type, v->n, 42) : NULL;
		const void *was = add ? rig_copy(add, v->type, v->n) : NULL;
		void *y = add && v->odd ? (void *)(uintptr_t)add : rig_numbers(v->type, v->n, 43);
		const struct cuda_normalize a = {normals, x,          add,    y,   v->type,
						 v->odd,  w.channels, w.area, v->n};

		RUN_EIGHTS(normalize, v, &a);
		for (size_t i = 0; i < v->n; i++) {
			double out = normalized(&normals[i / w.area % w.channels],
						rig_at(x, v->type, i)) +
				     (was ? rig_at(was, v->type, i) : 0);

			rig_expect(y, v->type, i, v->odd ? rig_relu(out) : out);
		}
	}
}

void test_normal_sums(const struct variant *v)
{
	const double m = (double)(v->samples * v->area);
	struct cuda_normal_sums a = {.relu = v->odd,
				     .fixed = v->type == CUDA_FLOAT16,
				     .count = 3,
				     .samples = v->samples,
				     .area = v->area,
				     .n = v->channels};
	struct variant floats = *v;
	double *mean, *variance;
	float *x;

	if (rig_is_long(v))
		return;
	floats.type = CUDA_FLOAT32;
	a.normals = normals_of(v);
	a.x = x = rig_floats(v->n, 44);
	keep_off_zero(&floats, x, a.normals, 0);
	a.dy = rig_floats(v->n, 45);
	a.mean = mean = rig_bytes(v->channels * sizeof *mean, 0);
	a.variance = variance = rig_bytes(v->channels * sizeof *mean, 0);
	for (size_t c = 0; c < v->channels; c++)
		mean[c] = (double)c, variance[c] = 2.5 * (double)c;
	for (int lanes = 0; lanes < 2; lanes++) {
		float **out[] = {&a.d_gamma, &a.d_beta, &a.d_mean, &a.d_variance};

		for (int k = 0; k < 4; k++)
			*out[k] = rig_floats(v->channels, 46);
		a.means = rig_floats(2 * v->channels, 47);
		if (lanes)
			a.of = (struct cuda_lanes){rig_floats(LANES * v->channels, 48),
						   rig_floats(LANES * v->channels, 49), LANES};
		RUN_ROWS(normal_sums, v, &a);
		for (size_t c = 0; c < v->channels; c++) {
			const struct cuda_normal *b = &a.normals[c];
			double sum = lanes ? lanes_of(a.of.first, v, c) : 0;
			double product = lanes ? lanes_of(a.of.second, v, c) : 0;

			for (size_t k = 0; k < v->samples * v->area && !lanes; k++) {
				const double at = (double)x[place(v, c, k)];
				const double dy =
					before_relu(b, a.relu, at, (double)a.dy[place(v, c, k)]);

				sum += dy;
				product += dy * (at - (double)b->mean) * (double)b->inverse;
			}
			rig_expect(a.means, CUDA_FLOAT32, 2 * c, sum / m);
			rig_expect(a.means, CUDA_FLOAT32, 2 * c + 1, product / m);
			rig_expect(a.d_gamma, CUDA_FLOAT32, c, a.fixed ? 0 : product);
			rig_expect(a.d_beta, CUDA_FLOAT32, c, sum);
			rig_expect(a.d_mean, CUDA_FLOAT32, c, 3 * mean[c]);
			rig_expect(a.d_variance, CUDA_FLOAT32, c, 3 * variance[c]);
		}
	}
}

void test_normalize_backward(const struct variant *v)
{
	for (int last = 0; last < 2; last++) {
		const struct variant w = shaped(v, last);
		const struct cuda_normal *normals = normals_of(&w);
		void *x = rig_numbers(v->type, v->n, 50), *dx = rig_numbers(v->type, v->n, 52);
		const void *dy = rig_numbers(v->type, v->n, 51);
		const float *means = rig_floats(2 * w.channels, 53);
		const struct cuda_normalize_backward a = {
			normals, x, dy, means, dx, v->type, v->odd, w.channels, w.area, v->n};

		keep_off_zero(&w, x, normals, last);
		RUN_EIGHTS(normalize_backward, v, &a);
		for (size_t i = 0; i < v->n; i++) {
			const size_t c = i / w.area % w.channels;
			const struct cuda_normal *b = &normals[c];
			const double at = rig_at(x, v->type, i);
			const double normal = (at - (double)b->mean) * (double)b->inverse;
			const double d = before_relu(b, v->odd, at, rig_at(dy, v->type, i));

			rig_expect(dx, v->type, i,
				   (double)b->scale * (d - (double)means[2 * c] -
						       normal * (double)means[2 * c + 1]));
		}
	}
}

/* Every lane's sums over its rows of contiguous channels, eight or one at a time. */
void test_partial_sums(const struct variant *v)
{
	const size_t channels = v->channels, rows = v->samples * v->area;
	const size_t lanes = rows < LANES ? rows : LANES;
	struct cuda_partial_sums a = {.type = v->type,
				      .relu = v->odd,
				      .width = channels % 8 == 0 ? 8 : 1,
				      .rows = rows,
				      .channels = channels,
				      .lanes = lanes};
	void *x = rig_numbers(v->type, v->n, 54);

	a.n = lanes * channels / (size_t)a.width;
	a.x = x;
	a.dy = rig_numbers(v->type, v->n, 55);
	a.normals = normals_of(v);
	keep_off_zero(v, x, a.normals, 1);
	for (a.of = CUDA_OF_VALUES; a.of <= CUDA_OF_GRADIENTS; a.of++) {
		a.first = rig_floats(lanes * channels, 56);
		a.second = rig_floats(lanes * channels, 57);
		RUN(partial_sums, v, &a);
		for (size_t i = 0; i < lanes * channels; i++) {
			const struct cuda_normal *b = &a.normals[i % channels];
			double first = 0, second = 0;

			for (size_t r = i / channels; r < rows; r += lanes) {
				const size_t at = r * channels + i % channels;
				double d = rig_at(x, v->type, at), other = d;

				if (a.of == CUDA_OF_SPREAD)
					other = d -= rig_at(x, v->type, i % channels);
				if (a.of == CUDA_OF_GRADIENTS) {
					other = (d - (double)b->mean) * (double)b->inverse;
					d = before_relu(b, a.relu, d, rig_at(a.dy, v->type, at));
				}
				first += d;
				second += d * other;
			}
			rig_near(a.first, CUDA_FLOAT32, i, first, 100);
			rig_near(a.second, CUDA_FLOAT32, i, second, 100);
		}
	}
}
