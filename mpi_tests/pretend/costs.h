/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a piece of work of the pretended GPU would cost a real one: bytes of its memory, and
 * operations of products. PRETEND_COSTS=FILE gets the costs of the whole process when it ends, a
 * line for each name and size: name, how often, bytes read, bytes written, operations, 1 where
 * these are on tensor cores, 1 where the bytes are known; with tabs. PRETEND_DRY=1: nothing runs,
 * so that large networks take seconds, and the GPU has the size of an H200.
 */
#ifndef PRETEND_COSTS_H
#define PRETEND_COSTS_H

struct pretend_cost {
	const char *name; /* NULL: nothing is counted */
	double read, written, operations;
	int half, known;
};

int pretend_is_dry(void);
/* Of a kernel, from its arguments. */
struct pretend_cost pretend_cost_of(const char *kernel, const void *args);
void pretend_count(const struct pretend_cost *cost);

#endif
