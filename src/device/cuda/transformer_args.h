/* SPDX-License-Identifier: Apache-2.0 */
/* Continuation of args.h: the layers of transformers. */
#ifndef DEVICE_CUDA_TRANSFORMER_ARGS_H
#define DEVICE_CUDA_TRANSFORMER_ARGS_H

/* ---- smooth activations: values of enum mu_activation_kind ---- */

enum { CUDA_GELU = 3, CUDA_GELU_TANH, CUDA_SILU };

/* y = f(x); backward: y = dy f'(x) */
struct cuda_smooth {
	const void *x, *dy;
	void *y;
	int type, kind;
	size_t n;
};
#define cuda_smooth_backward cuda_smooth

#endif
