/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Our kernels, one line each: what they do with an element is in headers. Compiled to a bundle of
 * machine code and PTX, which cuda.c gives to the driver.
 */
#include "cuda_args.h"

/* A thread takes every so-many-th element. */
#define EACH(name, type) \
	extern "C" __global__ void name(const struct type a) \
	{ \
		const size_t step = (size_t)gridDim.x * blockDim.x; \
		for (size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x; i < a.n; i += step) \
			name##_at(&a, i); \
	}

static __device__ void fill_at(const struct cuda_fill *a, size_t i)
{
	a->y[i] = a->value;
}

EACH(fill, cuda_fill)
