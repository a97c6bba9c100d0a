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

#endif
