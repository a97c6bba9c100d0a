/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 @gpu */
/*
 * A GPU is brought those weights that may have changed, and no others: bytes that forward uploads
 * are counted, and a weight that has changed is seen. What is at work is the device's own table
 * with another function for uploads.
 */
#include <math.h>
#include <string.h>

#include "../lib/check.h"
#include "net/plan.h"

enum { BATCH = 4, SIDE = 6, CLASSES = 10, MAX_KEYS = 32 };

static const struct mu_device_memory *real;
static size_t uploaded;

static enum mu_status count_upload(struct mu_device *device, void *to, const void *from,
				   size_t nbytes)
{
	uploaded += nbytes;
	return real->upload(device, to, from, nbytes);
}

struct model {
	struct mu_device device;
	struct mu_device_ops ops;
	struct mu_device_memory memory;
	struct mu_net *net;
	struct mu_plan *train, *infer;
	float *weights, *gradients;
	float labels[BATCH];
	uint64_t versions[MAX_KEYS];
	size_t n_keys;
};

/* An mlp: all of its keys are read in training as in inference. */
static bool start(struct model *m)
{
	const struct mu_net_config config = {
		.network = "mlp", .shape = MU_SAMPLE(1, SIDE, SIDE), .classes = CLASSES};

	*m = (struct model){.n_keys = 0};
	if (mu_device_open(&m->device, "gpu:0", 1) != MU_OK)
		return false;
	real = m->device.ops->memory;
	m->memory = *real;
	m->memory.upload = count_upload;
	m->ops = *m->device.ops;
	m->ops.memory = &m->memory;
	m->device.ops = &m->ops;
	if (mu_net_new(&m->net, &config) != MU_OK ||
	    mu_plan_new(&m->train, m->net, &m->device, BATCH, MU_PHASE_TRAIN, NULL) != MU_OK ||
	    mu_plan_new(&m->infer, m->net, &m->device, BATCH, MU_PHASE_INFER, m->train) != MU_OK ||
	    MU_ALLOC(m->weights, mu_plan_n(m->train), "weights") != MU_OK ||
	    MU_ALLOC(m->gradients, mu_plan_n(m->train), "gradients") != MU_OK ||
	    mu_plan_init_weights(m->train, "default", 7, m->weights) != MU_OK ||
	    mu_plan_bind(m->train, m->weights, m->gradients) != MU_OK ||
	    mu_plan_bind(m->infer, m->weights, NULL) != MU_OK)
		return false;
	mu_plan_slices(m->train, &m->n_keys);
	return CHECK(m->n_keys <= MAX_KEYS);
}

static void stop(struct model *m)
{
	mu_plan_free(m->infer);
	mu_plan_free(m->train);
	mu_net_free(m->net);
	mu_device_close(&m->device);
	mu_free(m->weights);
	mu_free(m->gradients);
}

/* Bytes that forward of a batch uploads: samples come another way. */
static size_t forward(struct model *m, struct mu_plan *plan)
{
	const size_t n = (size_t)BATCH * SIDE * SIDE;

	for (size_t i = 0; i < n; i++)
		mu_plan_input(plan)[i] = (float)(i % 7) / 7;
	mu_plan_batch(plan)->labels = m->labels;
	mu_plan_batch(plan)->count = BATCH;
	uploaded = 0;
	for (size_t l = 0; l < mu_plan_layers(plan); l++)
		CHECK(mu_plan_forward(plan, l) == MU_OK);
	return uploaded;
}

/* Backward too, which overwrites gradients and no weights. */
static size_t step(struct model *m)
{
	size_t nbytes = forward(m, m->train);

	for (size_t l = mu_plan_layers(m->train); l-- > 0;)
		CHECK(mu_plan_backward(m->train, l) == MU_OK);
	return nbytes;
}

static void test_counts(struct model *m)
{
	const struct mu_slice *slices = mu_plan_slices(m->train, &m->n_keys);
	size_t all = 0, last = m->n_keys - 1;

	for (size_t k = 0; k < m->n_keys; k++)
		all += slices[k].n_padded * sizeof(float);
	CHECK(step(m) == all && step(m) == all); /* nobody says what changes */
	mu_plan_set_versions(m->train, m->versions);
	mu_plan_set_versions(m->infer, m->versions);
	CHECK(step(m) == all);
	CHECK(step(m) == 0 && step(m) == 0);
	CHECK(forward(m, m->infer) == all);
	CHECK(forward(m, m->infer) == 0 && step(m) == 0);
	m->versions[last]++;
	m->versions[0]++;
	CHECK(step(m) == (slices[0].n_padded + slices[last].n_padded) * sizeof(float));
	CHECK(step(m) == 0);
	CHECK(mu_plan_bind(m->train, m->weights, m->gradients) == MU_OK);
	CHECK(step(m) == all); /* it may be another array */
}

/* The first class's bias, which is of the last key: by much, and the class is sure. */
static void test_change(struct model *m)
{
	const struct mu_slice *slices = mu_plan_slices(m->train, &m->n_keys);
	float *bias = m->weights + slices[m->n_keys - 1].at;
	const float before = bias[0];

	CHECK(slices[m->n_keys - 1].n == CLASSES);
	forward(m, m->infer);
	CHECK(mu_plan_probabilities(m->infer)[0] < 0.9f);
	bias[0] = 100;
	forward(m, m->infer);
	CHECK(mu_plan_probabilities(m->infer)[0] < 0.9f); /* nobody said so */
	m->versions[m->n_keys - 1]++;
	forward(m, m->infer);
	CHECK(mu_plan_probabilities(m->infer)[0] > 0.99f);
	bias[0] = before;
	m->versions[m->n_keys - 1]++;
	step(m);
	CHECK(mu_plan_probabilities(m->train)[0] < 0.9f);
}

int main(void)
{
	struct model m;
	char why[256] = "this build has no device gpu";

	if (mu_device_find(&m.device, "gpu") != MU_OK ||
	    !mu_device_is_here(m.device.ops, why, sizeof why)) {
		mu_trace_clear();
		printf("skipped: %s\n", why);
		return CHECK_SKIPPED;
	}
	if (CHECK(start(&m))) {
		test_counts(&m);
		test_change(&m);
	} else {
		mu_trace_print(stderr, "test_versions");
	}
	stop(&m);
	return check_failures() ? 1 : 0;
}
