/* SPDX-License-Identifier: Apache-2.0 */
/* MXNet's .params files. */
#include <muster/storage.h>

#include <stdlib.h>

#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	struct mu_params *p;

	if (mu_params_open(&p, fuzz_file("x.params", data, n)) == MU_OK) {
		for (size_t i = 0; i < mu_params_n(p); i++) {
			const size_t elements = mu_params_elements(mu_params_array(p, i));
			float *values = malloc(elements * sizeof *values);

			/* A file cannot hold more than its bytes, of 2 for a number. */
			if (elements > n / 2)
				__builtin_trap();
			if (values && mu_params_read(p, i, values) != MU_OK)
				mu_trace_clear();
			free(values);
		}
		mu_params_close(p);
	}
	mu_trace_clear();
	return 0;
}
