/* SPDX-License-Identifier: Apache-2.0 */
/* Activation, from its output's value. */
#include "cuda.h"

#include <muster/base.h>

static enum mu_status forward(struct cuda_device *d, struct mu_op *op)
{
	struct cuda_activate args = {
		.x = op->inputs[0]->data,
		.y = op->outputs[0]->data,
		.type = mu_cuda_type(op->outputs[0]),
		.kind = mu_cuda_activation_code(op->attr),
		.n = mu_shape_n(&op->outputs[0]->shape),
	};

	return mu_cuda_eights(d, CUDA_activate, args.n, &args);
}

static enum mu_status backward(struct cuda_device *d, struct mu_op *op)
{
	struct cuda_activate_backward args = {
		.y = op->outputs[0]->data,
		.dy = op->outputs[0]->grad,
		.dx = op->inputs[0]->grad,
		.type = mu_cuda_type(op->outputs[0]),
		.kind = mu_cuda_activation_code(op->attr),
		.n = mu_shape_n(&op->outputs[0]->shape),
	};

	return op->inputs[0]->needs_grad ? mu_cuda_eights(d, CUDA_activate_backward, args.n, &args)
					 : MU_OK;
}

const struct cuda_kind mu_cuda_activation = {
	.like = &mu_ref_activation,
	.inputs = CUDA_INPUTS_ALIKE,
	.forward = forward,
	.backward = backward,
};
