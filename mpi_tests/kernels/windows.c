/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of kernels that look at neighbours: see rig.h. Pooling scatters, where kernels gather. */
#include "rig.h"

void test_lrn(const struct variant *v)
{
	const float *x = rig_floats(v->n, 60);
	float *y = rig_floats(v->n, 61), *scale = v->odd ? rig_floats(v->n, 62) : NULL;
	const struct cuda_lrn a = {x, y, scale, v->channels, v->area, 5, 0.5f, 0.75f, 2, v->n};

	RUN(lrn, v, &a);
	for (size_t i = 0; i < v->n; i++) {
		const long c = (long)(i / v->area % v->channels);
		double sum = 0;

		for (long d = -2; d <= 2; d++)
			if (c + d >= 0 && c + d < (long)v->channels)
				sum += pow((double)x[(long)i + d * (long)v->area], 2);
		sum = 2 + 0.5 / 5 * sum;
		if (scale)
			rig_expect(scale, CUDA_FLOAT32, i, sum);
		rig_expect(y, CUDA_FLOAT32, i, (double)x[i] * pow(sum, -0.75));
	}
}

void test_lrn_backward(const struct variant *v)
{
	const float *x = rig_floats(v->n, 63), *dy = rig_floats(v->n, 64);
	float *dx = rig_floats(v->n, 65), *scale = rig_floats(v->n, 66);
	const struct cuda_lrn_backward a = {x,       scale, dy,   dx,    v->channels,
					    v->area, 3,     0.5f, 0.75f, v->n};

	for (size_t i = 0; i < v->n; i++)
		scale[i] += 4;
	RUN(lrn_backward, v, &a);
	for (size_t i = 0; i < v->n; i++) {
		const long c = (long)(i / v->area % v->channels);
		double sum = 0;

		for (long d = -1; d <= 1; d++)
			if (c + d >= 0 && c + d < (long)v->channels) {
				const long e = (long)i + d * (long)v->area;

				sum += (double)(dy[e] * x[e]) * pow((double)scale[e], -1.75);
			}
		rig_expect(dx, CUDA_FLOAT32, i,
			   (double)dy[i] * pow((double)scale[i], -0.75) -
				   2 * 0.5 * 0.75 / 3 * (double)x[i] * sum);
	}
}

/* ---- pooling ---- */

/* Planes of 9 x 5, or of 3 x 3 x 5, as many as fit (one at least), consecutive or interleaved. */
enum { HEIGHT = 9, WIDTH = 5, AREA = HEIGHT * WIDTH };
static const struct cuda_windows windows[] = {
	{{HEIGHT, WIDTH, 1}, {5, 3, 1}, {3, 2, 1}, {2, 2, 1}, {1, 0, 0}, 0},
	{{HEIGHT, WIDTH, 1}, {5, 3, 1}, {3, 3, 1}, {2, 2, 1}, {1, 1, 0}, 1},
	{{HEIGHT, WIDTH, 1}, {1, 1, 1}, {HEIGHT, WIDTH, 1}, {1, 1, 1}, {0, 0, 0}, 1},
	{{HEIGHT, WIDTH, 1}, {4, 4, 1}, {2, 2, 1}, {2, 1, 1}, {0, 0, 0}, 0},
	{{HEIGHT, WIDTH, 1}, {3, 2, 1}, {1, 2, 1}, {3, 3, 1}, {0, 0, 0}, 1},
	/* volumes: height, width, depth */
	{{3, WIDTH, 3}, {2, 3, 2}, {2, 2, 3}, {1, 2, 2}, {0, 1, 1}, 0},
	{{3, WIDTH, 3}, {3, 2, 2}, {3, 3, 2}, {1, 2, 1}, {1, 0, 0}, 1},
	{{3, WIDTH, 3}, {1, 2, 2}, {3, 4, 2}, {1, 2, 2}, {0, 1, 0}, 1},
	{{HEIGHT, WIDTH, 1}, {5, 3, 1}, {3, 3, 3}, {2, 2, 1}, {1, 1, 1}, 1}, /* padded in depth */
};
enum { IMAGES = 5, WINDOWS = sizeof windows / sizeof windows[0] };

struct pool {
	const struct cuda_windows *w;
	size_t planes, step, n_in, n_out; /* step: between elements of a plane */
};

static size_t out_area_of(const struct cuda_windows *w)
{
	return (size_t)(w->out[0] * w->out[1] * w->out[2]);
}

static struct pool pool_of(const struct variant *v, int k, int groups)
{
	const size_t samples = v->n / (AREA * v->channels) + 1;
	struct pool p = {.w = &windows[k]};

	p.step = v->odd || groups ? v->channels : 1;
	p.planes = samples * v->channels;
	p.n_in = p.planes * AREA;
	p.n_out = p.planes * out_area_of(p.w);
	return p;
}

static size_t in_plane(const struct pool *p, size_t plane, size_t area, int k)
{
	return plane / p->step * area * p->step + (size_t)k * p->step + plane % p->step;
}

/* Output number o by axis. */
static void output_of(const struct cuda_windows *w, int o, int *at)
{
	at[1] = o % w->out[1];
	at[0] = o / w->out[1] % w->out[0];
	at[2] = o / w->out[1] / w->out[0];
}

