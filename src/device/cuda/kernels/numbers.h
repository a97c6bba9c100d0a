/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers of all tensor types, for kernels, which compute in float: single numbers, or eight
 * consecutive ones starting at a multiple of eight. Arrays are aligned to 64 bytes, so eight 16-bit
 * numbers are one access of 16 bytes. operations.h says what must be defined before.
 */
#ifndef DEVICE_CUDA_KERNELS_NUMBERS_H
#define DEVICE_CUDA_KERNELS_NUMBERS_H

#include <math.h>

#include "args.h"

enum { CUDA_EIGHT = 8 };

/* Eight 16-bit numbers as they lie in memory. */
struct cuda_halves {
	uint32_t pairs[4];
};

#ifdef __CUDACC__
#include <cuda_bf16.h>
#include <cuda_fp16.h>

CUDA_FUNCTION struct cuda_halves load_halves(const uint16_t *from)
{
	const uint4 bits = *(const uint4 *)from;

	return {{bits.x, bits.y, bits.z, bits.w}};
}

CUDA_FUNCTION void four_floats(float *v, const float *from)
{
	const float4 four = *(const float4 *)from;

	v[0] = four.x, v[1] = four.y, v[2] = four.z, v[3] = four.w;
}

/* Two halves from a word, the first in the lower bits. */
CUDA_FUNCTION void two_of(float *v, int type, uint32_t bits)
{
	const __half_raw low = {(unsigned short)bits}, high = {(unsigned short)(bits >> 16)};

	if (type == CUDA_FLOAT16) {
		v[0] = __half2float(__half(low));
		v[1] = __half2float(__half(high));
	} else {
		v[0] = __uint_as_float(bits << 16);
		v[1] = __uint_as_float(bits & 0xffff0000u);
	}
}

CUDA_FUNCTION uint16_t half_of(int type, float v)
{
	return type == CUDA_FLOAT16 ? __half_as_ushort(__float2half_rn(v))
				    : __bfloat16_as_ushort(__float2bfloat16_rn(v));
}

CUDA_FUNCTION void eight_halves(float *v, int type, const uint16_t *from)
{
	const uint4 bits = *(const uint4 *)from;

	two_of(v, type, bits.x);
	two_of(v + 2, type, bits.y);
	two_of(v + 4, type, bits.z);
	two_of(v + 6, type, bits.w);
}

CUDA_FUNCTION void store_halves(uint16_t *to, const struct cuda_halves *from)
{
	*(uint4 *)to = make_uint4(from->pairs[0], from->pairs[1], from->pairs[2], from->pairs[3]);
}

CUDA_FUNCTION struct cuda_halves halves_of(int type, const float *v)
{
	struct cuda_halves halves;

	for (int k = 0; k < 4; k++)
		halves.pairs[k] = half_of(type, v[2 * k]) |
				  (uint32_t)half_of(type, v[2 * k + 1]) << 16;
	return halves;
}

/* For several threads at once. */
CUDA_FUNCTION void set_flag(uint32_t *flag)
{
	__stcg(flag, 1u);
}

/* What other blocks wrote before they ended (last_to_end): not from this processor's cache. */
CUDA_FUNCTION void four_of_others(float *v, const float *from)
{
	const float4 four = __ldcg((const float4 *)from);

	v[0] = four.x, v[1] = four.y, v[2] = four.z, v[3] = four.w;
}

/* For one thread of each of `blocks` blocks, behind a barrier: is its block the last to come here?
 * Then it sees what all threads of all of them wrote before, and so do, behind another barrier, the
 * others of the block. *ended is 0 at first, and again behind the last block. */
CUDA_FUNCTION bool last_to_end(uint32_t *ended, uint32_t blocks)
{
	bool last;

	__threadfence();
	last = atomicInc(ended, blocks - 1) == blocks - 1;
	__threadfence();
	return last;
}

CUDA_FUNCTION void eight_floats(float *v, const float *from)
{
	const float4 low = *(const float4 *)from, high = *(const float4 *)(from + 4);

	v[0] = low.x, v[1] = low.y, v[2] = low.z, v[3] = low.w;
	v[4] = high.x, v[5] = high.y, v[6] = high.z, v[7] = high.w;
}

CUDA_FUNCTION void set_eight_floats(float *to, const float *v)
{
	*(float4 *)to = make_float4(v[0], v[1], v[2], v[3]);
	*(float4 *)(to + 4) = make_float4(v[4], v[5], v[6], v[7]);
}

CUDA_FUNCTION uint64_t load_bytes(const uint8_t *from)
{
	const uint2 two = *(const uint2 *)from;

	return (uint64_t)two.y << 32 | two.x;
}

CUDA_FUNCTION void store_bytes(uint8_t *to, uint64_t bytes)
{
	*(uint2 *)to = make_uint2((uint32_t)bytes, (uint32_t)(bytes >> 32));
}
#else
#include <string.h>

#include <muster/base.h>

/* For the host: see mpi_tests/pretend/gpu.c. */
CUDA_FUNCTION uint64_t load_bytes(const uint8_t *from)
{
	uint64_t bytes = 0;

	for (int k = 0; k < CUDA_EIGHT; k++)
		bytes |= (uint64_t)from[k] << 8 * k;
	return bytes;
}

CUDA_FUNCTION void store_bytes(uint8_t *to, uint64_t bytes)
{
	for (int k = 0; k < CUDA_EIGHT; k++)
		to[k] = (uint8_t)(bytes >> 8 * k);
}

CUDA_FUNCTION struct cuda_halves load_halves(const uint16_t *from)
{
	struct cuda_halves halves;

	memcpy(&halves, from, sizeof halves);
	return halves;
}

