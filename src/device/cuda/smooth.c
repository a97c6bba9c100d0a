/* SPDX-License-Identifier: Apache-2.0 */
/* Smooth activations: their numbers are those of enum mu_activation_kind. */
#include "cuda.h"

#include <muster/base.h>

static struct cuda_smooth smooth_of(const struct mu_op *op)
{
	const struct mu_activation *a = op->attr;

	return (struct cuda_smooth){
		.x = op->inputs[0]->data,
		.type = mu_cuda_type(op->outputs[0]),
		.kind = (int)a->kind,
		.parameter = a->parameter,
		.n = mu_shape_n(&op->outputs[0]->shape),
	};
}

static enum mu_status forward(struct cuda_device *d, struct mu_op *op)
{
	struct cuda_smooth args = smooth_of(op);

	args.y = op->outputs[0]->data;
	return mu_cuda_eights(d, CUDA_smooth, args.n, &args);
}

static enum mu_status backward(struct cuda_device *d, struct mu_op *op)
{
	struct cuda_smooth args = smooth_of(op);

	args.dy = op->outputs[0]->grad;
	args.y = op->inputs[0]->grad;
	return op->inputs[0]->needs_grad ? mu_cuda_eights(d, CUDA_smooth_backward, args.n, &args)
					 : MU_OK;
}

const struct cuda_kind mu_cuda_smooth = {
	.like = &mu_ref_smooth,
	.inputs = CUDA_INPUTS_ALIKE,
	.forward = forward,
	.backward = backward,
};
