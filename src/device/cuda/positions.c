/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors added to the steps of a sequence. */
#include "cuda.h"

#include <muster/base.h>

static size_t first_of(const struct mu_op *op)
{
	return ((const struct mu_positions *)op->attr)->token ? 1 : 0;
}

static enum mu_status plan(struct cuda_device *d, struct mu_op *op)
{
	(void)d;
	op->can_add = op->phase == MU_PHASE_TRAIN;
	return MU_OK;
}

static enum mu_status forward(struct cuda_device *d, struct mu_op *op)
{
	const struct mu_tensor *out = op->outputs[0];
	struct cuda_positions args = {
		.x = op->inputs[0]->data,
		.weight = op->params[0].data,
		.token = op->n_params > 1 ? op->params[1].data : NULL,
		.y = out->data,
		.type = mu_cuda_type(out),
		.last = out->layout != NULL,
		.c = out->shape.dims[1],
		.steps = out->shape.dims[2],
		.first = first_of(op),
		.n = mu_shape_n(&out->shape),
	};

	return mu_cuda_each(d, CUDA_positions, args.n, &args);
}

/* The gradient of x: the output's, without its first step where that is the token. */
static enum mu_status backward_input(struct cuda_device *d, const struct mu_op *op)
{
	const struct mu_tensor *in = op->inputs[0], *out = op->outputs[0];
	const size_t of_step = out->layout ? out->shape.dims[1] : 1;
	const size_t nbytes = mu_dtype_bytes((enum mu_dtype)mu_cuda_type(out));
	struct cuda_copy_rows args = {
		.from = (const char *)out->grad + of_step * nbytes,
		.to = in->grad,
		.type = mu_cuda_type(out),
		.row = (out->shape.dims[2] - 1) * of_step,
		.from_step = out->shape.dims[2] * of_step,
		.to_step = (out->shape.dims[2] - 1) * of_step,
		.n = mu_shape_n(&in->shape),
	};

	if (first_of(op) == 0)
		return mu_cuda_copy(d, in->grad, out->grad, mu_cuda_bytes(in));
	return mu_cuda_each(d, CUDA_copy_rows, args.n, &args);
}

static enum mu_status backward(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_tensor *out = op->outputs[0];
	struct cuda_positions_backward args = {
		.dy = out->grad,
		.weight = op->params[0].grad,
		.token = op->n_params > 1 ? op->params[1].grad : NULL,
		.type = mu_cuda_type(out),
		.last = out->layout != NULL,
		.adds = op->adds,
		.samples = out->shape.dims[0],
		.c = out->shape.dims[1],
		.steps = out->shape.dims[2],
		.most = op->params[0].shape.dims[0],
	};

	args.n = (args.most + first_of(op)) * args.c;
	MU_TRY(mu_cuda_each(d, CUDA_positions_backward, args.n, &args));
	if (op->inputs[0]->needs_grad)
		MU_TRY(backward_input(d, op));
out:
	return st;
}

const struct cuda_kind mu_cuda_positions = {
	.like = &mu_ref_positions,
	.inputs = CUDA_INPUTS_OF_DTYPE,
	.plan = plan,
	.forward = forward,
	.backward = backward,
};
