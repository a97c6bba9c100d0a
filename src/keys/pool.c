/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers by classes of size, four to every power of two; each begins with the place in its list.
 */

#include "pool.h"

struct mu_pool_buffer {
	_Alignas(MU_ALIGN) struct mu_pool_buffer *next;
	size_t class;
};

#define LEAST_BYTES ((size_t)64)

/* The class of a size, and the bytes that buffers of this class have. */
static size_t class_of(size_t nbytes, size_t *rounded)
{
	size_t class = 0;
	size_t step = LEAST_BYTES / 4;
	size_t size = LEAST_BYTES;

	while (size < nbytes && class < MU_POOL_CLASSES - 1) {
		size += step;
		if (++class % 4 == 0)
			step *= 2;
	}
	*rounded = size;
	return class;
}

enum mu_status mu_pool_take(struct mu_pool *pool, void **out, size_t nbytes, const char *what)
{
	enum mu_status st = MU_OK;
	struct mu_pool_buffer *b;
	size_t rounded;
	size_t class = class_of(nbytes, &rounded);

	*out = NULL;
	b = pool->spare[class];
	if (b) {
		pool->spare[class] = b->next;
	} else {
		MU_TRY(mu_alloc((void **)&b, sizeof *b + rounded, what));
		b->class = class;
	}
	*out = b + 1;
out:
	return st;
}

void mu_pool_give(struct mu_pool *pool, void *buffer)
{
	struct mu_pool_buffer *b = buffer;

	if (!b)
		return;
	b--;
	if (mu_memory_is_kept()) { /* a message that was abandoned may use it */
		mu_free(b);
		return;
	}
	b->next = pool->spare[b->class];
	pool->spare[b->class] = b;
}

void mu_pool_release(struct mu_pool *pool)
{
	for (size_t i = 0; i < MU_POOL_CLASSES; i++) {
		while (pool->spare[i]) {
			struct mu_pool_buffer *b = pool->spare[i];

			pool->spare[i] = b->next;
			mu_free(b);
		}
	}
}
