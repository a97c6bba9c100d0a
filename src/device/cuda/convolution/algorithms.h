/* SPDX-License-Identifier: Apache-2.0 */
/*
 * algorithms: cuDNN's, of a convolution's phases. For each phase cuDNN's heuristics list
 * algorithms, the fastest first. The first one is used that is deterministic, needs at most
 * CUDA_CONVOLUTION_BYTES of scratch, and is direct: Winograd and Fourier transforms round
 * differently (measured on an H100: cuDNN's Winograd loses up to 2.6e-4 with 3x3 kernels and 3e-2
 * with 5x5, direct ones 1e-6); then some that are not listed. Products are float32, or TF32 where
 * the device allows it.
 */
#ifndef DEVICE_CUDA_CONVOLUTION_ALGORITHMS_H
#define DEVICE_CUDA_CONVOLUTION_ALGORITHMS_H

#include "device/cuda/convolution/descriptors.h"

#define CUDA_CONVOLUTION_BYTES ((size_t)1 << 30)

struct cuda_algorithm {
	int algorithm;
	size_t nbytes; /* of scratch */
	cudnnMathType_t math;
};

/* op: for the error that there is none. */
enum mu_status mu_cuda_choose_algorithm(struct cuda_device *d, const struct mu_op *op,
					const struct cuda_descriptors *of,
					enum mu_convolution_phase phase,
					struct cuda_algorithm *out);

/* Values or gradients, of which the phase writes one: y, x, or weight. adds: to the present
 * values. */
struct cuda_convolved {
	void *x, *weight, *y, *room;
	bool adds;
};
enum mu_status mu_cuda_convolve(struct cuda_device *d, const struct cuda_descriptors *of,
				enum mu_convolution_phase phase, const struct cuda_algorithm *by,
				const struct cuda_convolved *a);

#endif
