/* SPDX-License-Identifier: Apache-2.0 */
/* Aligned, zeroed memory. */
#include <muster/base.h>

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096, PAGE_ALIGNED_FROM = 1 << 20 };

enum mu_status mu_alloc(void **out, size_t nbytes, const char *what)
{
	enum mu_status st = MU_OK;
	size_t align = nbytes >= PAGE_ALIGNED_FROM ? PAGE_BYTES : MU_ALIGN;
	size_t rounded = (nbytes + align - 1) / align * align;

	*out = NULL;
	if (rounded < nbytes)
		MU_FAIL(MU_ERR_MEMORY, "%s: %zu bytes are more than an address can reach", what,
			nbytes);
	/* Zero bytes get an address of their own, so that NULL always means failure. */
	if (rounded == 0)
		rounded = align;
	*out = aligned_alloc(align, rounded);
	if (!*out)
		MU_FAIL(MU_ERR_MEMORY, "%s: no memory for %zu bytes", what, nbytes);
	memset(*out, 0, rounded);
out:
	return st;
}

static atomic_bool kept;

/* There with the address sanitizer alone: p, and what it points to, is no leak. */
extern void __lsan_ignore_object(const void *p) __attribute__((weak));

void mu_free(void *p)
{
	if (!mu_memory_is_kept())
		free(p);
	else if (p && __lsan_ignore_object)
		__lsan_ignore_object(p);
}

void mu_memory_keep(void)
{
	atomic_store_explicit(&kept, true, memory_order_relaxed);
}

void mu_memory_keep_end(void)
{
	atomic_store_explicit(&kept, false, memory_order_relaxed);
}

bool mu_memory_is_kept(void)
{
	return atomic_load_explicit(&kept, memory_order_relaxed);
}

double mu_memory_bytes(void)
{
	long pages = sysconf(_SC_PHYS_PAGES), page_bytes = sysconf(_SC_PAGESIZE);
	double all = pages > 0 && page_bytes > 0 ? (double)pages * (double)page_bytes : 0;
	double limit = mu_memory_limit("");

	return limit > 0 && (all == 0 || limit < all) ? limit : all;
}
