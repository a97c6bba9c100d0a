/* SPDX-License-Identifier: Apache-2.0 */
/* What the networks must come out as. */
#ifndef MUSTER_ZOO_TABLE_H
#define MUSTER_ZOO_TABLE_H

#include <stddef.h>

struct zoo_row {
	const char *network;
	long depth;
	size_t shape[3], classes;
	size_t params, arrays, aux; /* learnable values, arrays of them; auxiliary values */
	double macs;                /* multiply-adds per sample */
};

extern const struct zoo_row zoo_rows[];
extern const size_t zoo_n_rows;

/* Names of all arrays at (3, 28, 28), learnable ones first, each followed by a blank. */
struct zoo_names {
	const char *network;
	long depth;
	const char *names;
};

extern const struct zoo_names zoo_names[];
extern const size_t zoo_n_names;

#endif
