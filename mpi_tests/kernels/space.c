/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of kernels of group norms, upsampling, pad and crop: see rig.h. Upsampling scatters, where
 * kernels gather. */
#include "rig.h"

/* Element of channel c, position p of a sample; with odd channels are last. */
static size_t place(const struct variant *v, size_t sample, size_t c, size_t p, size_t area)
{
	return v->odd ? (sample * area + p) * v->channels + c
		      : (sample * v->channels + c) * area + p;
}

/* ---- group norm ---- */

static size_t groups_of(const struct variant *v)
{
	return v->channels % 3 == 0 ? 3 : v->channels % 4 == 0 ? v->channels / 4 : v->channels;
}

void test_group_sums(const struct variant *v)
{
	const size_t lanes = v->area > 16 ? 16 : 1, planes = v->samples * v->channels;
	const void *x = rig_numbers(v->type, v->n, 100), *dy = rig_numbers(v->type, v->n, 101);
	struct cuda_group_pair *sums = rig_bytes(planes * lanes * sizeof *sums, 0xee);

	for (int of_dy = 0; of_dy < 2; of_dy++) {
		const struct cuda_group_sums a = {
			x,           of_dy ? dy : NULL, sums,  v->type,       v->odd,
			v->channels, v->area,           lanes, planes * lanes};

		RUN(group_sums, v, &a);
		for (size_t i = 0; i < planes * lanes; i++) {
			const size_t plane = i / lanes;
			double first = 0, second = 0;

			for (size_t p = i % lanes; p < v->area; p += lanes) {
				const size_t at = place(v, plane / v->channels,
							plane % v->channels, p, v->area);
				const double d = rig_at(of_dy ? dy : x, v->type, at);

				first += d;
				second += d * rig_at(x, v->type, at);
			}
			CHECK(fabs(sums[i].first - first) < 1e-9 * (1 + fabs(first)));
			CHECK(fabs(sums[i].second - second) < 1e-9 * (1 + fabs(second)));
		}
	}
}

static struct cuda_group_pair *pairs(size_t n)
{
	struct cuda_group_pair *of = rig_bytes(n * sizeof *of, 0);

	for (size_t i = 0; i < n; i++)
		of[i] = (struct cuda_group_pair){(double)(i % 11) / 4 - 1, (double)(i % 7) + 20};
	return of;
}

void test_group_totals(const struct variant *v)
{
	const size_t lanes = 300, n = v->channels;
	const struct cuda_group_pair *sums = pairs(n * lanes);
	struct cuda_group_pair *totals = rig_bytes(n * sizeof *totals, 0xee);
	const struct cuda_group_totals a = {sums, totals, lanes, n};

	if (rig_is_long(v))
		return;
	RUN_ROWS(group_totals, v, &a);
	for (size_t i = 0; i < n; i++) {
		double first = 0, second = 0;

		for (size_t k = 0; k < lanes; k++) {
			first += sums[i * lanes + k].first;
			second += sums[i * lanes + k].second;
		}
		CHECK(fabs(totals[i].first - first) < 1e-9 * (1 + fabs(first)));
		CHECK(fabs(totals[i].second - second) < 1e-9 * (1 + fabs(second)));
	}
}

static struct cuda_row_statistics *statistics(size_t n, unsigned seed)
{
	return (struct cuda_row_statistics *)rig_floats(2 * n, seed);
}

void test_group_means(const struct variant *v)
{
	const size_t groups = groups_of(v), own = v->channels / groups, n = v->samples * groups;
	const struct cuda_group_pair *totals = pairs(v->samples * v->channels);
	const float *gamma = v->odd ? rig_floats(v->channels, 102) : NULL;
	const struct cuda_row_statistics *of = statistics(n, 103);
	struct cuda_row_statistics *out = statistics(n, 104);
	const struct cuda_group_means a = {totals, gamma,       of,     out,     0.01f,
					   v->channels, groups, v->area, n};
	const double m = (double)(own * v->area);

	RUN(group_means, v, &a);
	for (size_t i = 0; i < n; i++) {
		double first = 0, second = 0;

		for (size_t k = 0; k < own; k++) {
			const struct cuda_group_pair *t = &totals[i * own + k];
			const double g = gamma ? (double)gamma[i % groups * own + k] / m : 1 / m;

			first += g * t->first;
			second += gamma ? g * (double)of[i].factor *
						  (t->second - (double)of[i].mean * t->first)
					: g * t->second;
		}
		if (!gamma)
			second = 1 / sqrt(second - first * first + (double)0.01f);
		rig_expect(out, CUDA_FLOAT32, 2 * i, first);
		rig_expect(out, CUDA_FLOAT32, 2 * i + 1, second);
	}
}

