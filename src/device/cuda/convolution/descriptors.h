/* SPDX-License-Identifier: Apache-2.0 */
/* descriptors: of a convolution in two or three axes of space, for cuDNN's functions. */
#ifndef DEVICE_CUDA_CONVOLUTION_DESCRIPTORS_H
#define DEVICE_CUDA_CONVOLUTION_DESCRIPTORS_H

#include "device/cuda/cuda.h"
#include "device/window.h"

struct cuda_descriptors {
	cudnnTensorDescriptor_t in, out;
	cudnnFilterDescriptor_t weight;
	cudnnConvolutionDescriptor_t shape;
	const struct cuda_layout *layout; /* of all */
};

/* The convolution that reads `in` and writes `out`, both in `layout`, with a weight of this shape,
 * but of as many filters as a position of `out` has places. */
struct cuda_described {
	const struct mu_tensor *in, *out;
	const struct mu_shape *weight;
	const struct cuda_layout *layout;
	const struct mu_window *window;
	int groups;
};
enum mu_status mu_cuda_describe(struct cuda_device *d, const struct cuda_described *of,
				struct cuda_descriptors *out);
void mu_cuda_free_descriptors(struct cuda_device *d, const struct cuda_descriptors *of);

#endif