/* The input positions of output o: their number. */
static int positions(const struct cuda_windows *w, int o, int *out)
{
	const int *of = w->kernel;
	int n = 0, first[3];

	output_of(w, o, first);
	for (int d = 0; d < 3; d++)
		first[d] = first[d] * w->stride[d] - w->pad[d];
	for (int i = 0; i < of[0] * of[1] * of[2]; i++) {
		const int z = first[2] + i / of[1] / of[0], y = first[0] + i / of[1] % of[0];
		const int x = first[1] + i % of[1];

		if (z >= 0 && z < w->in[2] && y >= 0 && y < w->in[0] && x >= 0 && x < w->in[1])
			out[n++] = (z * w->in[0] + y) * w->in[1] + x;
	}
	return n;
}

/* Padding counts for averages, the part beyond it does not: as in Caffe and MXNet. */
static int divisor(const struct cuda_windows *w, int output)
{
	int area = 1, o[3];

	output_of(w, output, o);
	for (int d = 0; d < 3; d++) {
		const int begin = o[d] * w->stride[d] - w->pad[d];
		const int end = begin + w->kernel[d], most = w->in[d] + w->pad[d];

		area *= (end < most ? end : most) - begin;
	}
	return area;
}

/* Where a maximum is: in the plane, or for groups in the window, of which padding is a part. */
static int winner_at(const void *winners, const struct pool *p, int groups, size_t i, int o)
{
	const struct cuda_windows *w = p->w;
	const int place = groups ? ((const uint8_t *)winners)[i] : 0;

	if (!groups)
		return ((const int *)winners)[i];
	return (o / w->out[1] * w->stride[0] - w->pad[0] + place / w->kernel[1]) * WIDTH +
	       o % w->out[1] * w->stride[1] - w->pad[1] + place % w->kernel[1];
}

static void set_winner(void *winners, const struct pool *p, int groups, size_t i, int o, int at)
{
	for (int k = 0; groups && k < p->w->kernel[0] * p->w->kernel[1]; k++) {
		((uint8_t *)winners)[i] = (uint8_t)k;
		if (winner_at(winners, p, groups, i, o) == at)
			return;
	}
	((int *)winners)[i] = at;
}

static void pool_case(const struct variant *v, int type, int groups, enum kernel_id kernel)
{
	int at[AREA];

	for (int k = 0; k < (groups ? IMAGES : WINDOWS); k++) {
		const struct pool p = pool_of(v, k, groups);
		const size_t out_area = out_area_of(p.w);
		const void *x = rig_numbers(type, p.n_in, 67);
		void *y = rig_numbers(type, p.n_out, 68);
		void *winners =
			p.w->average ? NULL : rig_bytes(p.n_out * (groups ? 1 : sizeof(int)), 0);
		const struct cuda_pool a = {*p.w, x, y, type, p.step, winners,
					    groups ? p.n_out / 8 : p.n_out};

		rig_run(kernel, v, a.n, &a);
		for (size_t i = 0; i < p.planes * out_area; i++) {
			const size_t plane = i / out_area;
			const int o = (int)(i % out_area);
			const int n = positions(p.w, o, at);
			const size_t to = in_plane(&p, plane, out_area, o);
			double sum = 0, most = -INFINITY;
			int winner = -1;

			for (int e = 0; e < n; e++) {
				double one = rig_at(x, type,
						    in_plane(&p, plane, AREA, at[e]));

				sum += one;
				if (one > most)
					most = one, winner = at[e];
			}
			rig_expect(y, type, to,
				   p.w->average ? sum / divisor(p.w, o) : most);
			if (winners)
				CHECK(winner_at(winners, &p, groups, to, o) == winner);
		}
	}
}

static void backward_case(const struct variant *v, int type, int groups, enum kernel_id kernel)
{
	int at[AREA];

	for (int k = 0; k < (groups ? IMAGES : WINDOWS); k++) {
		const struct pool p = pool_of(v, k, groups);
		const size_t out_area = out_area_of(p.w);
		const void *dy = rig_numbers(type, p.n_out, 69);
		void *dx = rig_numbers(type, p.n_in, 70);
		void *winners = rig_bytes(p.n_out * (groups ? 1 : sizeof(int)), 0);
		double *want = rig_bytes(p.n_in * sizeof *want, 0);
		const struct cuda_pool_backward a = {
			*p.w, dy,     p.w->average ? NULL : winners,      dx,
			type, p.step, groups ? p.n_in / 8 : p.n_in};

		for (size_t i = 0; i < p.planes * out_area; i++) {
			const int o = (int)(i % out_area), n = positions(p.w, o, at);
			const size_t from = in_plane(&p, i / out_area, out_area, o);
			const double d = rig_at(dy, type, from);

			set_winner(winners, &p, groups, from, o, at[i % (size_t)n]);
			for (int e = 0; e < n; e++)
				if (p.w->average || at[e] == at[i % (size_t)n])
					want[in_plane(&p, i / out_area, AREA, at[e])] +=
						p.w->average ? d / divisor(p.w, o) : d;
		}
		rig_run(kernel, v, a.n, &a);
		for (size_t i = 0; i < p.n_in; i++)
			rig_expect(dx, type, i, want[i]);
	}
}

#define CASES(name, run) \
	void test_##name(const struct variant *v) \
	{ \
		run(v, v->type, 0, KERNEL_##name); \
	} \
	void test_##name##_float16(const struct variant *v) \
	{ \
		if (v->channels % 8 == 0) \
			run(v, CUDA_FLOAT16, 1, KERNEL_##name##_float16); \
	} \
	void test_##name##_bfloat16(const struct variant *v) \
	{ \
		if (v->channels % 8 == 0) \
			run(v, CUDA_BFLOAT16, 1, KERNEL_##name##_bfloat16); \
	}
CASES(pool, pool_case)
CASES(pool_backward, backward_case)