void test_group_norm(const struct variant *v)
{
	const size_t groups = groups_of(v), own = v->channels / groups;
	const void *x = rig_numbers(v->type, v->n, 105);
	void *y = rig_numbers(v->type, v->n, 106);
	const float *gamma = rig_floats(v->channels, 107), *beta = rig_floats(v->channels, 108);
	const struct cuda_row_statistics *of = statistics(v->samples * groups, 109);
	const struct cuda_group_norm a = {
		x,      y, gamma, beta, of, v->type, v->odd, (uint32_t)v->channels,
		(uint32_t)groups, (uint32_t)v->area, v->n};

	RUN_EIGHTS(group_norm, v, &a);
	for (size_t i = 0; i < v->samples * v->channels; i++)
		for (size_t p = 0; p < v->area; p++) {
			const size_t c = i % v->channels;
			const size_t at = place(v, i / v->channels, c, p, v->area);
			const struct cuda_row_statistics *s = &of[i / own];

			rig_expect(y, v->type, at,
				   (rig_at(x, v->type, at) - (double)s->mean) * (double)s->factor *
						   (double)gamma[c] +
					   (double)beta[c]);
		}
}

void test_group_norm_backward(const struct variant *v)
{
	const size_t groups = groups_of(v), own = v->channels / groups;
	const void *x = rig_numbers(v->type, v->n, 110), *dy = rig_numbers(v->type, v->n, 111);
	void *dx = rig_numbers(v->type, v->n, 112);
	const float *gamma = rig_floats(v->channels, 113);
	const struct cuda_row_statistics *of = statistics(v->samples * groups, 114);
	const struct cuda_row_statistics *means = statistics(v->samples * groups, 115);
	const struct cuda_group_norm_backward a = {
		x,     dy,      dx,     gamma, of, means, v->type, v->odd, (uint32_t)v->channels,
		(uint32_t)groups, (uint32_t)v->area, v->n};

	RUN_EIGHTS(group_norm_backward, v, &a);
	for (size_t i = 0; i < v->samples * v->channels; i++)
		for (size_t p = 0; p < v->area; p++) {
			const size_t at = place(v, i / v->channels, i % v->channels, p, v->area);
			const struct cuda_row_statistics *s = &of[i / own], *m = &means[i / own];
			const double factor = (double)s->factor;
			const double hat = (rig_at(x, v->type, at) - (double)s->mean) * factor;
			const double g =
				rig_at(dy, v->type, at) * (double)gamma[i % v->channels];

			rig_near(dx, v->type, at,
				 factor * (g - (double)m->mean - hat * (double)m->factor), 40);
		}
}

void test_group_gradients(const struct variant *v)
{
	const size_t groups = groups_of(v), own = v->channels / groups, m = v->channels;
	const struct cuda_group_pair *totals = pairs(v->samples * m);
	const struct cuda_row_statistics *of = statistics(v->samples * groups, 116);
	float *gamma = rig_floats(m, 117), *beta = rig_floats(m, 118);
	const float *was[] = {rig_copy(gamma, CUDA_FLOAT32, m), rig_copy(beta, CUDA_FLOAT32, m)};
	const struct cuda_group_gradients a = {totals, of, gamma, beta,  v->odd,
					       v->samples, m, groups, m};

	RUN(group_gradients, v, &a);
	for (size_t c = 0; c < m; c++) {
		double first = 0, second = 0;

		for (size_t s = 0; s < v->samples; s++) {
			const struct cuda_row_statistics *r = &of[s * groups + c / own];
			const struct cuda_group_pair *t = &totals[s * m + c];

			first += (double)r->factor * (t->second - (double)r->mean * t->first);
			second += t->first;
		}
		rig_near(gamma, CUDA_FLOAT32, c, first + (v->odd ? (double)was[0][c] : 0), 20);
		rig_near(beta, CUDA_FLOAT32, c, second + (v->odd ? (double)was[1][c] : 0), 20);
	}
}

/* ---- space ---- */

static const struct {
	int in[3], out[3], linear, corners;
} resized[] = {
	{{1, 3, 4}, {1, 6, 12}, 0, 0}, {{1, 5, 3}, {1, 7, 2}, 0, 0}, {{1, 3, 4}, {1, 6, 8}, 1, 0},
	{{2, 3, 1}, {4, 7, 2}, 1, 0},  {{1, 3, 4}, {1, 1, 9}, 1, 1}, {{2, 5, 2}, {3, 4, 5}, 1, 1},
};
enum { RESIZED = sizeof resized / sizeof resized[0] };

/* The weights of the elements of an axis in output o, by the formulas of struct mu_upsampling. */
static void weights_of(int k, int axis, int o, double *out)
{
	const int n = resized[k].in[axis], m = resized[k].out[axis];
	double from;

	memset(out, 0, 8 * sizeof *out);
	if (!resized[k].linear) {
		out[(int)floor((double)o * n / m)] = 1;
		return;
	}
	if (resized[k].corners)
		from = m > 1 ? (double)o * (n - 1) / (m - 1) : 0;
	else
		from = fmin(fmax((o + 0.5) * n / m - 0.5, 0), n - 1);
	for (int i = 0; i < n; i++)
		out[i] = fmax(0, 1 - fabs(from - i));
}

