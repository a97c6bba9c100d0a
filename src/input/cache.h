/* SPDX-License-Identifier: Apache-2.0 */
/* Private to input: encoded records in memory that the ranks of a node share. Each worker of the
 * node reads its share of them, once, into its own part of that memory. */
#ifndef MUSTER_INPUT_CACHE_H
#define MUSTER_INPUT_CACHE_H

#include <muster/comm.h>
#include <muster/records.h>

struct mu_cache;

/* Cache the first n records. records: NULL on ranks that read none. *out is NULL on these, and on
 * all ranks of a node without room. *bytes: size on the node. Collective over t->node. */
enum mu_status mu_cache_open(struct mu_cache **out, const struct mu_records *records, size_t n,
			     const struct mu_topology *t, size_t *bytes);
void mu_cache_close(struct mu_cache *c);
/* false: record i could not be read when the cache was filled; read the file for the reason. Any
 * thread. */
bool mu_cache_read(const struct mu_cache *c, size_t i, struct mu_record *out);

#endif
