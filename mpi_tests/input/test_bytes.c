/* SPDX-License-Identifier: Apache-2.0 */
/* @np 0 */
/* Samples that the input leaves as bytes (config.bytes). */
#include <string.h>

#include "../lib/pipeline_data.h"

/* A step's samples from bytes, by the formula. */
static void expand(const struct mu_input *in, const struct mu_input_batch *batch)
{
	const struct mu_field *data = mu_input_field(in, MU_FIELD_INPUT);

	for (size_t i = 0; i < batch->count * SAMPLE; i++) {
		const size_t channel = i / (SAMPLE / 3) % 3;

		batch->data[i] =
			((float)batch->bytes[i] - data->mean[channel]) / data->std[channel];
	}
}

/*
 * Samples that are left as bytes are those that are not, bit for bit, whoever reads; a batch with a
 * picture that was resized has floats, and so has one whose reader has no room for bytes. Returns
 * how many batches were bytes.
 */
static size_t compare_bytes(const struct mu_input_config *like, size_t *steps)
{
	static float data[2][BATCH * SAMPLE];
	static uint8_t bytes[BATCH * SAMPLE];
	float labels[2][BATCH];
	uint32_t ids[2][BATCH];
	struct mu_input_config config = *like;
	struct mu_input_batch got[2];
	struct mu_input in[2];
	size_t n = 0;

	settings.mean[1] = 100;
	for (int k = 0; k < 2; k++) {
		config.bytes = k > 0;
		if (!CHECK(mu_input_open(&in[k], &config) == MU_OK &&
			   mu_input_has_bytes(&in[k]) == (k > 0)))
			return 0;
		got[k] = (struct mu_input_batch){
			.data = data[k], .labels = labels[k], .ids = ids[k]};
	}
	for (size_t step = 0; step < in[0].steps; step++) {
		got[1].bytes = step % 5 == 4 ? NULL : bytes;
		CHECK(mu_input_read(&in[0], step, &got[0]) == MU_OK && !got[0].are_bytes);
		CHECK(mu_input_read(&in[1], step, &got[1]) == MU_OK);
		CHECK(got[1].bytes || !got[1].are_bytes);
		n += got[1].are_bytes;
		if (got[1].are_bytes)
			expand(&in[1], &got[1]);
		CHECK(got[0].count == got[1].count);
		CHECK(memcmp(ids[0], ids[1], got[0].count * sizeof ids[0][0]) == 0);
		CHECK(memcmp(data[0], data[1], got[0].count * SAMPLE * sizeof(float)) == 0);
	}
	*steps = in[0].steps - in[0].steps / 5; /* those with room */
	for (int k = 0; k < 2; k++)
		mu_input_close(&in[k]);
	return n;
}

/* All pictures are moved only, or with crops of two sizes every other one. */
static void test_bytes(const char *name)
{
	struct mu_input_config config = base_config(name);
	size_t found, steps;

	for (config.threads = 0; config.threads < 3; config.threads += 2) {
		settings.augment.min_crop = settings.augment.max_crop = 0;
		config.batch = BATCH;
		found = compare_bytes(&config, &steps);
		CHECK(found > 0 && found == steps);
		settings.augment.min_crop = SIDE;
		settings.augment.max_crop = SIDE + 1;
		config.batch = 2;
		found = compare_bytes(&config, &steps);
		CHECK(found > 0 && found < steps);
	}
}

int main(void)
{
	if (!scratch_make(folder))
		return 1;
	mu_log_configure(&(struct mu_log_config){.level = MU_LOG_ERROR});
	write_rec("images.rec", RECORDS, false);
	test_bytes("images.rec");
	if (mu_array_file_supported()) {
		write_h5("raw.h5");
		test_bytes("raw.h5");
	}
	scratch_remove(folder);
	return check_failures() ? 1 : 0;
}