static int area_of(const int *n)
{
	return n[0] * n[1] * n[2];
}

static struct cuda_upsample upsample(const struct variant *v, int k, const int *to)
{
	struct cuda_upsample a = {.type = v->type,
				  .last = v->odd,
				  .linear = resized[k].linear,
				  .corners = resized[k].corners,
				  .channels = v->channels};

	memcpy(a.in, resized[k].in, sizeof a.in);
	memcpy(a.out, resized[k].out, sizeof a.out);
	a.n = 2 * ((v->channels + 7) / 8) * (size_t)area_of(to);
	return a;
}

/* Add all products of weights and values of 2 samples: forward into y of x, else into x of y. */
static void resize(const struct variant *v, int k, int back, const void *from, double *to)
{
	const int *in = resized[k].in, *out = resized[k].out;
	double w[3][8];

	for (int o = 0; o < area_of(out); o++) {
		weights_of(k, 0, o / out[2] / out[1], w[0]);
		weights_of(k, 1, o / out[2] % out[1], w[1]);
		weights_of(k, 2, o % out[2], w[2]);
		for (int i = 0; i < area_of(in); i++) {
			const double by = w[0][i / in[2] / in[1]] * w[1][i / in[2] % in[1]] *
					  w[2][i % in[2]];

			for (size_t c = 0; by != 0 && c < 2 * v->channels; c++) {
				const size_t s = c / v->channels, one = c % v->channels;
				const size_t x =
					place(v, s, one, (size_t)i, (size_t)area_of(in));
				const size_t y =
					place(v, s, one, (size_t)o, (size_t)area_of(out));

				to[back ? x : y] += by * rig_at(from, v->type, back ? y : x);
			}
		}
	}
}

static void resize_case(const struct variant *v, int back, enum kernel_id kernel)
{
	for (int k = 0; k < RESIZED && v->samples < 4; k++) {
		const int *from = back ? resized[k].out : resized[k].in;
		const int *to = back ? resized[k].in : resized[k].out;
		const size_t n = 2 * v->channels * (size_t)area_of(to);
		struct cuda_upsample a = upsample(v, k, to);
		double *want = rig_bytes(n * sizeof *want, 0);

		a.x = rig_numbers(v->type, 2 * v->channels * (size_t)area_of(from), 120);
		a.y = rig_numbers(v->type, n, 121);
		resize(v, k, back, a.x, want);
		rig_run(kernel, v, a.n, &a);
		for (size_t i = 0; i < n; i++)
			rig_expect(a.y, v->type, i, want[i]);
	}
}

void test_upsample(const struct variant *v)
{
	resize_case(v, 0, KERNEL_upsample);
}

void test_upsample_backward(const struct variant *v)
{
	resize_case(v, 1, KERNEL_upsample_backward);
}

void test_pad(const struct variant *v)
{
	static const struct {
		int in[3], out[3], before[3];
	} of[] = {{{1, 4, 3}, {1, 7, 6}, {0, 1, 0}}, {{2, 4, 3}, {3, 2, 4}, {1, -1, -1}}};

	for (int k = 0; k < 2 && v->samples < 4; k++) {
		const size_t inner = v->odd ? v->channels : 1, outer = v->odd ? 2 : 2 * v->channels;
		const int width = inner % 8 == 0 && v->type ? 8 : 1;
		const size_t n = outer * inner * (size_t)area_of(of[k].out);
		const void *x =
			rig_numbers(v->type, outer * inner * (size_t)area_of(of[k].in), 122);
		struct cuda_pad a = {x,   rig_numbers(v->type, n, 123), v->type, width, {0}, {0},
				     {0}, 0.5f, (uint32_t)(inner / (size_t)width),
				     n / (size_t)width};

		memcpy(a.in, of[k].in, sizeof a.in);
		memcpy(a.out, of[k].out, sizeof a.out);
		memcpy(a.before, of[k].before, sizeof a.before);
		RUN(pad, v, &a);
		for (size_t i = 0; i < n; i++) {
			const int p = (int)(i / inner % (size_t)area_of(a.out));
			const int at[] = {p / a.out[2] / a.out[1] - a.before[0],
					  p / a.out[2] % a.out[1] - a.before[1],
					  p % a.out[2] - a.before[2]};
			size_t from = i / inner / (size_t)area_of(a.out);
			int inside = 1;

			for (int d = 0; d < 3; d++) {
				inside &= at[d] >= 0 && at[d] < a.in[d];
				from = from * (size_t)a.in[d] + (size_t)at[d];
			}
			rig_expect(a.y, v->type, i,
				   inside ? rig_at(x, v->type, from * inner + i % inner) : 0.5);
		}
	}
}
