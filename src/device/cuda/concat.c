/* SPDX-License-Identifier: Apache-2.0 */
/* Concat: the channels of the inputs are consecutive within a sample, or with channels last within
 * a position. */
#include "cuda.h"

#include <muster/base.h>

/* Arguments from input i to the output, without addresses. */
static struct cuda_copy_rows rows_of(const struct mu_op *op, int i)
{
	const struct mu_tensor *in = op->inputs[i], *out = op->outputs[0];
	const struct cuda_extent e = mu_cuda_extent(in), all = mu_cuda_extent(out);

	return (struct cuda_copy_rows){
		.type = mu_cuda_type(out),
		.row = e.channels * e.area,
		.from_step = e.channels * e.area,
		.to_step = all.channels * all.area,
		.n = mu_shape_n(&in->shape),
	};
}

static char *number(float *data, const struct mu_tensor *t, size_t at)
{
	return (char *)data + at * mu_dtype_bytes((enum mu_dtype)mu_cuda_type(t));
}

static enum mu_status forward(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	size_t at = 0;

	for (int i = 0; i < op->n_inputs; i++) {
		struct cuda_copy_rows args = rows_of(op, i);

		args.from = op->inputs[i]->data;
		args.to = number(op->outputs[0]->data, op->outputs[0], at);
		MU_TRY(mu_cuda_each(d, CUDA_copy_rows, args.n, &args));
		at += args.row;
	}
out:
	return st;
}

static enum mu_status backward(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	size_t at = 0;

	for (int i = 0; i < op->n_inputs; i++) {
		struct cuda_copy_rows args = rows_of(op, i);

		args.from = number(op->outputs[0]->grad, op->outputs[0], at);
		args.to = op->inputs[i]->grad;
		args.from_step = args.to_step;
		args.to_step = args.row;
		if (op->inputs[i]->needs_grad)
			MU_TRY(mu_cuda_each(d, CUDA_copy_rows, args.n, &args));
		at += args.row;
	}
out:
	return st;
}

const struct cuda_kind mu_cuda_concat = {
	.like = &mu_ref_concat,
	.inputs = CUDA_INPUTS_ALIKE,
	.forward = forward,
	.backward = backward,
};
