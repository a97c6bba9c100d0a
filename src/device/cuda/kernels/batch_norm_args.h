/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of the kernels of batch_norm.h and batch_norm_groups.h. See args.h. */
#ifndef DEVICE_CUDA_KERNELS_BATCH_NORM_ARGS_H
#define DEVICE_CUDA_KERNELS_BATCH_NORM_ARGS_H

#include <stddef.h>
#include <stdint.h>

/* What becomes of the sums of dy and of dy normal of batch-norm's channels. means[2 c], [2 c + 1]:
 * their means over 1 / share values; and the gradients, which are the sums: d_gamma is 0 if fixed,
 * and those of the statistics are `count` times these. */
struct cuda_normal_totals {
	const double *mean, *variance;
	float *means, *d_gamma, *d_beta, *d_mean, *d_variance;
	int fixed;
	double share, count;
};

/*
 * Partial sums of each channel of (samples, channels, area): of x, or of x - the first x of the
 * channel, and its square; or of dy, and dy normal. Lane l adds samples l, l + lanes, ...
 * plane_sums: one block of threads per lane and channel, n = lanes * channels. The others are for
 * tensors of their type with contiguous channels (area 1, channels a multiple of eight): a block
 * adds several samples at a time, of `width` groups of eight channels, its chunk; n = lanes *
 * chunks. With `ended` the block of a chunk that ends last adds its lanes and makes `totals`.
 */
enum { CUDA_OF_VALUES, CUDA_OF_SPREAD, CUDA_OF_GRADIENTS };
enum { CUDA_MOST_WIDTH = 32 };
struct cuda_partial_sums {
	int of;
	const void *x, *dy;
	const struct cuda_normal *normals;
	float *first, *second; /* (lanes, channels) */
	/* joined_sums: dy is the sum of dy and `more` where `on` has a bit, rounded and written
	 * to `sum`, which may be dy. */
	const void *more;
	const uint8_t *on; /* a byte a group of eight channels */
	void *sum;
	int type, relu;
	size_t samples, channels, area, lanes, width;
	uint32_t *ended; /* blocks of each chunk, 0 before and after; not used with one lane */
	struct cuda_normal_totals totals;
	size_t n;
};
#define cuda_plane_sums cuda_partial_sums
#define cuda_value_sums_float16 cuda_partial_sums
#define cuda_value_sums_bfloat16 cuda_partial_sums
#define cuda_gradient_sums_float16 cuda_partial_sums
#define cuda_gradient_sums_bfloat16 cuda_partial_sums
#define cuda_joined_sums_float16 cuda_partial_sums
#define cuda_joined_sums_bfloat16 cuda_partial_sums

/* These partial sums, which the kernels below add, for eight channels in a block of threads. */
struct cuda_lanes {
	const float *first, *second;
	size_t lanes, channels;
};

/* out = sum of each channel; adds: add to the present values. n groups of eight channels. */
struct cuda_channel_sums {
	struct cuda_lanes of;
	float *out;
	int adds;
	size_t n;
};

/* ---- batch-norm: (samples, channels, area) ---- */

/* Per channel: y = (x - mean) scale + shift. */
struct cuda_normal {
	float mean, inverse, scale, shift;
};

/* Compute these for n channels, from the statistics of the batch or from running ones (the other
 * two NULL). */
struct cuda_normals {
	const double *mean, *variance;
	const float *running_mean, *running_variance;
	const float *gamma, *beta; /* gamma NULL: 1 */
	float eps;
	struct cuda_normal *out;
	size_t n;
};

/* Mean and biased variance of each channel, of 1 / share values: x is the first of channel 0, and
 * that of the next channel is `area` further on; then `normals` of them. n groups of eight
 * channels. x NULL: the sums are of the values themselves. */
struct cuda_statistics {
	struct cuda_lanes of;
	const void *x;
	int type;
	double *mean, *variance;
	double share;
	size_t area;
	struct cuda_normals normals;
	size_t n;
};

/* With `add`: y = f(normalized x + add), which may be y. n elements; n threads for the kernels of a
 * type, which need contiguous channels, a multiple of eight: see batch_norm_groups.h. These may
 * also make the constants, of one lane of sums of values: then `from` has where they go. */
struct cuda_normalize {
	const struct cuda_normal *normals;
	struct cuda_statistics from; /* of.first NULL: not so */
	const void *x, *add;
	void *y;
	uint8_t *on; /* with `add`, kernels of a type: a bit for each y > 0; NULL: not needed */
	int type, relu;
	size_t samples, channels, area;
	size_t n;
};
#define cuda_normalize_float16 cuda_normalize
#define cuda_normalize_bfloat16 cuda_normalize

/* Totals of the lanes that plane_sums wrote. n groups of eight channels. */
struct cuda_normal_sums {
	struct cuda_lanes of;
	struct cuda_normal_totals totals;
	size_t n;
};

/* n as for cuda_normalize. */
struct cuda_normalize_backward {
	const struct cuda_normal *normals;
	const void *x, *dy;
	const float *means;
	void *dx;
	int type, relu;
	size_t samples, channels, area;
	size_t n;
};
#define cuda_normalize_backward_float16 cuda_normalize_backward
#define cuda_normalize_backward_bfloat16 cuda_normalize_backward

#endif
