/* SPDX-License-Identifier: Apache-2.0 */
/* Flatten: a copy. */
#include "cuda.h"

static enum mu_status forward(struct cuda_device *d, struct mu_op *op)
{
	return mu_cuda_copy_like(d, op->outputs[0]->data, op->inputs[0]->data, op->inputs[0]);
}

static enum mu_status backward(struct cuda_device *d, struct mu_op *op)
{
	if (!op->inputs[0]->needs_grad)
		return MU_OK;
	return mu_cuda_copy_like(d, op->inputs[0]->grad, op->outputs[0]->grad, op->inputs[0]);
}

const struct cuda_kind mu_cuda_flatten = {
	.like = &mu_ref_flatten,
	.forward = forward,
	.backward = backward,
};
