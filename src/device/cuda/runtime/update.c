/* SPDX-License-Identifier: Apache-2.0 */
/* Operations of stores on the flat arrays of a GPU, on streams of their own. */
#include "device/cuda/cuda.h"

#include <string.h>

#include <muster/base.h>

enum mu_status mu_cuda_update(struct mu_device *device, void *stream,
			      const struct mu_device_update *u)
{
	enum mu_status st = MU_OK;
	struct cuda_device *d = device->impl;
	struct cuda_update a = {
		.weights = u->weights,
		.gradients = u->gradients,
		.classes = u->classes,
		.n = u->n,
	};

	memcpy(a.states, u->states, sizeof a.states);
	memcpy(a.of, u->of, u->n_classes * sizeof *a.of);
	MU_TRY(mu_cuda_enter(d));
	MU_TRY(mu_cuda_each_on(d, stream, CUDA_update, u->n, &a));
out:
	return st;
}

/* As many arrays at a time as a kernel supports; the first one is the sum so far. */
enum mu_status mu_cuda_add(struct mu_device *device, void *stream, const struct mu_device_sum *s)
{
	enum mu_status st = MU_OK;
	struct cuda_device *d = device->impl;
	struct cuda_add a = {.x = {s->in[0]}, .y = s->out, .kind = CUDA_LINEAR, .n = s->n};

	MU_TRY(mu_cuda_enter(d));
	for (size_t i = 1; i < s->n_in; a.x[0] = s->out) {
		for (a.n_x = 1; a.n_x < CUDA_MAX_ADDED && i < s->n_in; a.n_x++)
			a.x[a.n_x] = s->in[i++];
		MU_TRY(mu_cuda_each_on(d, stream, CUDA_add, mu_cuda_eights_of(s->n), &a));
	}
out:
	return st;
}
