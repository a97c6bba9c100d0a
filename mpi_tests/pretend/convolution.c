/* SPDX-License-Identifier: Apache-2.0 */
/* The convolutions of the pretended cuDNN, by their plain formula, in double precision. */
#include <stdint.h>
#include <string.h>

#include "pretend.h"

static int type_of(const struct pretend_tensor *t)
{
	return t->like.type == CUDNN_DATA_FLOAT  ? CUDA_FLOAT32
	       : t->like.type == CUDNN_DATA_HALF ? CUDA_FLOAT16
						 : CUDA_BFLOAT16;
}

/* at: height, width, depth. */
static size_t place(const struct pretend_tensor *t, int n, int c, const int *at)
{
	const int *of = t->like.n;
	const size_t area = (size_t)of[2] * of[3] * of[4];
	const size_t position = ((size_t)at[2] * of[2] + at[0]) * of[3] + at[1];

	if (t->like.format == CUDNN_TENSOR_NHWC)
		return ((size_t)n * area + position) * of[1] + c;
	return ((size_t)n * of[1] + c) * area + position;
}

double pretend_tf32(float v)
{
	uint32_t bits;

	memcpy(&bits, &v, sizeof bits);
	if ((~bits & 0x7f800000u) != 0) /* finite */
		bits = (bits + 0x1000u) & ~0x1fffu;
	memcpy(&v, &bits, sizeof v);
	return (double)v;
}

/* Does cuDNN multiply these as TF32? */
static int is_tf32(const struct pretend_convolution *k)
{
	return k->x.like.type == CUDNN_DATA_FLOAT && k->shape.math == CUDNN_DEFAULT_MATH;
}

static double factor_at(const struct pretend_convolution *k, const struct pretend_tensor *t,
			size_t i)
{
	const float v = number_at(t->data, type_of(t), i);

	return is_tf32(k) ? pretend_tf32(v) : (double)v;
}

size_t pretend_count_of(const struct pretend_tensor *t)
{
	return (size_t)t->like.n[0] * t->like.n[1] * t->like.n[2] * t->like.n[3] *
	       t->like.n[4];
}

/* Position number i of the axes from H on. */
static void position_of(const int *n, int i, int *at)
{
	at[1] = i % n[3];
	at[0] = i / n[3] % n[2];
	at[2] = i / n[3] / n[2];
}

/* Elements between channels. */
static size_t step_of(const struct pretend_tensor *t)
{
	const int *of = t->like.n;

	return t->like.format == CUDNN_TENSOR_NHWC ? 1 : (size_t)of[2] * of[3] * of[4];
}

/* The taps of an output pixel that lie inside: where, in a channel of x and of w. Their number. */
enum { MAX_TAPS = 4096 };
struct tap {
	size_t x, w;
};

static int taps_of(const struct pretend_convolution *k, const int *pixel, struct tap *taps)
{
	const struct cudnnConvolutionStruct *s = &k->shape;
	const int *of_x = k->x.like.n, *of_w = k->w.like.n;
	int n = 0;

	NEED(of_w[2] * of_w[3] * of_w[4] <= MAX_TAPS);
	for (int r = 0; r < of_w[2] * of_w[3] * of_w[4]; r++) {
		int tap[3], from[3], outside = 0;

		position_of(of_w, r, tap);
		for (int d = 0; d < 3; d++) {
			from[d] = pixel[d] * s->stride[d] - s->pad[d] + tap[d] * s->dilation[d];
			outside |= from[d] < 0 || from[d] >= of_x[2 + d];
		}
		if (!outside)
			taps[n++] = (struct tap){place(&k->x, 0, 0, from), place(&k->w, 0, 0, tap)};
	}
	return n;
}

/* All products of an output pixel of (n, c). values: by PRETEND_OUT_X and so on. */
static void add_pixel(const struct pretend_convolution *k, double *const *values, int n, int c,
		      const int *pixel)
{
	static const int origin[3];
	static _Thread_local struct tap taps[MAX_TAPS];
	const int channels = k->w.like.n[1], n_taps = taps_of(k, pixel, taps);
	const int first = c / (k->y.like.n[1] / k->shape.groups) * channels;
	const size_t x_step = step_of(&k->x), w_step = step_of(&k->w);
	double *y = values[PRETEND_OUT_Y] + place(&k->y, n, c, pixel);

	for (int q = 0; q < channels; q++) {
		double *x = values[PRETEND_OUT_X] + place(&k->x, n, first, origin) +
			    (size_t)q * x_step;
		double *w = values[PRETEND_OUT_W] + place(&k->w, c, 0, origin) +
			    (size_t)q * w_step;

		for (int r = 0; r < n_taps; r++)
			if (k->out == PRETEND_OUT_X)
				x[taps[r].x] += w[taps[r].w] * *y;
			else if (k->out == PRETEND_OUT_W)
				w[taps[r].w] += x[taps[r].x] * *y;
			else
				*y += x[taps[r].x] * w[taps[r].w];
	}
}

