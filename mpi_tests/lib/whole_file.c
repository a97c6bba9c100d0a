/* SPDX-License-Identifier: Apache-2.0 */
/*
 * whole_file FILE.h5...: is each a complete file, all arrays as their checksums say? Exit status 0:
 * yes; 1: no, and one line per file that is not.
 */
#include <stdlib.h>

#include <muster/storage.h>

static enum mu_status check(const char *path)
{
	enum mu_status st = MU_OK;
	struct mu_array_file *file = NULL;

	MU_TRY(mu_array_file_open_checked(&file, path));
	MU_TRY(mu_array_file_verify(file));
out:
	mu_array_file_close(file, false);
	return st;
}

int main(int argc, char *argv[])
{
	int exit_status = EXIT_SUCCESS;

	for (int i = 1; i < argc; i++) {
		if (check(argv[i]) == MU_OK)
			continue;
		fprintf(stderr, "%s\n", mu_trace_message());
		mu_trace_clear();
		exit_status = EXIT_FAILURE;
	}
	return exit_status;
}
