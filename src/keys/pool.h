/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Private: buffers that are used again. A buffer that was given back goes to the next
 * who asks for about as much: fresh memory costs a page fault for every page.
 */
#ifndef MUSTER_KEYS_POOL_H
#define MUSTER_KEYS_POOL_H

#include <muster/base.h>

#define MU_POOL_CLASSES 256

struct mu_pool {
	struct mu_pool_buffer *spare[MU_POOL_CLASSES];
};

/* At least nbytes, aligned to MU_ALIGN, of any contents; a size is at most 1/4 more than asked. */
enum mu_status mu_pool_take(struct mu_pool *pool, void **out, size_t nbytes, const char *what);
void mu_pool_give(struct mu_pool *pool, void *buffer); /* NULL is allowed */
/* Free what was given back. */
void mu_pool_release(struct mu_pool *pool);

#endif
