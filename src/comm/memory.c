/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flat arrays. All of them are made here, so that those of a node can later lie in one shared
 * window.
 */
#include <muster/comm.h>

enum mu_status mu_comm_alloc(const struct mu_topology *t, float **out, size_t n, const char *what)
{
	(void)t; /* the node's window will need it */
	return mu_alloc((void **)out, n * sizeof **out, what);
}

void mu_comm_free(float *p)
{
	mu_free(p);
}
