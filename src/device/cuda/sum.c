/* SPDX-License-Identifier: Apache-2.0 */
/* Sum of two or more inputs, element by element. */
#include "cuda.h"

#include <muster/base.h>

static enum mu_status forward(struct cuda_device *d, struct mu_op *op)
{
	struct cuda_add args = {
		.y = op->outputs[0]->data,
		.type = mu_cuda_type(op->outputs[0]),
		.kind = mu_cuda_activation_code(op->fusion.activation),
		.n = mu_shape_n(&op->outputs[0]->shape),
	};

	return mu_cuda_add_all(d, op->inputs, op->n_inputs, false, &args);
}

static enum mu_status backward(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_tensor *out = op->outputs[0];

	MU_TRY(mu_cuda_undo_activation(d, op));
	for (int i = 0; i < op->n_inputs; i++)
		if (op->inputs[i]->needs_grad && !(op->fusion.shared_grads >> i & 1))
			MU_TRY(mu_cuda_copy_like(d, op->inputs[i]->grad, out->grad, out));
out:
	return st;
}

const struct cuda_kind mu_cuda_sum = {
	.like = &mu_ref_sum,
	.inputs = CUDA_INPUTS_ALIKE,
	.forward = forward,
	.backward = backward,
};
