/* SPDX-License-Identifier: Apache-2.0 */
/* Smooth activations: x times a function that goes from 0 to 1. */
#ifndef DEVICE_CUDA_KERNELS_SMOOTH_H
#define DEVICE_CUDA_KERNELS_SMOOTH_H

#include "numbers.h"

#define ROOT_2_PI 0.797884561f /* sqrt(2 / pi) */

CUDA_FUNCTION float sigmoid_of(float x)
{
	return 1 / (1 + expf(-x));
}

/* (1 + tanh u) / 2 = sigmoid(2 u), u the argument of struct mu_activation's GELU_TANH */
CUDA_FUNCTION float gelu_gate(float x)
{
	return sigmoid_of(2 * ROOT_2_PI * (x + 0.044715f * x * x * x));
}

/* (1 + erf(x / sqrt 2)) / 2, without cancellation below 0 */
CUDA_FUNCTION float normal_share(float x)
{
	return erfcf(-x * 0.707106781f) / 2;
}

CUDA_FUNCTION float smooth_of(int kind, float x)
{
	return x * (kind == CUDA_GELU	     ? normal_share(x)
		    : kind == CUDA_GELU_TANH ? gelu_gate(x)
					     : sigmoid_of(x));
}

CUDA_FUNCTION float smooth_slope(int kind, float x)
{
	const float s = kind == CUDA_GELU_TANH ? gelu_gate(x) : sigmoid_of(x);

	switch (kind) {
	case CUDA_GELU: return normal_share(x) + x * ROOT_2_PI / 2 * expf(-x * x / 2);
	case CUDA_GELU_TANH:
		return s + 2 * x * s * (1 - s) * ROOT_2_PI * (1 + 3 * 0.044715f * x * x);
	default: return s * (1 + x * (1 - s));
	}
}

CUDA_FUNCTION void smooth_at(const struct cuda_smooth *a, size_t at)
{
	const int m = of_eight(at, a->n);
	float v[CUDA_EIGHT];

	eight_at(v, a->x, a->type, at, m);
	for (int k = 0; k < CUDA_EIGHT; k++)
		v[k] = smooth_of(a->kind, v[k]);
	set_eight(a->y, a->type, at, m, v);
}

CUDA_FUNCTION void smooth_backward_at(const struct cuda_smooth_backward *a, size_t at)
{
	const int m = of_eight(at, a->n);
	float x[CUDA_EIGHT], v[CUDA_EIGHT];

	eight_at(x, a->x, a->type, at, m);
	eight_at(v, a->dy, a->type, at, m);
	for (int k = 0; k < CUDA_EIGHT; k++)
		v[k] *= smooth_slope(a->kind, x[k]);
	set_eight(a->y, a->type, at, m, v);
}

#endif
