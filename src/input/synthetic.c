/* SPDX-License-Identifier: Apache-2.0 */
/* Random data for benchmarks: one batch, uniform in [-1, 1) or of integers, with random labels, is
 * made at the start and returned for every step. Record i is its sample i modulo b. */
#include <string.h>

#include "reader.h"

enum { DEFAULT_STEPS = 500 };

struct synthetic {
	float *data;   /* (b, c, h, w) */
	float *labels; /* (b, label_width) */
};

static enum mu_status open_synthetic(struct mu_input *in)
{
	enum mu_status st = MU_OK;
	const struct mu_input_config *c = &in->config;
	size_t sample = c->shape[0] * c->shape[1] * c->shape[2];
	struct mu_random key = {.seed = c->seed, .purpose = MU_RANDOM_SYNTHETIC};
	struct synthetic *s;

	if (sample == 0)
		MU_FAIL(MU_ERR_ARGUMENT,
			"synthetic input: shape (%zu, %zu, %zu); every part must be at least 1",
			c->shape[0], c->shape[1], c->shape[2]);
	MU_TRY(MU_ALLOC(s, 1, "synthetic reader"));
	in->impl = s;
	MU_TRY(MU_ALLOC(s->data, c->batch * sample, "synthetic samples"));
	MU_TRY(MU_ALLOC(s->labels, c->batch * c->label_width, "synthetic labels"));
	for (size_t i = 0; i < c->batch; i++) {
		key.sample = i;
		for (size_t j = 0; j < sample; j++)
			s->data[i * sample + j] =
				c->numbers ? (float)mu_random_below(&key, c->label_width + j,
								    c->classes)
					   : 2 * mu_random_uniform(&key, j) - 1;
		for (size_t j = 0; j < c->label_width; j++)
			s->labels[i * c->label_width + j] =
				(float)mu_random_below(&key, j, c->classes);
	}
	in->n = c->num_examples ? c->num_examples
				: DEFAULT_STEPS * (size_t)c->num_workers * c->batch;
	memcpy(in->shape, c->shape, sizeof in->shape);
	in->classes = c->classes;
out:
	return st;
}

static void close_synthetic(struct mu_input *in)
{
	struct synthetic *s = in->impl;

	if (!s)
		return;
	mu_free(s->data);
	mu_free(s->labels);
	mu_free(s);
	in->impl = NULL;
}

static enum mu_status read_synthetic(const struct mu_input *in, struct mu_input_thread *thread,
				     size_t record, float *data, float *labels)
{
	const struct synthetic *s = in->impl;
	size_t sample = in->shape[0] * in->shape[1] * in->shape[2];
	size_t i = record % in->config.batch;

	(void)thread;
	memcpy(data, s->data + i * sample, sample * sizeof *data);
	memcpy(labels, s->labels + i * in->config.label_width,
	       in->config.label_width * sizeof *labels);
	return MU_OK;
}

static void describe_synthetic(const struct mu_input *in, char *text, size_t nbytes)
{
	snprintf(text, nbytes, "one batch of %zu random samples, given again and again",
		 in->config.batch);
}

const struct mu_reader mu_reader_synthetic = {
	.name = "synthetic",
	.help = "one batch of random data, given again and again",
	.open = open_synthetic,
	.close = close_synthetic,
	.describe = describe_synthetic,
	.read = read_synthetic,
};
