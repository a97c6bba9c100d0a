/* SPDX-License-Identifier: Apache-2.0 */
/* Positions: vectors added to the steps of a sequence. */
#ifndef DEVICE_CUDA_KERNELS_POSITIONS_H
#define DEVICE_CUDA_KERNELS_POSITIONS_H

#include "numbers.h"

/* Place of channel k of step t of sample s. */
CUDA_FUNCTION size_t place_of(int last, size_t s, size_t k, size_t t, size_t c, size_t steps)
{
	return last ? (s * steps + t) * c + k : (s * c + k) * steps + t;
}

struct cuda_place {
	size_t s, k, t;
};

/* What lies at place i. */
CUDA_FUNCTION struct cuda_place at_place(int last, size_t i, size_t c, size_t steps)
{
	struct cuda_place p;

	p.s = i / (c * steps);
	p.k = last ? i % c : i / steps % c;
	p.t = last ? i / c % steps : i % steps;
	return p;
}

CUDA_FUNCTION void positions_at(const struct cuda_positions *a, size_t i)
{
	const struct cuda_place p = at_place(a->last, i, a->c, a->steps);
	const float x = p.t < a->first
				? a->token[p.k]
				: number_at(a->x, a->type,
					    place_of(a->last, p.s, p.k, p.t - a->first, a->c,
						     a->steps - a->first));

	set_number(a->y, a->type, i, x + a->weight[p.t * a->c + p.k]);
}

CUDA_FUNCTION void positions_backward_at(const struct cuda_positions_backward *a, size_t i)
{
	const bool of_token = i >= a->most * a->c;
	const size_t k = i % a->c, t = of_token ? 0 : i / a->c;
	float *to = of_token ? a->token + k : a->weight + i, sum = 0;

	for (size_t s = 0; s < a->samples && t < a->steps; s++)
		sum += number_at(a->dy, a->type, place_of(a->last, s, k, t, a->c, a->steps));
	*to = a->adds ? *to + sum : sum;
}

#endif
