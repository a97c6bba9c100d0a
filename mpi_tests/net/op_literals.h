/* SPDX-License-Identifier: Apache-2.0 */
/* Operations worked out by hand, and operations that a plan must refuse. */
#ifndef MUSTER_OP_LITERALS_H
#define MUSTER_OP_LITERALS_H

#include "op_cases.h"

/*
 * Arrays are as long as the case's shapes say. Two outputs get the same gradient and must have the
 * same values.
 */
struct op_literal {
	struct op_case c;
	enum mu_phase phase;
	float in[9], second[4]; /* the inputs */
	float params[2][4], aux[2][2], out_grad[6], labels[3];
	float out[6], in_grad[9], second_grad[4], param_grads[2][4], aux_grads[2][2];
	double loss;
};

struct op_refusal {
	enum mu_op_kind kind;
	const void *attr;
	struct mu_shape in, out;
	int n_params;
	struct mu_shape weight, bias;
	const char *message; /* part of it */
};

extern const struct op_literal op_literals[];
extern const size_t op_n_literals;
extern const struct op_refusal op_refusals[];
extern const size_t op_n_refusals;

#endif
