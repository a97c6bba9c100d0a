/* SPDX-License-Identifier: Apache-2.0 */
/* Two IDX files (muster/storage.h), grey images and their labels, in memory as bytes. */
#include <muster/storage.h>

#include "rows.h"

static enum mu_status read_array(struct mu_rows *rows, const char *path, int ndims)
{
	enum mu_status st = MU_OK;
	struct mu_idx idx;

	mu_file_init(&rows->file);
	MU_TRY(mu_rows_set_name(rows, path, NULL));
	MU_TRY(mu_idx_read(&idx, path, ndims));
	rows->memory = idx.data;
	rows->cell = MU_CELL_U1;
	rows->integers = true;
	rows->n = idx.dims[0];
	rows->shape = (struct mu_shape)MU_SAMPLE(1);
	if (ndims == 3)
		rows->shape = (struct mu_shape)MU_SAMPLE(1, idx.dims[1], idx.dims[2]);
	rows->stride = mu_rows_row_bytes(rows);
out:
	return st;
}

enum mu_status mu_rows_open_idx(struct mu_rows_pair *pair, const char *images, const char *labels)
{
	enum mu_status st = MU_OK;

	MU_TRY(read_array(&pair->data, images, 3));
	MU_TRY(read_array(&pair->target, labels, 1));
out:
	return st;
}
