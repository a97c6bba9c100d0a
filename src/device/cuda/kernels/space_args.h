/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of the kernels of group norms and of what changes space: see args.h. Tensors are
 * (samples, channels, area), with `last` (samples, area, channels). */
#ifndef DEVICE_CUDA_KERNELS_SPACE_ARGS_H
#define DEVICE_CUDA_KERNELS_SPACE_ARGS_H

#include <stddef.h>
#include <stdint.h>

enum { CUDA_SPACE = 3 };

/* xhat = (x - mean) factor */
struct cuda_row_statistics {
	float mean, factor;
};

/* ---- group norm ---- */

/* Two sums over positions of a channel of a sample: of x and x x, or of dy and dy x. */
struct cuda_group_pair {
	double first, second;
};

/* Lane l of a channel adds every position l + k lanes. */
struct cuda_group_sums {
	const void *x, *dy; /* dy NULL: sums of x and of its squares */
	struct cuda_group_pair *sums; /* (samples, channels, lanes) */
	int type, last;
	size_t channels, area, lanes;
	size_t n; /* of sums */
};

struct cuda_group_totals {
	const struct cuda_group_pair *sums; /* (n, lanes) */
	struct cuda_group_pair *totals;     /* n */
	size_t lanes;
	size_t n; /* samples times channels */
};

/* Of each group: its statistics from the totals of x; or, where gamma is set, from those of dy the
 * means of g = dy gamma and of g xhat, as mean and factor. */
struct cuda_group_means {
	const struct cuda_group_pair *totals;
	const float *gamma;
	const struct cuda_row_statistics *statistics; /* with gamma */
	struct cuda_row_statistics *out;              /* (samples, groups) */
	float eps;
	size_t channels, groups, area;
	size_t n; /* of out */
};

/* y = xhat gamma + beta */
struct cuda_group_norm {
	const void *x;
	void *y;
	const float *gamma, *beta;
	const struct cuda_row_statistics *statistics;
	int type, last;
	uint32_t channels, groups, area;
	size_t n;
};

/* dx = factor (g - mean of g - xhat mean of (g xhat)) */
struct cuda_group_norm_backward {
	const void *x, *dy;
	void *dx;
	const float *gamma;
	const struct cuda_row_statistics *statistics, *means;
	int type, last;
	uint32_t channels, groups, area;
	size_t n;
};

/* Gradients of gamma and beta, from the totals of dy. */
struct cuda_group_gradients {
	const struct cuda_group_pair *totals;
	const struct cuda_row_statistics *statistics;
	float *gamma, *beta;
	int adds; /* to the present values */
	size_t samples, channels, groups;
	size_t n; /* channels */
};

/* ---- upsampling: axes are depth (of images 1), height, width ---- */

/* y at an output is a sum over its neighbours of x. backward: x is dy, y is dx, and both sizes are
 * those of forward. An element is eight channels of a position of y. */
struct cuda_upsample {
	const void *x;
	void *y;
	int type, last, linear, corners;
	size_t channels;
	int in[CUDA_SPACE], out[CUDA_SPACE];
	size_t n;
};
#define cuda_upsample_backward cuda_upsample

/* ---- pad and crop: (outer, depth, height, width, inner), inner in groups of `width` ---- */

/* y at position p is x at p - before, or `value` where x has none. */
struct cuda_pad {
	const void *x;
	void *y;
	int type, width; /* 8 or 1 numbers */
	int in[CUDA_SPACE], out[CUDA_SPACE], before[CUDA_SPACE];
	float value;
	uint32_t inner;
	size_t n; /* groups of y */
};

#endif
