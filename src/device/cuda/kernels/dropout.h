/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout, and its random numbers: those of mu_random_uniform (src/base/random.c). */
#ifndef DEVICE_CUDA_KERNELS_DROPOUT_H
#define DEVICE_CUDA_KERNELS_DROPOUT_H

#include "elements.h"

enum { PHILOX_ROUNDS = 10 };

/* Word `which` of the block of Philox4x32-10. */
CUDA_FUNCTION uint32_t philox(uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, uint64_t seed,
			      int which)
{
	uint32_t k0 = (uint32_t)seed, k1 = (uint32_t)(seed >> 32);

	for (int i = 0; i < PHILOX_ROUNDS; i++) {
		uint64_t p0 = (uint64_t)0xD2511F53u * c0;
		uint64_t p1 = (uint64_t)0xCD9E8D57u * c2;

		c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
		c1 = (uint32_t)p1;
		c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
		c3 = (uint32_t)p0;
		k0 += 0x9E3779B9u;
		k1 += 0xBB67AE85u;
	}
	return which == 0 ? c0 : which == 1 ? c1 : which == 2 ? c2 : c3;
}

/* Uniform in [0, 1), of an element of a sample in an epoch. first: of the operation. See struct
 * mu_op's index. */
CUDA_FUNCTION float uniform_of(uint64_t seed, uint32_t purpose, uint32_t epoch, uint32_t sample,
			       uint64_t first, uint64_t element)
{
	const uint64_t draw = first + (element & 0xFFFFFF);
	const uint32_t high = purpose << 24 | (uint32_t)(element >> 24) << 8;
	const uint32_t bits =
		philox((uint32_t)(draw / 4), epoch, sample, high, seed, (int)(draw % 4));

	return (float)(bits >> 8) * (1.0f / 16777216);
}

CUDA_FUNCTION void dropout_at(const struct cuda_dropout *a, size_t i)
{
	const size_t place = a->last ? plain_place(i, a->channels, a->area) : i;
	const size_t features = a->channels * a->area, s = place / features;
	const uint32_t sample = a->ids ? a->ids[s] : (uint32_t)s;
	const uint32_t epoch = a->epochs ? a->epochs[0] : a->epoch;
	const float uniform = uniform_of(a->seed, a->purpose, epoch, sample, a->first,
					 a->from + place % features);

	a->mask[i] = uniform < a->p ? 0 : 1 / (1 - a->p);
	set_number(a->y, a->type, i, number_at(a->x, a->type, i) * a->mask[i]);
}

#endif
