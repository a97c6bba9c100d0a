/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What src/device/cuda/kernels uses of CUDA's C++, for a compiler of the host. Included before it
 * (-include), in C++. Needs no headers of CUDA: empty cuda_fp16.h and cuda_bf16.h will do.
 */
#ifndef KERNELS_CUDA_ON_HOST_H
#define KERNELS_CUDA_ON_HOST_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <algorithm>

#include <muster/base.h>
#include <muster/device.h>

#include "block.h"

using std::max;
using std::min;

#define __CUDACC__ 1
#define __CUDA_ARCH__ 900
#define __global__
#define __device__
#define __host__
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __shared__ static thread_local /* a block is a thread of the host */

#define threadIdx block_thread()
#define blockIdx block_number()
#define blockDim block_threads()
#define gridDim block_grid()
#define __syncthreads() block_barrier(__FILE__, __LINE__)
#define __syncwarp(...) ((void)block_exchange(~0u, 0, 0, __FILE__, __LINE__))
#define __threadfence() block_fence()

/* ---- vectors, aligned as CUDA's ---- */

#define CUDA_VECTORS(type, name, bytes) \
	struct alignas(2 * (bytes)) name##2 \
	{ \
		type x, y; \
	}; \
	struct alignas(4 * (bytes) > 16 ? 16 : 4 * (bytes)) name##4 \
	{ \
		type x, y, z, w; \
	}; \
	static inline name##2 make_##name##2(type x, type y) \
	{ \
		return {x, y}; \
	} \
	static inline name##4 make_##name##4(type x, type y, type z, type w) \
	{ \
		return {x, y, z, w}; \
	}
CUDA_VECTORS(unsigned char, uchar, 1)
CUDA_VECTORS(unsigned short, ushort, 2)
CUDA_VECTORS(unsigned, uint, 4)
CUDA_VECTORS(int, int, 4)
CUDA_VECTORS(float, float, 4)
CUDA_VECTORS(double, double, 8)

template <typename T> static inline T __ldg(const T *p)
{
	return *p;
}
#define __ldcs __ldg
#define __ldcg __ldg
template <typename T> static inline void __stcs(T *p, T v)
{
	*p = v;
}
/* A flag that several threads set. */
static inline void __stcg(unsigned *p, unsigned v)
{
	__atomic_store_n(p, v, __ATOMIC_RELAXED);
}

/* ---- numbers ---- */

static inline float __uint_as_float(unsigned bits)
{
	float v;

	memcpy(&v, &bits, sizeof v);
	return v;
}
static inline unsigned __float_as_uint(float v)
{
	unsigned bits;

	memcpy(&bits, &v, sizeof bits);
	return bits;
}

struct __half_raw {
	unsigned short x;
};
#define CUDA_HALF(name, dtype, to_float, to_half, as_bits, from_bits) \
	struct alignas(2) name { \
		unsigned short bits; \
		name() = default; \
		explicit name(__half_raw r) : bits(r.x) \
		{ \
		} \
	}; \
	static inline float to_float(name h) \
	{ \
		float v; \
		mu_dtype_to_float(dtype, &v, &h.bits, 1); \
		return v; \
	} \
	static inline name to_half(float v) \
	{ \
		name h; \
		mu_dtype_from_float(dtype, &h.bits, &v, 1); \
		return h; \
	} \
	static inline unsigned short as_bits(name h) \
	{ \
		return h.bits; \
	} \
	static inline name from_bits(unsigned short bits) \
	{ \
		return name(__half_raw{bits}); \
	}
CUDA_HALF(__half, MU_FLOAT16, __half2float, __float2half_rn, __half_as_ushort, __ushort_as_half)
CUDA_HALF(__nv_bfloat16, MU_BFLOAT16, __bfloat162float, __float2bfloat16_rn, __bfloat16_as_ushort,
	  __ushort_as_bfloat16)

#define CUDA_PAIR(name, half, low_high, to_floats, to_float, to_half) \
	struct alignas(4) name { \
		half x, y; \
	}; \
	static inline float2 to_floats(name p) \
	{ \
		return make_float2(to_float(p.x), to_float(p.y)); \
	} \
	static inline name low_high(float x, float y) \
	{ \
		return {to_half(x), to_half(y)}; \
	}
CUDA_PAIR(__half2, __half, __floats2half2_rn, __half22float2, __half2float, __float2half_rn)
CUDA_PAIR(__nv_bfloat162, __nv_bfloat16, __floats2bfloat162_rn, __bfloat1622float2,
	  __bfloat162float, __float2bfloat16_rn)

/* ---- atomics, in global and in shared memory ---- */

template <typename T> static inline T atomicAdd(T *p, T v)
{
	T before, after;

	__atomic_load(p, &before, __ATOMIC_RELAXED);
	do
		after = before + v;
	while (!__atomic_compare_exchange(p, &before, &after, false, __ATOMIC_RELAXED,
					  __ATOMIC_RELAXED));
	return before;
}
template <typename T, typename U> static inline T atomicOr(T *p, U v)
{
	return __atomic_fetch_or(p, (T)v, __ATOMIC_RELAXED);
}
template <typename T, typename U> static inline T atomicExch(T *p, U v)
{
	return __atomic_exchange_n(p, (T)v, __ATOMIC_RELAXED);
}
static inline unsigned atomicInc(unsigned *p, unsigned most)
{
	unsigned before = __atomic_load_n(p, __ATOMIC_RELAXED);

	while (!__atomic_compare_exchange_n(p, &before, before >= most ? 0 : before + 1, false,
					    __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return before;
}
template <typename T, typename U> static inline T atomicMax(T *p, U v)
{
	T before = __atomic_load_n(p, __ATOMIC_RELAXED);

	while (before < (T)v && !__atomic_compare_exchange_n(p, &before, (T)v, false,
							     __ATOMIC_RELAXED, __ATOMIC_RELAXED))
		;
	return before;
}

/* ---- lanes of a warp ---- */

template <typename T>
static inline T cuda_exchange(unsigned lanes, T v, unsigned from, const char *file, int line)
{
	unsigned long long bits = 0;

	static_assert(sizeof v <= sizeof bits, "a shuffle's value");
	memcpy(&bits, &v, sizeof v);
	bits = block_exchange(lanes, bits, from, file, line);
	memcpy(&v, &bits, sizeof v);
	return v;
}
#define CUDA_LANE (block_thread().x % BLOCK_WARP)
#define CUDA_SHUFFLE(lanes, v, from) cuda_exchange(lanes, v, (unsigned)(from), __FILE__, __LINE__)
#define __shfl_sync(lanes, v, from, ...) CUDA_SHUFFLE(lanes, v, from)
#define __shfl_down_sync(lanes, v, by, ...) CUDA_SHUFFLE(lanes, v, CUDA_LANE + (by))
#define __shfl_up_sync(lanes, v, by, ...) CUDA_SHUFFLE(lanes, v, CUDA_LANE - (by))
#define __shfl_xor_sync(lanes, v, by, ...) CUDA_SHUFFLE(lanes, v, CUDA_LANE ^ (by))

#endif
