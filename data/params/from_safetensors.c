/* SPDX-License-Identifier: Apache-2.0 */
/* safetensors to HDF5. */
#include "names.h"

#include <string.h>

/* The numbers of (rows, columns) become those of (columns, rows). */
static enum mu_status transpose(float **data, size_t rows, size_t columns)
{
	enum mu_status st = MU_OK;
	float *turned = NULL;

	MU_TRY(MU_ALLOC(turned, rows * columns + 1, "an array"));
	for (size_t i = 0; i < rows; i++)
		for (size_t j = 0; j < columns; j++)
			turned[j * rows + i] = (*data)[i * columns + j];
	mu_free(*data);
	*data = turned;
out:
	return st;
}

static enum mu_status copy_array(const struct mu_safetensors *in, size_t i, const char *name,
				 enum name_how how, struct mu_array_file *out)
{
	enum mu_status st = MU_OK;
	struct mu_params_array array = *mu_safetensors_array(in, i);
	float *data = NULL;

	MU_TRY(MU_ALLOC(data, mu_params_elements(&array) + 1, "an array"));
	MU_TRY(mu_safetensors_read(in, i, data));
	if (how == NAME_TRANSPOSE && array.ndims != 2)
		MU_FAIL(MU_ERR_FORMAT, "array \"%s\" has %d dimensions; 2 are needed", array.name,
			array.ndims);
	if (how == NAME_TRANSPOSE) {
		const size_t in_units = array.dims[0], out_units = array.dims[1];

		MU_TRY(transpose(&data, in_units, out_units));
		array.ndims = 4;
		array.dims[0] = out_units;
		array.dims[1] = in_units;
		array.dims[2] = array.dims[3] = 1;
	}
	MU_TRY(mu_array_file_write(out, name, array.ndims, array.dims, data));
out:
	mu_free(data);
	return st;
}

static enum mu_status copy_named(const struct mu_safetensors *in, size_t i,
				 const struct name_family *family, struct mu_array_file *out,
				 size_t *n)
{
	enum mu_status st = MU_OK;
	const struct mu_params_array *array = mu_safetensors_array(in, i);
	enum name_how how = NAME_KEEP;
	char name[NAME_BYTES];
	bool twice;

	snprintf(name, sizeof name, "%s", array->name);
	if (family && !name_to_ours(family, array->name, name, &how))
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"array \"%s\" has no place in the networks of --names %s; --names plain "
			"keeps "
			"names",
			array->name, name_family_word(family));
	if (how == NAME_SKIP)
		goto out;
	if (array->ndims == 0 || mu_params_elements(array) == 0)
		MU_FAIL(MU_ERR_FORMAT, "array \"%s\" %s, which the HDF5 file cannot hold",
			array->name, array->ndims == 0 ? "has no dimensions" : "is empty");
	MU_TRY(mu_array_file_has(out, name, &twice));
	if (twice)
		MU_FAIL(MU_ERR_FORMAT, "two arrays become \"%s\"; \"%s\" is one", name,
			array->name);
	MU_TRY(copy_array(in, i, name, how, out));
	++*n;
out:
	return st;
}

enum mu_status convert_from_safetensors(const char *from, const char *to, struct name_choice names,
					size_t *n)
{
	enum mu_status st = MU_OK;
	struct mu_safetensors *in = NULL;
	struct mu_array_file *out = NULL;

	*n = 0;
	MU_TRY(mu_safetensors_open(&in, from));
	for (size_t i = 0; names.detect && !names.family && i < mu_safetensors_n(in); i++)
		names.family = name_family_of_theirs(mu_safetensors_array(in, i)->name);
	MU_TRY(mu_array_file_create(&out, to));
	for (size_t i = 0; i < mu_safetensors_n(in); i++) {
		st = copy_named(in, i, names.family, out, n);
		if (st != MU_OK)
			mu_trace_prefix("%s: ", from);
		MU_TRY(st);
	}
	if (*n == 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: holds no parameters", from);
	st = mu_array_file_close(out, true);
	out = NULL;
	MU_TRY(st);
out:
	mu_array_file_close(out, false);
	mu_safetensors_close(in);
	return st;
}
