/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random data for benchmarks: one batch, uniform in [-1, 1] or of integers, with random labels, is
 * made at the start and returned for every step. Record i is its sample i modulo b. Images are
 * (byte - 127.5) / 127.5: a GPU receives them as bytes, as it does those of files.
 */
#include <string.h>

#include "reader.h"

enum { DEFAULT_STEPS = 500 };

struct synthetic {
	float *data;    /* (b, c, h, w); NULL: bytes has them */
	uint8_t *bytes; /* for config.bytes */
	float *labels;  /* (b, label_width) */
};

static struct mu_random key_of(const struct mu_input *in, size_t i)
{
	return (struct mu_random){
		.seed = in->config.seed, .purpose = MU_RANDOM_SYNTHETIC, .sample = i};
}

static enum mu_status draw_images(struct mu_input *in)
{
	enum mu_status st = MU_OK;
	struct synthetic *s = in->impl;
	struct mu_field *data = &in->fields[0];
	const size_t batch = in->config.batch, sample = mu_shape_sample(&data->shape);

	for (size_t c = 0; c < mu_shape_channels(&data->shape); c++)
		data->mean[c] = data->std[c] = 127.5f;
	MU_TRY(MU_ALLOC(s->bytes, batch * sample, "synthetic samples"));
	for (size_t i = 0; i < batch; i++) {
		const struct mu_random key = key_of(in, i);

		for (size_t j = 0; j < sample; j++)
			s->bytes[i * sample + j] = (uint8_t)(mu_random_bits(&key, j) >> 24);
	}
	if (in->config.bytes)
		goto out;
	MU_TRY(MU_ALLOC(s->data, batch * sample, "synthetic samples"));
	mu_input_from_bytes(in, s->data, s->bytes, batch);
	mu_free(s->bytes);
	s->bytes = NULL;
out:
	return st;
}

static enum mu_status draw_others(struct mu_input *in)
{
	enum mu_status st = MU_OK;
	const struct mu_input_config *c = &in->config;
	struct synthetic *s = in->impl;
	const size_t sample = mu_shape_sample(mu_input_shape(in));

	MU_TRY(MU_ALLOC(s->data, c->batch * sample, "synthetic samples"));
	for (size_t i = 0; i < c->batch; i++) {
		const struct mu_random key = key_of(in, i);

		for (size_t j = 0; j < sample; j++)
			s->data[i * sample + j] =
				in->fields[0].number == MU_NUMBER_INT32
					? (float)mu_random_below(&key, c->label_width + j,
								 c->classes)
					: 2 * mu_random_uniform(&key, j) - 1;
	}
out:
	return st;
}

static enum mu_status open_synthetic(struct mu_input *in)
{
	enum mu_status st = MU_OK;
	const struct mu_input_config *c = &in->config;
	const struct mu_synthetic_settings *settings = in->settings;
	/* Grey and colour images have a mean and a std for each channel. */
	const bool images =
		settings->number == MU_NUMBER_FLOAT32 && mu_shape_channels(&c->shape) <= 3;
	const enum mu_number number = images ? MU_NUMBER_BYTE : settings->number;
	struct synthetic *s;
	char text[MU_SAMPLE_TEXT];

	if (mu_shape_sample(&c->shape) == 0)
		MU_FAIL(MU_ERR_ARGUMENT,
			"synthetic input: shape (%s); every part must be at least 1",
			mu_sample_text(&c->shape, ", ", text, sizeof text));
	MU_TRY(MU_ALLOC(s, 1, "synthetic reader"));
	in->impl = s;
	mu_input_declare_data(in, number, &c->shape);
	mu_input_declare_labels(in, c->values ? MU_NUMBER_FLOAT32 : MU_NUMBER_INT32,
				c->label_width);
	MU_TRY(number == MU_NUMBER_BYTE ? draw_images(in) : draw_others(in));
	MU_TRY(MU_ALLOC(s->labels, c->batch * c->label_width, "synthetic labels"));
	for (size_t i = 0; i < c->batch; i++) {
		const struct mu_random key = key_of(in, i);

		for (size_t j = 0; j < c->label_width; j++)
			s->labels[i * c->label_width + j] =
				c->values ? mu_random_uniform(&key, j)
					  : (float)mu_random_below(&key, j, c->classes);
	}
	in->n = c->num_examples ? c->num_examples
				: DEFAULT_STEPS * (size_t)c->num_workers * c->batch;
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
	mu_free(s->bytes);
	mu_free(s->labels);
	mu_free(s);
	in->impl = NULL;
}

static enum mu_status read_synthetic(const struct mu_input *in, struct mu_input_thread *thread,
				     size_t record, float *data, float *labels)
{
	const struct synthetic *s = in->impl;
	const size_t sample = mu_shape_sample(mu_input_shape(in)), i = record % in->config.batch;

	if (s->data) {
		memcpy(data, s->data + i * sample, sample * sizeof *data);
	} else if (thread && thread->bytes) {
		memcpy(thread->bytes, s->bytes + i * sample, sample);
		thread->are_bytes = true;
	} else {
		mu_input_from_bytes(in, data, s->bytes + i * sample, 1);
	}
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
	.settings_nbytes = sizeof(struct mu_synthetic_settings),
	.open = open_synthetic,
	.close = close_synthetic,
	.describe = describe_synthetic,
	.read = read_synthetic,
};
