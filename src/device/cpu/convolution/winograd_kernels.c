/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels of Winograd's algorithm: one source, a table for each instruction set. */
#include "winograd.h"

#include <string.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include <muster/base.h>

#include "device/cpu/onednn/onednn.h"

/* Points 0, +-a, +-b: with these, numbers that float32 holds exactly, the error is half of what it
 * is with 1 and 2. */
#define A 0.625f
#define B 1.5f
#define A2 (A * A)
#define B2 (B * B)
#define NA (1 / (2 * A2 * (A2 - B2)))
#define NB (1 / (2 * B2 * (B2 - A2)))

#if defined(__clang__)
#define UNROLL _Pragma("unroll")
#else
#define UNROLL _Pragma("GCC unroll 16")
#endif

#if defined(__x86_64__)

#define LANES 8
#define ROWS 6
#define DEPTH 256
#define TARGET __attribute__((target("avx2,fma")))
#define NAME(name) name##_avx2
#define FUSED(a, b, c) _mm256_fmadd_ps(_mm256_set1_ps(a), b, c)
#include "winograd_lanes.h"
#undef LANES
#undef ROWS
#undef DEPTH
#undef TARGET
#undef NAME
#undef FUSED

#define LANES 16
#define ROWS 8
#define DEPTH 128
#define TARGET __attribute__((target("avx512f")))
#define NAME(name) name##_avx512
#define FUSED(a, b, c) _mm512_fmadd_ps(_mm512_set1_ps(a), b, c)
#include "winograd_lanes.h"

const struct winograd_kernels *mu_cpu_winograd_kernels(size_t lanes)
{
	if (lanes == kernels_avx512.lanes && mu_dnnl_has_avx512())
		return &kernels_avx512;
	if (lanes == kernels_avx2.lanes && mu_dnnl_has_avx2())
		return &kernels_avx2;
	return NULL;
}

#else

const struct winograd_kernels *mu_cpu_winograd_kernels(size_t lanes)
{
	(void)lanes;
	return NULL;
}

#endif
