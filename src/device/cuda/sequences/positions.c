/* SPDX-License-Identifier: Apache-2.0 */
/* Vectors added to the steps of a sequence, and one step of it. */
#include "device/cuda/cuda.h"

#include <muster/base.h>

/* ---- positions ---- */

static size_t first_of(const struct mu_op *op)
{
	return ((const struct mu_positions *)op->attr)->token ? 1 : 0;
}

static enum mu_status plan_positions(struct cuda_device *d, struct mu_op *op)
{
	(void)d;
	op->can_add = op->phase == MU_PHASE_TRAIN;
	return MU_OK;
}

static enum mu_status forward_positions(struct cuda_device *d, struct mu_op *op)
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

static enum mu_status backward_positions(struct cuda_device *d, struct mu_op *op)
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
	.plan = plan_positions,
	.forward = forward_positions,
	.backward = backward_positions,
};

/* ---- one step: the output is plain ---- */

static enum mu_status plan_step(struct cuda_device *d, struct mu_op *op)
{
	(void)d;
	op->outputs[0]->layout = NULL;
	op->outputs[0]->nbytes = mu_cuda_bytes(op->outputs[0]);
	return MU_OK;
}

static enum mu_status forward_step(struct cuda_device *d, struct mu_op *op)
{
	const struct mu_tensor *in = op->inputs[0];
	struct cuda_pick_step args = {
		.x = in->data,
		.y = op->outputs[0]->data,
		.type = mu_cuda_type(in),
		.last = in->layout != NULL,
		.c = in->shape.dims[1],
		.steps = in->shape.dims[2],
		.step = (size_t)((const struct mu_step *)op->attr)->step,
		.n = mu_shape_n(&op->outputs[0]->shape),
	};

	return mu_cuda_each(d, CUDA_pick_step, args.n, &args);
}

static enum mu_status backward_step(struct cuda_device *d, struct mu_op *op)
{
	const struct mu_tensor *in = op->inputs[0];
	struct cuda_pick_step_backward args = {
		.dy = op->outputs[0]->grad,
		.dx = in->grad,
		.type = mu_cuda_type(in),
		.last = in->layout != NULL,
		.c = in->shape.dims[1],
		.steps = in->shape.dims[2],
		.step = (size_t)((const struct mu_step *)op->attr)->step,
		.n = mu_shape_n(&in->shape),
	};

	return in->needs_grad ? mu_cuda_each(d, CUDA_pick_step_backward, args.n, &args) : MU_OK;
}

const struct cuda_kind mu_cuda_step = {
	.like = &mu_ref_step,
	.inputs = CUDA_INPUTS_ALIKE,
	.plan = plan_step,
	.forward = forward_step,
	.backward = backward_step,
};
