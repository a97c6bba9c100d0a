/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Winograd's F(4x4, 3x3), known to winograd*.c only: convolutions of 3 x 3, stride 1, as 36
 * products of matrices (Lavin and Gray, Fast algorithms for convolutional neural networks, 2016).
 *
 * The output is cut into tiles of 4 x 4, numbered row by row, image after image. The 6 x 6 input
 * pixels of a tile, its 4 x 4 output pixels and the 3 x 3 weights each become values at the 36
 * points (0, +-a, +-b, infinity)^2, where a convolution is a product per point. So of point i:
 *
 *	forward          M[i] (tiles, filters) = V[i] (tiles, channels) U[i] (channels, filters)
 *	data gradient    the same with filters and channels swapped, weights turned, padding 2 - pad
 *	weight gradient  U[i] (channels, filters) = V[i]' (channels, tiles) M[i] (tiles, filters)
 *
 * Tiles are worked on in blocks of WINOGRAD_TILES, so that V and M of few channels stay in the
 * L2 cache. A sum has the same order with every thread count and instruction set.
 *
 * Layouts: images in any whose channels lie in vectors (nhwc, or blocks as long as a vector). V and
 * M: rows. U: panels of WINOGRAD_PANEL vectors of columns, each of rows. Channels are multiples of
 * 16.
 */
#ifndef DEVICE_CPU_WINOGRAD_H
#define DEVICE_CPU_WINOGRAD_H

#include <stdbool.h>
#include <stddef.h>

#define WINOGRAD_POINTS 36
#define WINOGRAD_TILES 48
#define WINOGRAD_PANEL 2
#define WINOGRAD_CHUNK 48 /* channels whose weight gradients are made at a time */

/* Floats from one image, vector of channels, row, pixel to the next. */
struct winograd_image {
	float *data;
	size_t image, vector, row, pixel;
	int size[2];
};

/* n tiles from `first`. pad: of the input. */
struct winograd_tiles {
	size_t columns, per_image, first, n;
	int pad[2];
};

/* A matrix for each point, `step` floats apart. */
struct winograd_points {
	float *data;
	size_t step, rows, columns;
};

/* Floats from one input channel, output channel of 3 x 3 weights to the next. */
struct winograd_weights {
	const float *data;
	size_t in, out;
	bool turned; /* by 180 degrees */
};

/* What follows the convolution. */
struct winograd_after {
	const float *bias; /* or NULL */
	bool relu;
};

/* Weight gradients (9, rows, columns), to which some are added. */
struct winograd_sums {
	float *data;
	size_t step, columns;
};

struct winograd_kernels {
	size_t lanes; /* of a vector */
	void (*read_input)(const struct winograd_image *image, const struct winograd_tiles *t,
			   const struct winograd_points *to);
	/* Of output gradients; adds them up, a sum for each channel. */
	void (*read_output)(const struct winograd_image *image, const struct winograd_tiles *t,
			    const struct winograd_points *to, float *sums);
	void (*write_output)(const struct winograd_points *from, const struct winograd_tiles *t,
			     const struct winograd_image *to, const struct winograd_after *after);
	/* Output channels of these numbers, in vectors. */
	void (*read_weights)(const struct winograd_weights *w, const struct winograd_points *to,
			     size_t first, size_t end);
	/* m = v u */
	void (*multiply)(const struct winograd_points *v, const struct winograd_points *u,
			 const struct winograd_points *m);
	/* The same of channels (columns of v) first to first + n, n = u's rows: u = v' m, and the
	 * weights' gradients from u. */
	void (*multiply_weights)(const struct winograd_points *v, const struct winograd_points *m,
				 const struct winograd_points *u, size_t first,
				 const struct winograd_sums *to);
};

/* For vectors of n floats; NULL: not on this processor. Instructions that oneDNN was told not
 * to use (DNNL_MAX_CPU_ISA, ONEDNN_MAX_CPU_ISA) are not used here. */
const struct winograd_kernels *mu_cpu_winograd_kernels(size_t lanes);

#endif
