/* SPDX-License-Identifier: Apache-2.0 */
/* Arrays of samples: .npy, .npz and .csv files, by the first byte. */
#include <muster/input.h>

#include <stdlib.h>

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const char *const names[] = {"x.npy", "x.npz", "x.csv"};
	struct mu_input_config config = {
		.reader = "arrays", .batch = 1, .num_workers = 1, .any_size = true};
	struct mu_input in;

	if (n == 0)
		return 0;
	config.paths = fuzz_file(names[data[0] % 3], data + 1, n - 1);
	config.unlabelled = data[0] & 64;
	config.skip_bad_records = data[0] & 128;
	if (mu_input_open(&in, &config) == MU_OK) {
		const size_t sample = mu_input_sample(&in, 0), width = mu_input_labels(&in, 0);
		float *numbers = malloc((sample + width) * sizeof *numbers);
		uint32_t id;
		struct mu_input_batch batch = {
			.data = numbers, .labels = numbers + sample, .ids = &id};

		for (size_t i = 0; numbers && i < in.n && i < 1000; i++)
			if (mu_input_read(&in, i, &batch) != MU_OK)
				mu_trace_clear();
		free(numbers);
	}
	mu_input_close(&in);
	mu_trace_clear();
	return 0;
}
