/* SPDX-License-Identifier: Apache-2.0 */
/* Files of named arrays, which checkpoints are, as a run that goes on from one reads them. */
#include <muster/storage.h>

#include <stdlib.h>

#include "fuzz.h"

enum { ELEMENTS_MAX = 1 << 20 };

static enum mu_status read_array(void *context, const char *name, int ndims, const size_t *dims)
{
	size_t n = 1;
	float *values;

	for (int i = 0; i < ndims; i++)
		n = dims[i] < ELEMENTS_MAX && n < ELEMENTS_MAX ? n * dims[i] : ELEMENTS_MAX;
	if (n >= ELEMENTS_MAX)
		return MU_OK;
	values = malloc((n + 1) * sizeof *values);
	if (values && mu_array_file_read(context, name, ndims, dims, values) != MU_OK)
		mu_trace_clear();
	free(values);
	return MU_OK;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
	static const char *const texts[] = {"format", "version", "position", "metrics_epoch"};
	struct mu_array_file *f;
	char text[512];

	if (mu_array_file_open_checked(&f, fuzz_file("x.h5", data, n)) == MU_OK) {
		for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
			if (mu_array_file_get_text(f, texts[i], text, sizeof text) != MU_OK)
				mu_trace_clear();
		if (mu_array_file_each(f, read_array, f) != MU_OK ||
		    mu_array_file_verify(f) != MU_OK)
			mu_trace_clear();
		mu_array_file_close(f, false);
	}
	mu_trace_clear();
	return 0;
}
