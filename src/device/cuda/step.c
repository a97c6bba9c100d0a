/* SPDX-License-Identifier: Apache-2.0 */
/* One step of a sequence; the output is plain. */
#include "cuda.h"

#include <muster/base.h>

static enum mu_status plan(struct cuda_device *d, struct mu_op *op)
{
	(void)d;
	op->outputs[0]->layout = NULL;
	op->outputs[0]->nbytes = mu_cuda_bytes(op->outputs[0]);
	return MU_OK;
}

static enum mu_status forward(struct cuda_device *d, struct mu_op *op)
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

static enum mu_status backward(struct cuda_device *d, struct mu_op *op)
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
	.plan = plan,
	.forward = forward,
	.backward = backward,
};
