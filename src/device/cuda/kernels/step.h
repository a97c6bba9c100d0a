/* SPDX-License-Identifier: Apache-2.0 */
/* One step of a sequence. */
#ifndef DEVICE_CUDA_KERNELS_STEP_H
#define DEVICE_CUDA_KERNELS_STEP_H

#include "positions.h"

CUDA_FUNCTION void pick_step_at(const struct cuda_pick_step *a, size_t i)
{
	a->y[i] = number_at(a->x, a->type,
			    place_of(a->last, i / a->c, i % a->c, a->step, a->c, a->steps));
}

CUDA_FUNCTION void pick_step_backward_at(const struct cuda_pick_step_backward *a, size_t i)
{
	const struct cuda_place p = at_place(a->last, i, a->c, a->steps);

	set_number(a->dx, a->type, i, p.t == a->step ? a->dy[p.s * a->c + p.k] : 0);
}

#endif
