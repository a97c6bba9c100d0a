/* SPDX-License-Identifier: Apache-2.0 */
/* Upsampling, with the formulas of ref/upsampling.c. Backward gathers, so that sums have one order.
 */
#include "cuda.h"

#include <muster/base.h>

static struct cuda_upsample upsample(const struct mu_op *op, const struct mu_tensor *to)
{
	const struct mu_upsampling *a = op->attr;
	const struct mu_shape *shape = &to->shape;
	struct cuda_upsample args = {
		.type = mu_cuda_type(to),
		.last = to->layout != NULL,
		.linear = a->linear,
		.corners = a->align_corners,
		.channels = shape->dims[1],
	};

	mu_cuda_space(&op->inputs[0]->shape, args.in);
	mu_cuda_space(&op->outputs[0]->shape, args.out);
	args.n = shape->dims[0] * mu_cuda_eights_of(shape->dims[1]) * mu_shape_positions(shape);
	return args;
}

static enum mu_status forward(struct cuda_device *d, struct mu_op *op)
{
	struct cuda_upsample args = upsample(op, op->outputs[0]);

	args.x = op->inputs[0]->data;
	args.y = op->outputs[0]->data;
	return mu_cuda_each(d, CUDA_upsample, args.n, &args);
}

static enum mu_status backward(struct cuda_device *d, struct mu_op *op)
{
	struct cuda_upsample_backward args = upsample(op, op->inputs[0]);

	args.x = op->outputs[0]->grad;
	args.y = op->inputs[0]->grad;
	return op->inputs[0]->needs_grad ? mu_cuda_each(d, CUDA_upsample_backward, args.n, &args)
					 : MU_OK;
}

const struct cuda_kind mu_cuda_upsampling = {
	.like = &mu_ref_upsampling,
	.inputs = CUDA_INPUTS_ALIKE,
	.plan = mu_cuda_check_sizes,
	.forward = forward,
	.backward = backward,
};
