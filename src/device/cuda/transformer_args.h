/* SPDX-License-Identifier: Apache-2.0 */
/* Continuation of args.h: the layers of transformers. */
#ifndef DEVICE_CUDA_TRANSFORMER_ARGS_H
#define DEVICE_CUDA_TRANSFORMER_ARGS_H

/* ---- smooth activations: values of enum mu_activation_kind ---- */

enum { CUDA_GELU = 3, CUDA_GELU_TANH, CUDA_SILU };

/* y = f(x); backward: y = dy f'(x) */
struct cuda_smooth {
	const void *x, *dy;
	void *y;
	int type, kind;
	size_t n;
};
#define cuda_smooth_backward cuda_smooth

/* ---- layer norm: (samples, channels, area); a row is the channels of a position ---- */

/* xhat = (x - mean) factor */
struct cuda_row_statistics {
	float mean, factor;
};

struct cuda_layer_norm {
	const void *x;
	void *y;
	const float *gamma, *beta;              /* beta NULL: 0 */
	struct cuda_row_statistics *statistics; /* of each row, for backward; NULL: not kept */
	int type, rms;
	float eps;
	size_t channels, area;
	size_t n;
};

struct cuda_layer_norm_backward {
	const void *x, *dy;
	void *dx;
	const float *gamma;
	const struct cuda_row_statistics *statistics;
	int type, rms;
	size_t channels, area;
	size_t n;
};

/* Partial sums of each channel, of dy xhat and of dy: lane l adds `rows / lanes` neighbouring rows.
 * An element is a lane and eight channels. */
struct cuda_layer_norm_sums {
	const void *x, *dy;
	const struct cuda_row_statistics *statistics;
	float *first, *second; /* (lanes, channels) */
	int type;
	size_t channels, area, rows, lanes;
	size_t n;
};

/* ---- positions: (samples, c, steps), or with `last` (samples, steps, c) ---- */

/* y(t) = x(t - first) + weight[t]; first 1: y(0) = token + weight[0] */
struct cuda_positions {
	const void *x;
	const float *weight, *token;
	void *y;
	int type, last;
	size_t c, steps, first; /* steps: of y */
	size_t n;
};

/* Gradients of weight (most, c), then, where it is not NULL, of token (c): sums over samples. */
struct cuda_positions_backward {
	const void *dy;
	float *weight, *token;
	int type, last, adds; /* adds: add to the present values */
	size_t samples, c, steps, most;
	size_t n;
};

/* ---- one step: y (samples, c), float32, of x as above; backward: n elements of dx ---- */

struct cuda_pick_step {
	const void *x;
	float *y;
	int type, last;
	size_t c, steps, step;
	size_t n;
};

struct cuda_pick_step_backward {
	const float *dy;
	void *dx;
	int type, last;
	size_t c, steps, step;
	size_t n;
};

#endif
