/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels, compiled to a bundle of machine code and PTX, which cuda.c loads into the driver.
 * The computations are in operations.h; this file distributes them over threads. */
#include "args.h"

#define CUDA_FUNCTION static __device__ inline
#define CUDA_SHARED __shared__
#define CUDA_BARRIER() __syncthreads()

enum { THREADS = CUDA_THREADS, WARP = CUDA_WARP };

/* Reduce over the threads of a block, in a fixed order; all threads receive the result. */
static __device__ double over_block(double v, bool maximum)
{
	__shared__ double of[THREADS];
	double result;

	of[threadIdx.x] = v;
	__syncthreads();
	for (unsigned half = THREADS / 2; half > 0; half /= 2) {
		if (threadIdx.x < half)
			of[threadIdx.x] = maximum ? fmax(of[threadIdx.x], of[threadIdx.x + half])
						  : of[threadIdx.x] + of[threadIdx.x + half];
		__syncthreads();
	}
	result = of[0];
	__syncthreads();
	return result;
}

static __device__ double sum_of(double v)
{
	return over_block(v, false);
}

static __device__ double most_of(double v)
{
	return over_block(v, true);
}

/* Sum and maximum over a warp: all lanes receive the same bits. */
static __device__ float warp_sum(float v)
{
	for (int by = WARP / 2; by > 0; by /= 2)
		v += __shfl_xor_sync(0xffffffffu, v, by);
	return v;
}

static __device__ float warp_most(float v)
{
	for (int by = WARP / 2; by > 0; by /= 2)
		v = fmaxf(v, __shfl_xor_sync(0xffffffffu, v, by));
	return v;
}

#include "operations.h"

/* A grid-stride loop over elements. */
#define EACH(name) \
	extern "C" __global__ void __launch_bounds__(THREADS) name(const struct cuda_##name a) \
	{ \
		const size_t step = (size_t)gridDim.x * THREADS; \
		for (size_t i = (size_t)blockIdx.x * THREADS + threadIdx.x; i < a.n; i += step) \
			name##_at(&a, i); \
	}

/* The same over groups of eight elements. */
#define EIGHTS(name) \
	extern "C" __global__ void __launch_bounds__(THREADS) name(const struct cuda_##name a) \
	{ \
		const size_t step = (size_t)gridDim.x * THREADS * CUDA_EIGHT; \
		size_t i = ((size_t)blockIdx.x * THREADS + threadIdx.x) * CUDA_EIGHT; \
		for (; i < a.n; i += step) \
			name##_at(&a, i); \
	}

/* A grid-stride loop of blocks over rows. */
#define ROWS(name) \
	extern "C" __global__ void __launch_bounds__(THREADS) name(const struct cuda_##name a) \
	{ \
		for (size_t row = blockIdx.x; row < a.n; row += gridDim.x) \
			name##_row(&a, row, threadIdx.x, THREADS); \
	}

/* A grid-stride loop of warps over rows. */
#define WARPS(name) \
	extern "C" __global__ void __launch_bounds__(THREADS) name(const struct cuda_##name a) \
	{ \
		const size_t step = (size_t)gridDim.x * (THREADS / WARP); \
		size_t row = (size_t)blockIdx.x * (THREADS / WARP) + threadIdx.x / WARP; \
		for (; row < a.n; row += step) \
			name##_row(&a, row, threadIdx.x % WARP, WARP); \
	}

CUDA_EACH(EACH)
CUDA_EIGHTS(EIGHTS)
CUDA_ROWS(ROWS)
CUDA_WARPS(WARPS)
