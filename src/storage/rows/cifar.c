/* SPDX-License-Identifier: Apache-2.0 */
/*
 * CIFAR's binary files (A. Krizhevsky, "The CIFAR-10 dataset", section "Binary version"), in memory
 * unchanged. A record is its labels, one byte each, and (3, 32, 32) pixels. CIFAR-10 has one label;
 * CIFAR-100 has a coarse one, which is not used, and a fine one.
 */
#include <string.h>

#include "rows.h"

enum { SIDE = 32, IMAGE = 3 * SIDE * SIDE };

/* If the size fits only one kind, the file is of that kind; else compare its name with those in
 * CIFAR-100's archive. */
static size_t count_labels(const char *path, size_t nbytes)
{
	bool one = nbytes % (1 + IMAGE) == 0, two = nbytes % (2 + IMAGE) == 0;
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	if (one != two)
		return one ? 1 : 2;
	return strcmp(name, "train.bin") == 0 || strcmp(name, "test.bin") == 0 ? 2 : 1;
}

enum mu_status mu_rows_open_cifar(struct mu_rows_pair *pair, const char *path, const char *kind,
				  size_t *labels)
{
	enum mu_status st = MU_OK;
	struct mu_rows *data = &pair->data, *target = &pair->target;
	size_t nbytes;

	mu_file_init(&data->file);
	MU_TRY(mu_rows_set_name(data, path, NULL));
	MU_TRY(mu_file_open(&data->file, path));
	nbytes = data->file.nbytes;
	if (*labels == 0)
		*labels = count_labels(path, nbytes);
	data->at = *labels;
	data->stride = *labels + IMAGE;
	if (nbytes == 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: the file is empty; expected %s records of %zu bytes",
			path, kind, data->stride);
	if (nbytes % data->stride != 0)
		MU_FAIL(MU_ERR_FORMAT,
			"%s: truncated, or no %s file: %zu bytes are not a multiple of the %zu "
			"bytes of a record",
			path, kind, nbytes, data->stride);
	MU_TRY(MU_ALLOC(data->memory, nbytes, path));
	MU_TRY(mu_file_read(&data->file, 0, data->memory, nbytes));
	data->n = nbytes / data->stride;
	data->shape = (struct mu_shape)MU_SAMPLE(3, SIDE, SIDE);
	data->cell = MU_CELL_U1;
	*target = *data;
	target->within = true;
	target->at = *labels - 1;
	target->shape = (struct mu_shape)MU_SAMPLE(1);
	target->integers = true;
out:
	return st;
}
