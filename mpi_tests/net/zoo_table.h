/* SPDX-License-Identifier: Apache-2.0 */
/* What the networks must come out as. */
#ifndef MUSTER_ZOO_TABLE_H
#define MUSTER_ZOO_TABLE_H

#include <stddef.h>

#include <muster/shape.h>

struct zoo_row {
	const char *network;
	long depth;
	size_t shape[4], classes; /* (c, h, w), of a volume (c, d, h, w) */
	size_t params, arrays, aux; /* learnable values, arrays of them; auxiliary values */
	double macs;                /* multiply-adds per sample */
};

extern const struct zoo_row zoo_rows[];
extern const size_t zoo_n_rows;

static inline struct mu_shape zoo_shape(const struct zoo_row *r)
{
	return r->shape[3] ? (struct mu_shape)MU_SAMPLE(r->shape[0], r->shape[1], r->shape[2],
							r->shape[3])
			   : (struct mu_shape)MU_SAMPLE(r->shape[0], r->shape[1], r->shape[2]);
}

/* Names of all arrays at (3, 28, 28), learnable ones first, each followed by a blank. */
struct zoo_names {
	const char *network;
	long depth;
	const char *names;
};

extern const struct zoo_names zoo_names[];
extern const size_t zoo_n_names;

#endif
