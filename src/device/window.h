/* SPDX-License-Identifier: Apache-2.0 */
/*
 * window: windows that move over a tensor's axes of space, such as a convolution's, always in
 * MU_MAX_SPACE axes: those that the tensor lacks come first, with sizes of 1, so that one loop
 * serves images and volumes. What has an array for the tensor's own axes, as oneDNN and cuDNN,
 * begins at `first`.
 */
#ifndef DEVICE_WINDOW_H
#define DEVICE_WINDOW_H

#include <muster/device.h>

/* Sizes are signed because windows begin at negative positions. */
struct mu_window {
	int first; /* axis that the tensor has */
	long in[MU_MAX_SPACE], out[MU_MAX_SPACE];
	long kernel[MU_MAX_SPACE], stride[MU_MAX_SPACE], pad[MU_MAX_SPACE], dilate[MU_MAX_SPACE];
};

/* Of these inputs, whose `out` follows from the attributes; an axis of it is 0 or less where the
 * kernel does not fit. */
struct mu_window mu_window_of_convolution(const struct mu_convolution *a,
					  const struct mu_shape *in);
/* Of the convolution that reads the output and writes this input. */
struct mu_window mu_window_of_deconvolution(const struct mu_deconvolution *a,
					    const struct mu_shape *in);
struct mu_window mu_window_of_pooling(const struct mu_pooling *a, const struct mu_shape *in);

/* The product of all axes. */
long mu_window_area(const long *sizes);
/* Elements of the input that a kernel spans along an axis. */
static inline long mu_window_span(const struct mu_window *w, int axis)
{
	return w->dilate[axis] * (w->kernel[axis] - 1) + 1;
}
/* Padding after the input, up to the end of the last window; negative: elements that are not read.
 */
static inline long mu_window_pad_after(const struct mu_window *w, int axis)
{
	return (w->out[axis] - 1) * w->stride[axis] + mu_window_span(w, axis) - w->in[axis] -
	       w->pad[axis];
}

enum { MU_WINDOW_TEXT = 48 };
/* "5x5" of the tensor's own axes; returns text. */
const char *mu_window_text(const struct mu_window *w, const long *sizes, char text[MU_WINDOW_TEXT]);

#endif
