/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors files, and their indexes. */
#include <muster/storage.h>

#include <stdlib.h>

#include "fuzz.h"

static void read_all(const char *path, size_t n)
{
	struct mu_safetensors *s;

	if (mu_safetensors_open(&s, path) == MU_OK) {
		for (size_t i = 0; i < mu_safetensors_n(s); i++) {
			const size_t elements = mu_params_elements(mu_safetensors_array(s, i));
			float *values = malloc((elements + 1) * sizeof *values);

			/* A file cannot hold more than its bytes. */
			if (elements > n)
				__builtin_trap();
			if (values && mu_safetensors_read(s, i, values) != MU_OK)
				mu_trace_clear();
			free(values);
		}
		mu_safetensors_close(s);
	}
	mu_trace_clear();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const char header[] = "\x38\0\0\0\0\0\0\0{\"a\":{\"dtype\":\"F16\",\"shape\":[2],"
				     "\"data_offsets\":[0,4]}}  \0\x3c\0\x40";

	read_all(fuzz_file("x.safetensors", data, n), n);
	fuzz_file("a.safetensors", (const uint8_t *)header, sizeof header - 1);
	read_all(fuzz_file("x.json", data, n), sizeof header);
	return 0;
}