CUDA_FUNCTION void four_floats(float *v, const float *from)
{
	memcpy(v, from, 4 * sizeof *v);
}

CUDA_FUNCTION void two_of(float *v, int type, uint32_t bits)
{
	const uint16_t halves[2] = {(uint16_t)bits, (uint16_t)(bits >> 16)};

	mu_dtype_to_float((enum mu_dtype)type, v, halves, 2);
}

CUDA_FUNCTION uint16_t half_of(int type, float v)
{
	uint16_t half;

	mu_dtype_from_float((enum mu_dtype)type, &half, &v, 1);
	return half;
}

CUDA_FUNCTION void eight_halves(float *v, int type, const uint16_t *from)
{
	mu_dtype_to_float((enum mu_dtype)type, v, from, CUDA_EIGHT);
}

CUDA_FUNCTION void store_halves(uint16_t *to, const struct cuda_halves *from)
{
	memcpy(to, from, sizeof *from);
}

CUDA_FUNCTION struct cuda_halves halves_of(int type, const float *v)
{
	struct cuda_halves halves;

	mu_dtype_from_float((enum mu_dtype)type, &halves, v, CUDA_EIGHT);
	return halves;
}

CUDA_FUNCTION void set_flag(uint32_t *flag)
{
	*flag = 1;
}

CUDA_FUNCTION void four_of_others(float *v, const float *from)
{
	four_floats(v, from);
}

CUDA_FUNCTION bool last_to_end(uint32_t *ended, uint32_t blocks)
{
	const bool last = *ended == blocks - 1;

	*ended = last ? 0 : *ended + 1;
	return last;
}

CUDA_FUNCTION void eight_floats(float *v, const float *from)
{
	memcpy(v, from, CUDA_EIGHT * sizeof *v);
}

CUDA_FUNCTION void set_eight_floats(float *to, const float *v)
{
	memcpy(to, v, CUDA_EIGHT * sizeof *v);
}
#endif

CUDA_FUNCTION void set_eight_bytes(uint8_t *to, const int *v)
{
	uint64_t bytes = 0;

	for (int k = 0; k < CUDA_EIGHT; k++)
		bytes |= (uint64_t)v[k] << 8 * k;
	store_bytes(to, bytes);
}

CUDA_FUNCTION void floats_of(float *v, int type, const struct cuda_halves *halves)
{
	for (int k = 0; k < 4; k++)
		two_of(v + 2 * k, type, halves->pairs[k]);
}

CUDA_FUNCTION void set_eight_halves(uint16_t *to, int type, const float *v)
{
	const struct cuda_halves halves = halves_of(type, v);

	store_halves(to, &halves);
}

/* A bit for each number above 0. */
CUDA_FUNCTION uint32_t positive_bits(const struct cuda_halves *halves)
{
	uint32_t bits = 0;

	for (int k = 0; k < 4; k++) {
		bits |= (uint32_t)((halves->pairs[k] & 0xffffu) - 1 < 0x7fffu) << 2 * k;
		bits |= (uint32_t)((halves->pairs[k] >> 16) - 1 < 0x7fffu) << (2 * k + 1);
	}
	return bits;
}

CUDA_FUNCTION float number_at(const void *p, int type, size_t i)
{
	float two[2];

	if (type == CUDA_FLOAT32)
		return ((const float *)p)[i];
	two_of(two, type, ((const uint16_t *)p)[i]);
	return two[0];
}

CUDA_FUNCTION void set_number(void *p, int type, size_t i, float v)
{
	if (type == CUDA_FLOAT32)
		((float *)p)[i] = v;
	else
		((uint16_t *)p)[i] = half_of(type, v);
}

/* m numbers from `at` on: eight, or fewer at the end of the array. */
CUDA_FUNCTION void eight_at(float *v, const void *p, int type, size_t at, int m)
{
	if (m < CUDA_EIGHT) {
		for (int k = 0; k < CUDA_EIGHT; k++)
			v[k] = k < m ? number_at(p, type, at + (size_t)k) : 0;
	} else if (type == CUDA_FLOAT32) {
		eight_floats(v, (const float *)p + at);
	} else {
		eight_halves(v, type, (const uint16_t *)p + at);
	}
}

CUDA_FUNCTION void set_eight(void *p, int type, size_t at, int m, const float *v)
{
	if (m < CUDA_EIGHT) {
		for (int k = 0; k < CUDA_EIGHT; k++)
			if (k < m)
				set_number(p, type, at + (size_t)k, v[k]);
	} else if (type == CUDA_FLOAT32) {
		set_eight_floats((float *)p + at, v);
	} else {
		set_eight_halves((uint16_t *)p + at, type, v);
	}
}

/* Size of the group that starts at `at`, of n numbers. */
CUDA_FUNCTION int of_eight(size_t at, size_t n)
{
	return n - at < CUDA_EIGHT ? (int)(n - at) : CUDA_EIGHT;
}

/* Groups of eight 16-bit numbers, counted in 32 bits, which saves registers: no tensor has 2^31. */
CUDA_FUNCTION struct cuda_halves group_at(const void *p, uint32_t group)
{
	return load_halves((const uint16_t *)p + (size_t)group * CUDA_EIGHT);
}

CUDA_FUNCTION void store_group(void *p, uint32_t group, const struct cuda_halves *halves)
{
	store_halves((uint16_t *)p + (size_t)group * CUDA_EIGHT, halves);
}

CUDA_FUNCTION void set_group(void *p, uint32_t group, int type, const float *v)
{
	const struct cuda_halves halves = halves_of(type, v);

	store_group(p, group, &halves);
}

#endif
