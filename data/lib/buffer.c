/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that grows, and whole files in it. */
#include "image.h"

#include <muster/storage.h>

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

enum mu_status data_buffer_grow(struct data_buffer *b, size_t used, size_t nbytes)
{
	enum mu_status st = MU_OK;
	uint8_t *bytes;
	size_t capacity = b->capacity > nbytes / 2 ? 2 * b->capacity : nbytes;

	if (nbytes <= b->capacity)
		goto out;
	MU_TRY(MU_ALLOC(bytes, capacity, "images"));
	if (used)
		memcpy(bytes, b->bytes, used);
	mu_free(b->bytes);
	b->bytes = bytes;
	b->capacity = capacity;
out:
	return st;
}

void data_buffer_release(struct data_buffer *b)
{
	mu_free(b->bytes);
	*b = (struct data_buffer){0};
}

enum mu_status data_buffer_read(struct data_buffer *out, const char *path, size_t *nbytes)
{
	enum mu_status st = MU_OK;
	struct stat status;
	FILE *f;

	*nbytes = 0;
	MU_TRY(mu_stream_open(&f, path));
	if (fstat(fileno(f), &status) != 0)
		MU_FAIL(MU_ERR_IO, "%s: cannot be read: %s", path, strerror(errno));
	*nbytes = (size_t)status.st_size;
	if (*nbytes == 0)
		MU_FAIL(MU_ERR_FORMAT, "%s: the file is empty; expected an image", path);
	MU_TRY(data_buffer_grow(out, 0, *nbytes));
	if (fread(out->bytes, 1, *nbytes, f) != *nbytes)
		MU_FAIL(MU_ERR_IO, "%s: cannot be read: %s", path,
			ferror(f) ? strerror(errno) : "became shorter while it was read");
out:
	if (f)
		fclose(f);
	return st;
}
