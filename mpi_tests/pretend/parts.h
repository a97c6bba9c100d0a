/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors of the pretended cuDNN's graph API: graph.c. */
#ifndef PRETEND_PARTS_H
#define PRETEND_PARTS_H

#include <string.h>

#include "pretend.h"

enum { MAX_SET = 12, MAX_VALUES = 256, MAX_ARRAYS = PRETEND_ARRAYS };

struct attribute {
	cudnnBackendAttributeName_t name;
	int64_t n;
	union {
		int64_t numbers[4];
		void *pointers[PRETEND_STEPS];
		char bytes[MAX_VALUES];
	} v;
};

struct part {
	cudnnBackendDescriptorType_t kind;
	int finished, n_set;
	struct attribute set[MAX_SET];
	struct part *graph; /* of a list of configurations, a configuration, an engine, a plan */
	int engine;
	cudnnHandle_t handle;
	/* Of a plan: what it does, and which number and bytes each of its arrays has. */
	struct pretend_convolution work;
	struct pretend_program *program; /* NULL: a convolution */
	int n_arrays;
	int64_t numbers[MAX_ARRAYS], nbytes[MAX_ARRAYS], alignment[MAX_ARRAYS];
};

static inline const struct attribute *find(const struct part *p, cudnnBackendAttributeName_t name)
{
	for (int i = 0; i < p->n_set; i++)
		if (p->set[i].name == name)
			return &p->set[i];
	return NULL;
}

static inline struct part *part_of(const struct part *p, cudnnBackendAttributeName_t name)
{
	return find(p, name)->v.pointers[0];
}

static inline int word_of(const struct part *p, cudnnBackendAttributeName_t name)
{
	int word;

	memcpy(&word, find(p, name)->v.bytes, sizeof word);
	return word;
}

static inline const int64_t *numbers_of(const struct part *p, cudnnBackendAttributeName_t name)
{
	return find(p, name)->v.numbers;
}

/* program.c: what a plan does that is no convolution. 0: nobody knows how. */
int pretend_compile_program(struct part *plan, const struct attribute *ops);

#endif
