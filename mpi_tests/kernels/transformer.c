/* SPDX-License-Identifier: Apache-2.0 */
/* Cases of the layers of transformers: see rig.h. */
#include "rig.h"

/* ---- smooth activations ---- */

static const double root_2_pi = 0.79788456080286535588; /* sqrt(2 / pi) */

static double smooth(int kind, double x)
{
	return kind == CUDA_GELU ? x / 2 * (1 + erf(x / sqrt(2)))
	       : kind == CUDA_GELU_TANH
		       ? x / 2 * (1 + tanh(root_2_pi * (x + 0.044715 * x * x * x)))
		       : x / (1 + exp(-x));
}

void test_smooth(const struct variant *v)
{
	for (int kind = CUDA_GELU; kind <= CUDA_SILU; kind++) {
		const void *x = rig_numbers(v->type, v->n, 100);
		void *y = v->odd ? rig_copy(x, v->type, v->n) : rig_numbers(v->type, v->n, 101);
		const struct cuda_smooth a = {
			.x = v->odd ? y : x, .y = y, .type = v->type, .kind = kind, .n = v->n};

		RUN_EIGHTS(smooth, v, &a);
		for (size_t i = 0; i < v->n; i++)
			rig_expect(y, v->type, i, smooth(kind, rig_at(x, v->type, i)));
	}
}

/* Slopes by differences. */
void test_smooth_backward(const struct variant *v)
{
	const double step = 1e-5;

	for (int kind = CUDA_GELU; kind <= CUDA_SILU; kind++) {
		const void *x = rig_numbers(v->type, v->n, 102);
		const void *dy = rig_numbers(v->type, v->n, 103);
		void *dx = v->odd ? rig_copy(dy, v->type, v->n) : rig_numbers(v->type, v->n, 104);
		const struct cuda_smooth_backward a = {.x = x,
						       .dy = v->odd ? dx : dy,
						       .y = dx,
						       .type = v->type,
						       .kind = kind,
						       .n = v->n};

		RUN_EIGHTS(smooth_backward, v, &a);
		for (size_t i = 0; i < v->n; i++) {
			const double at = rig_at(x, v->type, i);
			const double slope =
				(smooth(kind, at + step) - smooth(kind, at - step)) / (2 * step);

			rig_expect(dx, v->type, i, rig_at(dy, v->type, i) * slope);
		}
	}
}
