/* SPDX-License-Identifier: Apache-2.0 */
/* One step of training of a small network on a device, for tests that compare its gradients. */
#ifndef ONE_STEP_H
#define ONE_STEP_H

#include <string.h>

#include <muster/base.h>

#include "net/plan.h"
#include "../lib/check.h"

struct one_step {
	struct mu_device device;
	struct mu_net *net;
	struct mu_plan *plan;
	const struct mu_slice *slices;
	size_t n_slices;
	float *weights, *gradients;
};

/* The device, before what the caller sets of it. */
static bool one_step_open(struct one_step *s, const char *device, enum mu_dtype dtype)
{
	*s = (struct one_step){.net = NULL};
	return mu_device_open(&s->device, device, 1) == MU_OK &&
	       mu_device_set_dtype(&s->device, dtype) == MU_OK;
}

/* The plan, with weights as a net begins. */
static bool one_step_plan(struct one_step *s, const struct mu_network *network,
			  const struct mu_net_config *config, size_t batch)
{
	if (mu_net_new_from(&s->net, network, config) != MU_OK ||
	    mu_plan_new(&s->plan, s->net, &s->device, batch, MU_PHASE_TRAIN, NULL) != MU_OK ||
	    MU_ALLOC(s->weights, mu_plan_n(s->plan), "weights") != MU_OK ||
	    MU_ALLOC(s->gradients, mu_plan_n(s->plan), "gradients") != MU_OK ||
	    mu_plan_init_weights(s->plan, "default", 3, s->weights) != MU_OK)
		return false;
	s->slices = mu_plan_slices(s->plan, &s->n_slices);
	return true;
}

/* n numbers of samples. */
static bool one_step_run(struct one_step *s, const float *samples, size_t n, const float *labels)
{
	struct mu_batch *batch = mu_plan_batch(s->plan);

	if (mu_plan_bind(s->plan, s->weights, s->gradients) != MU_OK)
		return false;
	batch->count = mu_plan_batch_size(s->plan);
	batch->labels = labels;
	memcpy(mu_plan_input(s->plan), samples, n * sizeof *samples);
	for (size_t l = 0; l < mu_plan_layers(s->plan); l++)
		if (mu_plan_forward(s->plan, l) != MU_OK)
			return false;
	for (size_t l = mu_plan_layers(s->plan); l-- > 0;)
		if (mu_plan_backward(s->plan, l) != MU_OK)
			return false;
	return true;
}

static void one_step_release(struct one_step *s)
{
	mu_plan_free(s->plan);
	mu_free(s->weights);
	mu_free(s->gradients);
	mu_net_free(s->net);
	mu_device_close(&s->device);
}

/* Of the gradients of a slice, beside the size of b's. */
static double one_step_distance(const struct one_step *a, const struct one_step *b,
				const struct mu_slice *slice)
{
	double difference = 0, size = 0;

	for (size_t i = slice->at; i < slice->at + slice->n; i++) {
		const double d = (double)a->gradients[i] - (double)b->gradients[i];

		difference += d * d;
		size += (double)b->gradients[i] * (double)b->gradients[i];
	}
	return sqrt(difference / fmax(size, 1e-4));
}

/* Is there a GPU? If not, says why. */
static bool one_step_has_gpu(void)
{
	const struct mu_device_ops *const *device = mu_device_table;
	char why[256];

	while (*device && strcmp((*device)->name, "gpu") != 0)
		device++;
	if (*device && mu_device_is_here(*device, why, sizeof why))
		return true;
	printf("skipped: %s\n", *device ? why : "this build has no device gpu");
	return false;
}

#endif
