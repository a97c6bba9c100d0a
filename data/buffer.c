/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that grows. */
#include "image.h"

#include <string.h>

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
