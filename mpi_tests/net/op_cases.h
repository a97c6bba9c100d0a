/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of test_ops: operations with the shapes and attributes that kernels get wrong. */
#ifndef MUSTER_OP_CASES_H
#define MUSTER_OP_CASES_H

#include <stdbool.h>
#include <stddef.h>

#include "device/op.h"

#define OP_MAX_TENSORS 4
#define OP_NO_ROWS ((size_t)-1)
/* There is a block before this one, after it. */
enum { OP_BEFORE = 1, OP_AFTER = 2 };

struct op_case {
	const char *name;
	enum mu_op_kind kind;
	const void *attr;
	struct mu_shape in[OP_MAX_TENSORS]; /* ndims 0 = no such input */
	int n_outputs;                      /* of a split; 0 = 1 */
	const struct mu_activation *fused, *undoes;
	bool undone;
	unsigned shared_grads;
	bool in_place, restored;
	bool no_differences; /* near a kink, or a gradient of something else: see op_literals.c */
	bool ref_only;    /* a use that nets do not make at present */
	unsigned frozen;  /* bit i: nobody reads the gradient of input i */
	size_t count;     /* losses: samples that count; 0 = all, OP_NO_ROWS = none */
	float smoothing;  /* softmax */
	bool use_ignore;  /* softmax: predictions with label 1 are ignored */
	bool weighted;    /* softmax: classes have the weights 1, 1.5, 2, 1, ... */
	bool far;         /* softmax: scores of which the largest alone has a probability */
	int index;        /* position in the net */
	unsigned states;  /* of an LSTM on a block: OP_BEFORE, OP_AFTER */
	double tolerance; /* against ref; 0 = OP_TOLERANCE */
};

/* op_values.c; NULL: it has none. */
const float *op_class_weights(const struct op_case *c);

/* A value v of a device may differ from ref's w by this much times (1 + |w|). */
#define OP_TOLERANCE 1e-5

extern const struct op_case op_cases[];
extern const size_t op_n_cases;

static inline bool op_case_is_loss(const struct op_case *c)
{
	return c->kind == MU_OP_SOFTMAX || c->kind == MU_OP_ELEMENT_LOSS ||
	       c->kind == MU_OP_REGION_LOSS || c->kind == MU_OP_JOINT;
}

/* Are its outputs the same in inference, or those of dropout? */
bool op_case_infers(const struct op_case *c);

/* Is this a use that nets make of the device? ref knows all of them. */
bool op_case_is_for(const struct op_case *c, const struct mu_device *device);

#endif
