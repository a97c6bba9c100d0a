/* SPDX-License-Identifier: Apache-2.0 */
/* The arguments of our kernels, known to them (cuda_kernels.cu) and to those that start them. */
#ifndef DEVICE_CUDA_ARGS_H
#define DEVICE_CUDA_ARGS_H

#include <stddef.h>
#include <stdint.h>

#define CUDA_KERNELS(F) F(fill)

/* y[i] = value */
struct cuda_fill {
	float *y;
	float value;
	size_t n;
};

#endif
