/* SPDX-License-Identifier: Apache-2.0 */
/* Writing safetensors: see storage.h. */
#include <muster/storage.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static void put_array(struct mu_json *j, const struct mu_params_array *array, size_t *at)
{
	const size_t begin = *at;

	*at += mu_params_elements(array) * sizeof(float);
	mu_json_open(j, array->name, '{');
	mu_json_text(j, "dtype", "F32");
	mu_json_open(j, "shape", '[');
	for (int d = 0; d < array->ndims; d++)
		mu_json_number(j, NULL, (double)array->dims[d]);
	mu_json_close(j, ']');
	mu_json_open(j, "data_offsets", '[');
	mu_json_number(j, NULL, (double)begin);
	mu_json_number(j, NULL, (double)*at);
	mu_json_close(j, ']');
	mu_json_close(j, '}');
}

/* *text: to be freed by free(). */
static enum mu_status make_header(size_t n, const struct mu_params_array *arrays, char **text,
				  size_t *nbytes)
{
	enum mu_status st = MU_OK;
	struct mu_json j = {.file = open_memstream(text, nbytes), .flat = 1};
	size_t at = 0;
	bool failed;

	if (!j.file)
		MU_FAIL(MU_ERR_MEMORY, "the header of a safetensors file: %s", strerror(errno));
	mu_json_open(&j, NULL, '{');
	mu_json_open(&j, "__metadata__", '{');
	mu_json_text(&j, "format", "pt");
	mu_json_close(&j, '}');
	for (size_t i = 0; i < n; i++)
		put_array(&j, &arrays[i], &at);
	mu_json_close(&j, '}'); /* and a line break */
	fputs("        ", j.file);
	failed = ferror(j.file) != 0;
	if (fclose(j.file) != 0 || failed)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the header of a safetensors file");
	*strrchr(*text, '\n') = ' ';
	*nbytes -= *nbytes % 8; /* numbers begin at a multiple of 8 */
out:
	return st;
}

static enum mu_status put_all(FILE *f, size_t n, const struct mu_params_array *arrays,
			      mu_params_fn *fn, void *context)
{
	enum mu_status st = MU_OK;
	char *text = NULL;
	float *data = NULL;
	size_t nbytes = 0;

	MU_TRY(make_header(n, arrays, &text, &nbytes));
	for (int i = 0; i < 8; i++)
		fputc((int)((uint64_t)nbytes >> 8 * i & 0xff), f);
	fwrite(text, 1, nbytes, f);
	for (size_t i = 0; i < n; i++) {
		const size_t elements = mu_params_elements(&arrays[i]);

		mu_free(data);
		data = NULL;
		MU_TRY(MU_ALLOC(data, elements + 1, "an array"));
		MU_TRY(fn(context, &arrays[i], data));
		fwrite(data, sizeof *data, elements, f);
	}
out:
	free(text);
	mu_free(data);
	return st;
}

enum mu_status mu_safetensors_write(const char *path, size_t n,
				    const struct mu_params_array *arrays, mu_params_fn *fn,
				    void *context)
{
	enum mu_status st = MU_OK;
	struct mu_replace replace = {0};

	MU_TRY(mu_replace_open(&replace, path));
	MU_TRY(put_all(replace.stream, n, arrays, fn, context));
	MU_TRY(mu_replace_commit(&replace));
out:
	mu_replace_release(&replace);
	return st;
}