/* Channels are last. */
static void add_sums(const struct pretend_convolution *k, const double *y)
{
	const size_t channels = (size_t)k->y.like.n[1];

	for (size_t c = 0; k->sums[0] && c < channels; c++) {
		float sum = 0, squares = 0;

		for (size_t i = c; i < pretend_count_of(&k->y); i += channels) {
			sum += (float)y[i];
			squares += (float)y[i] * (float)y[i];
		}
		k->sums[0][c] = sum;
		k->sums[1][c] = squares;
	}
}

static int run_convolution(struct pretend_work *work)
{
	struct pretend_convolution k;
	const struct pretend_tensor *tensors[3] = {
		[PRETEND_OUT_X] = &k.x, [PRETEND_OUT_W] = &k.w, [PRETEND_OUT_Y] = &k.y};
	const struct pretend_tensor *out;
	double *values[3];
	const int *of = k.y.like.n;

	memcpy(&k, work->args, sizeof k);
	out = tensors[k.out];
	for (int t = 0; t < 3; t++) {
		values[t] = calloc(pretend_count_of(tensors[t]), sizeof *values[t]);
		for (size_t i = 0; tensors[t] != out && i < pretend_count_of(tensors[t]); i++)
			values[t][i] = factor_at(&k, tensors[t], i);
	}
	for (int n = 0; n < of[0]; n++)
		for (int c = 0; c < of[1]; c++)
			for (int i = 0; i < of[2] * of[3] * of[4]; i++) {
				int pixel[3];

				position_of(of, i, pixel);
				add_pixel(&k, values, n, c, pixel);
			}
	add_sums(&k, values[PRETEND_OUT_Y]);
	for (size_t i = 0; i < pretend_count_of(out); i++) {
		if (k.adds)
			values[k.out][i] += (double)number_at(out->data, type_of(out), i);
		set_number(out->data, type_of(out), i, (float)values[k.out][i]);
	}
	for (int t = 0; t < 3; t++)
		free(values[t]);
	memset(work->to, 0x7f, work->n); /* the workspace holds nothing that is needed */
	return 1;
}

static struct pretend_cost cost_of_convolution(const struct pretend_convolution *k)
{
	static const char *const names[][2] = {
		[PRETEND_OUT_X] = {"cuDNN, data", "cuDNN, data, TF32"},
		[PRETEND_OUT_W] = {"cuDNN, weights", "cuDNN, weights, TF32"},
		[PRETEND_OUT_Y] = {"cuDNN, forward", "cuDNN, forward, TF32"}};
	const struct pretend_tensor *tensors[3] = {
		[PRETEND_OUT_X] = &k->x, [PRETEND_OUT_W] = &k->w, [PRETEND_OUT_Y] = &k->y};
	struct pretend_cost c = {
		.name = names[k->out][is_tf32(k)], .half = type_of(&k->x) != 0, .known = 1};

	for (int t = 0; t < 3; t++) {
		const double n = (double)pretend_count_of(tensors[t]) * (c.half ? 2 : 4);

		c.read += t != k->out || k->adds ? n : 0;
		c.written += t == k->out ? n : 0;
	}
	c.written += k->sums[0] ? 8.0 * k->y.like.n[1] : 0;
	c.operations = 2.0 * (double)pretend_count_of(&k->y) * k->w.like.n[1] *
		       k->w.like.n[2] * k->w.like.n[3] * k->w.like.n[4];
	return c;
}

cudnnStatus_t pretend_put_convolution(cudnnHandle_t h, const struct pretend_convolution *k,
				      void *room, size_t nbytes)
{
	struct pretend_work w = {.run = run_convolution,
				 .to = room,
				 .n = nbytes,
				 .cost = cost_of_convolution(k)};

	if (pretend_launch())
		return CUDNN_STATUS_EXECUTION_FAILED;
	memcpy(w.args, k, sizeof *k);
	pretend_put(pretend_stream(h), w);
	return 0;
}
