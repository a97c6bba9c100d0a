/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small data set in MNIST's files, and whole runs on it through mu_train: what the tests of
 * training share.
 */
#ifndef MUSTER_FIT_DATA_H
#define MUSTER_FIT_DATA_H

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include <muster/base.h>
#include <muster/storage.h>
#include <muster/train.h>

#include "check.h"
#include "scratch.h"

enum { FIT_TRAIN = 211, FIT_VALIDATE = 50, FIT_SIDE = 28 };

static inline size_t fit_label(size_t i)
{
	return i * 7 % 10;
}

/* Class c is a bright square at a place of its own, in noise. */
static inline void fit_draw(uint8_t *image, size_t i, size_t label)
{
	struct mu_random random = {.seed = 5, .purpose = MU_RANDOM_TEST, .sample = i};
	size_t row = 3 + label / 4 * 8, column = 2 + label % 4 * 7;

	for (size_t k = 0; k < FIT_SIDE * FIT_SIDE; k++) {
		bool inside = k / FIT_SIDE - row < 5 && k % FIT_SIDE - column < 5;

		image[k] = (uint8_t)(mu_random_below(&random, k, 120) + (inside ? 100 : 0));
	}
}

static inline void fit_write_part(const char *folder, const char *part, size_t n)
{
	struct mu_idx images = {3, {n, FIT_SIDE, FIT_SIDE}, malloc(n * FIT_SIDE * FIT_SIDE)},
		      labels = {1, {n}, malloc(n)};
	char path[2 * SCRATCH_BYTES];

	for (size_t i = 0; i < n; i++) {
		labels.data[i] = (uint8_t)fit_label(i);
		fit_draw(images.data + i * FIT_SIDE * FIT_SIDE, i, labels.data[i]);
	}
	snprintf(path, sizeof path, "%s/%s-images-idx3-ubyte", folder, part);
	CHECK(mu_idx_write(path, &images) == MU_OK);
	snprintf(path, sizeof path, "%s/%s-labels-idx1-ubyte", folder, part);
	CHECK(mu_idx_write(path, &labels) == MU_OK);
	mu_idx_release(&images);
	mu_idx_release(&labels);
}

static inline void fit_write_data(const char *folder)
{
	fit_write_part(folder, "train", FIT_TRAIN);
	fit_write_part(folder, "t10k", FIT_VALIDATE);
}

/* mu_train with the words of a line. */
static inline enum mu_status fit_run(MPI_Comm comm, char *line)
{
	char *argv[64], *rest = line;
	struct mu_train_end end = {.phase = MU_TRAIN_STARTING};
	int argc = 0;

	for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest))
		argv[argc++] = word;
	argv[argc] = NULL;
	return mu_train(comm, argc, argv, &end);
}

/* The same; what this rank prints to its standard error goes to a file. */
static inline enum mu_status fit_run_logged(MPI_Comm comm, char *line, const char *path)
{
	int to = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600), before = dup(STDERR_FILENO);
	enum mu_status st;

	if (!CHECK(to >= 0 && before >= 0 && dup2(to, STDERR_FILENO) >= 0))
		return MU_ERR_IO;
	close(to);
	st = fit_run(comm, line);
	dup2(before, STDERR_FILENO);
	close(before);
	return st;
}

/* The number of the line "...NAME=number" of a log, NAME as "Epoch[0] Train-accuracy"; else NaN. */
static inline double fit_logged(const char *path, const char *name)
{
	FILE *file = fopen(path, "r");
	double found = NAN;
	char line[1024];

	while (file && fgets(line, sizeof line, file)) {
		const char *at = strstr(line, name);

		if (at && at[strlen(name)] == '=')
			found = strtod(at + strlen(name) + 1, NULL);
	}
	if (file)
		fclose(file);
	return found;
}

static inline bool fit_log_has(const char *path, const char *text)
{
	FILE *file = fopen(path, "r");
	bool found = false;
	char line[4096];

	while (file && fgets(line, sizeof line, file))
		found |= strstr(line, text) != NULL;
	if (file)
		fclose(file);
	return found;
}

/* An array of a model's file, in plain order. */
struct fit_array {
	const char *name; /* "arg/convolution0_weight" */
	int ndims;
	size_t dims[4];
};

static inline bool fit_read_array(const char *path, const struct fit_array *array, float *out)
{
	struct mu_array_file *file = NULL;
	bool ok = CHECK(mu_array_file_open(&file, path) == MU_OK) &&
		  CHECK(mu_array_file_read(file, array->name, array->ndims, array->dims, out) ==
			MU_OK);

	if (file)
		mu_array_file_close(file, false);
	return ok;
}

#endif
