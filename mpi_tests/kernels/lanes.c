/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of the kernels that add lanes of partial sums, and of what becomes of them: see rig.h. */
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

/* Groups of eight channels. */
static size_t groups_of(const struct variant *v)
{
	return (v->channels + 7) / 8;
}

static struct cuda_lanes lanes_for(const struct variant *v, unsigned seed)
{
	return (struct cuda_lanes){rig_floats(LANES * v->channels, seed),
				   rig_floats(LANES * v->channels, seed + 1), LANES, v->channels};
}

void test_channel_sums(const struct variant *v)
{
	struct cuda_channel_sums a = {.adds = v->odd, .n = groups_of(v)};
	const float *was;

	if (rig_is_long(v))
		return;
	a.out = rig_floats(v->channels, 31);
	was = rig_copy(a.out, CUDA_FLOAT32, v->channels);
	a.of = lanes_for(v, 32);
	RUN_ROWS(channel_sums, v, &a);
	for (size_t c = 0; c < v->channels; c++)
		rig_expect(a.out, CUDA_FLOAT32, c,
			   (v->odd ? (double)was[c] : 0) + lanes_of(a.of.first, v, c));
}

/* Lanes are sums of differences from a channel's first value, or of values, and of squares. */
void test_statistics(const struct variant *v)
{
	const double m = (double)(v->samples * v->area);
	struct cuda_statistics a = {
		.type = v->type, .share = 1 / m, .area = v->odd ? 1 : v->area, .n = groups_of(v)};
	float *result = rig_floats(2, 0);
	struct cuda_normals *b = &a.normals;

	if (rig_is_long(v))
		return;
	a.x = v->type == CUDA_FLOAT16 ? NULL : rig_numbers(a.type, v->n, 34);
	a.mean = rig_bytes(v->channels * sizeof(double), 0);
	a.variance = rig_bytes(v->channels * sizeof(double), 0);
	a.of = lanes_for(v, 35);
	*b = (struct cuda_normals){.mean = a.mean,
				   .variance = a.variance,
				   .beta = rig_floats(v->channels, 40),
				   .eps = 0.125f,
				   .out = rig_bytes(v->channels * sizeof *b->out, 0)};
	RUN_ROWS(statistics, v, &a);
	for (size_t c = 0; c < v->channels; c++) {
		const double d = lanes_of(a.of.first, v, c) / m;

		result[0] = (float)a.mean[c];
		result[1] = (float)a.variance[c];
		rig_expect(result, CUDA_FLOAT32, 0,
			   (a.x ? rig_at(a.x, a.type, c * a.area) : 0) + d);
		rig_expect(result, CUDA_FLOAT32, 1,
			   fmax(lanes_of(a.of.second, v, c) / m - d * d, 0));
		rig_expect(&b->out[c].mean, CUDA_FLOAT32, 0, a.mean[c]);
		rig_expect(&b->out[c].scale, CUDA_FLOAT32, 0, 1 / sqrt(a.variance[c] + 0.125));
		rig_expect(&b->out[c].shift, CUDA_FLOAT32, 0, (double)b->beta[c]);
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

struct cuda_normal_totals rig_totals(const struct variant *v)
{
	struct cuda_normal_totals a = {.fixed = v->type == CUDA_FLOAT16,
				       .share = 1 / (double)(v->samples * v->area),
				       .count = 3};
	float **out[] = {&a.d_gamma, &a.d_beta, &a.d_mean, &a.d_variance};
	double *mean = rig_bytes(v->channels * sizeof *mean, 0);
	double *variance = rig_bytes(v->channels * sizeof *variance, 0);

	for (size_t c = 0; c < v->channels; c++)
		mean[c] = (double)c, variance[c] = 2.5 * (double)c;
	a.mean = mean;
	a.variance = variance;
	for (int k = 0; k < 4; k++)
		*out[k] = rig_floats(v->channels, 46);
	a.means = rig_floats(2 * v->channels, 47);
	return a;
}

void rig_expect_totals(const struct cuda_normal_totals *a, size_t c, double sum, double product)
{
	rig_expect(a->means, CUDA_FLOAT32, 2 * c, sum * a->share);
	rig_expect(a->means, CUDA_FLOAT32, 2 * c + 1, product * a->share);
	rig_expect(a->d_gamma, CUDA_FLOAT32, c, a->fixed ? 0 : product);
	rig_expect(a->d_beta, CUDA_FLOAT32, c, sum);
	rig_expect(a->d_mean, CUDA_FLOAT32, c, 3 * a->mean[c]);
	rig_expect(a->d_variance, CUDA_FLOAT32, c, 3 * a->variance[c]);
}

void test_normal_sums(const struct variant *v)
{
	struct cuda_normal_sums a = {.n = groups_of(v)};

	if (rig_is_long(v))
		return;
	a.totals = rig_totals(v);
	a.of = lanes_for(v, 48);
	RUN_ROWS(normal_sums, v, &a);
	for (size_t c = 0; c < v->channels; c++)
		rig_expect_totals(&a.totals, c, lanes_of(a.of.first, v, c),
				  lanes_of(a.of.second, v, c));
}
