/* SPDX-License-Identifier: Apache-2.0 */
/*
 * same_model A.h5 B.h5 [PATTERN]: do two files hold the same parameters and running statistics, bit
 * for bit? PATTERN: only those whose names match, such as "arg/fc1_*"; or the word all: every array
 * in a group, states of the optimiser included. What else is in them is not looked at. Exit status
 * 0: yes; 1: no, or an error.
 */
#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include <muster/storage.h>

struct files {
	struct mu_array_file *a, *b;
	size_t n;
};

static const char *pattern = "*";

static bool is_model(const char *name)
{
	if (strcmp(pattern, "all") == 0)
		return strchr(name, '/') != NULL;
	return (strncmp(name, "arg/", 4) == 0 || strncmp(name, "aux/", 4) == 0) &&
	       fnmatch(pattern, name, 0) == 0;
}

static enum mu_status compare(void *context, const char *name, int ndims, const size_t *dims)
{
	enum mu_status st = MU_OK;
	struct files *f = context;
	float *two[2] = {NULL, NULL};
	size_t n = 1;

	if (!is_model(name))
		goto out;
	for (int i = 0; i < ndims; i++)
		n *= dims[i];
	for (int i = 0; i < 2; i++) {
		MU_TRY(MU_ALLOC(two[i], n + 1, "an array"));
		MU_TRY(mu_array_file_read(i ? f->b : f->a, name, ndims, dims, two[i]));
	}
	if (memcmp(two[0], two[1], n * sizeof **two) != 0)
		MU_FAIL(MU_ERR_FORMAT, "%s differs", name);
	f->n++;
out:
	mu_free(two[0]);
	mu_free(two[1]);
	return st;
}

static enum mu_status count(void *context, const char *name, int ndims, const size_t *dims)
{
	size_t *n = context;

	(void)ndims;
	(void)dims;
	*n += is_model(name);
	return MU_OK;
}

int main(int argc, char *argv[])
{
	enum mu_status st = MU_OK;
	struct files f = {NULL, NULL, 0};
	size_t n = 0;

	if (argc != 3 && argc != 4)
		MU_FAIL(MU_ERR_USAGE, "usage: same_model A.h5 B.h5 [PATTERN]");
	if (argc == 4)
		pattern = argv[3];
	MU_TRY(mu_array_file_open(&f.a, argv[1]));
	MU_TRY(mu_array_file_open(&f.b, argv[2]));
	MU_TRY(mu_array_file_each(f.a, compare, &f));
	MU_TRY(mu_array_file_each(f.b, count, &n));
	if (f.n == 0 || f.n != n)
		MU_FAIL(MU_ERR_FORMAT, "%zu arrays and %zu arrays", f.n, n);
out:
	if (st != MU_OK)
		fprintf(stderr, "%s\n", mu_trace_message());
	mu_array_file_close(f.a, false);
	mu_array_file_close(f.b, false);
	return st == MU_OK ? EXIT_SUCCESS : EXIT_FAILURE;
}
