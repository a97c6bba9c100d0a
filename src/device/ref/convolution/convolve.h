/* SPDX-License-Identifier: Apache-2.0 */
/*
 * convolve: the loops of a convolution and of its gradients. For sample s, filter f and position
 * o = (z, y, x) of the output:
 *
 *	out[s][f][o] = bias[f] + sum over c, t of weight[f][c][t] * in[s][c][o * stride + t * dilate
 *		       - pad]
 *
 * by axis, where c runs over the channels of f's group, t over the positions of the kernel, and
 * inputs outside the image count as zero. The loops process whole planes (in three axes: volumes)
 * for one weight at a time: a plane of double sums, long inner loops.
 */
#ifndef DEVICE_REF_CONVOLVE_H
#define DEVICE_REF_CONVOLVE_H

#include "device/window.h"

/* Of inputs and outputs of these sizes. */
struct convolve {
	long n, channels, filters;
	long group_channels, group_filters; /* of one group */
	long in_area, out_area, taps;       /* taps: positions of a kernel */
	struct mu_window w;
	/* For the loops. */
	const float *weight;
	const float *bias; /* NULL: none */
	double *sums;      /* room for a plane of either side */
};

/* All but what the loops need; w is set. */
void mu_ref_convolve_sizes(struct convolve *c, size_t n, size_t channels, size_t filters,
			   int groups);
size_t mu_ref_convolve_scratch(const struct convolve *c); /* bytes of sums */
void mu_ref_convolve(const struct convolve *c, const float *in, float *out);
/* From the outputs' gradients those of the inputs, to which a bias of each channel is added; of the
 * weights; of a bias: the sum of a channel of (n, channels, area). */
void mu_ref_convolve_data(const struct convolve *c, const float *d_out, float *d_in);
void mu_ref_convolve_weight(const struct convolve *c, const float *in, const float *d_out,
			    float *d_weight);
void mu_ref_channel_sums(const struct mu_shape *shape, const float *d, float *d_bias);

#endif
