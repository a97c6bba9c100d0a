/* SPDX-License-Identifier: Apache-2.0 */
/* A set of images with labels, in memory and as IDX files: see digits.h. */
#include "digits.h"

#include <muster/storage.h>

enum { PATH_BYTES = 4096, PROGRESS_IMAGES = 1000, SET_SHIFT = 40 };

enum mu_status digits_set_init(struct digits_set *set)
{
	enum mu_status st = MU_OK;
	/* The images have epoch 0. */
	struct mu_random key = {
		.seed = set->seed, .purpose = MU_RANDOM_DIGITS, .epoch = 1, .sample = set->number};
	uint32_t *order = NULL;

	MU_TRY(MU_ALLOC(order, set->n, "order of the labels"));
	MU_TRY(MU_ALLOC(set->labels, set->n, "labels"));
	mu_random_permutation(&key, order, set->n);
	for (size_t i = 0; i < set->n; i++)
		set->labels[i] = (uint8_t)(order[i] % DIGITS_CLASSES);
out:
	mu_free(order);
	if (st != MU_OK)
		digits_set_release(set);
	return st;
}

void digits_set_release(struct digits_set *set)
{
	mu_free(set->images);
	mu_free(set->labels);
	set->images = NULL;
	set->labels = NULL;
}

void digits_set_image(const struct digits_set *set, size_t i, uint8_t *pixels)
{
	digits_image(pixels, set->seed, (uint64_t)set->number << SET_SHIFT | i, set->labels[i]);
}

enum mu_status digits_set_draw(struct digits_set *set, FILE *progress)
{
	enum mu_status st = MU_OK;

	MU_TRY(MU_ALLOC(set->images, set->n * DIGITS_PIXELS, "images"));
	for (size_t i = 0; i < set->n; i++) {
		digits_set_image(set, i, set->images + i * DIGITS_PIXELS);
		if (progress && (i + 1) % PROGRESS_IMAGES == 0)
			fprintf(progress, "\rdigits: %s %zu of %zu ", set->name, i + 1, set->n);
	}
	if (progress)
		fprintf(progress, "\r%40s\r", "");
out:
	return st;
}

static enum mu_status write_file(const struct digits_set *set, const char *folder, const char *what,
				 const struct mu_idx *idx)
{
	enum mu_status st = MU_OK;
	char path[PATH_BYTES];
	int n = snprintf(path, sizeof path, "%s/%s-%s-ubyte.gz", folder, set->name, what);

	if (n < 0 || (size_t)n >= sizeof path)
		MU_FAIL(MU_ERR_IO, "%.60s...: the path is longer than %zu bytes", folder,
			sizeof path - 1);
	MU_TRY(mu_idx_write(path, idx));
out:
	return st;
}

enum mu_status digits_set_write(const struct digits_set *set, const char *folder)
{
	enum mu_status st = MU_OK;
	struct mu_idx images = {3, {set->n, DIGITS_SIDE, DIGITS_SIDE}, set->images};
	struct mu_idx labels = {1, {set->n}, set->labels};

	MU_TRY(write_file(set, folder, "images-idx3", &images));
	MU_TRY(write_file(set, folder, "labels-idx1", &labels));
out:
	return st;
}
