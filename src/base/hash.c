/* SPDX-License-Identifier: Apache-2.0 */
/* FNV-1a. */
#include <muster/base.h>

uint64_t mu_hash(uint64_t h, const void *data, size_t nbytes)
{
	const unsigned char *p = data;

	for (size_t i = 0; i < nbytes; i++)
		h = (h ^ p[i]) * 1099511628211u;
	return h;
}
