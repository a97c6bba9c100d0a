/* SPDX-License-Identifier: Apache-2.0 */
/* Activations whose gradient needs the input. */
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

/* p: the parameter */
CUDA_FUNCTION float smooth_of(int kind, float p, float x)
{
	switch (kind) {
	case CUDA_GELU: return x * normal_share(x);
	case CUDA_GELU_TANH: return x * gelu_gate(x);
	case CUDA_LEAKY_RELU: return x > 0 ? x : p * x;
	case CUDA_ELU: return x > 0 ? x : p * expm1f(x);
	case CUDA_SOFTPLUS: return fmaxf(x, 0) + log1pf(expf(-fabsf(p * x))) / p;
	case CUDA_SCALED_TANH: return p * tanhf(x);
	default: return x * sigmoid_of(x);
	}
}

CUDA_FUNCTION float smooth_slope(int kind, float p, float x)
{
	const float s = kind == CUDA_GELU_TANH ? gelu_gate(x) : sigmoid_of(x);
	float t;

	switch (kind) {
	case CUDA_GELU: return normal_share(x) + x * ROOT_2_PI / 2 * expf(-x * x / 2);
	case CUDA_GELU_TANH:
		return s + 2 * x * s * (1 - s) * ROOT_2_PI * (1 + 3 * 0.044715f * x * x);
	case CUDA_LEAKY_RELU: return x > 0 ? 1 : p;
	case CUDA_ELU: return x > 0 ? 1 : p * expf(x);
	case CUDA_SOFTPLUS: return sigmoid_of(p * x);
	case CUDA_SCALED_TANH: t = tanhf(x); return p * (1 - t * t);
	default: return s * (1 + x * (1 - s));
	}
}

CUDA_FUNCTION void smooth_at(const struct cuda_smooth *a, size_t at)
{
	const int m = of_eight(at, a->n);
	float v[CUDA_EIGHT];

	eight_at(v, a->x, a->type, at, m);
	for (int k = 0; k < CUDA_EIGHT; k++)
		v[k] = smooth_of(a->kind, a->parameter, v[k]);
	set_eight(a->y, a->type, at, m, v);
}

CUDA_FUNCTION void smooth_backward_at(const struct cuda_smooth_backward *a, size_t at)
{
	const int m = of_eight(at, a->n);
	float x[CUDA_EIGHT], v[CUDA_EIGHT];

	eight_at(x, a->x, a->type, at, m);
	eight_at(v, a->dy, a->type, at, m);
	for (int k = 0; k < CUDA_EIGHT; k++)
		v[k] *= smooth_slope(a->kind, a->parameter, x[k]);
	set_eight(a->y, a->type, at, m, v);
}

#endif
