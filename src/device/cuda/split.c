/* SPDX-License-Identifier: Apache-2.0 */
/* Split: several outputs of the same values. */
#include "cuda.h"

#include <muster/base.h>

static enum mu_status forward(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;

	for (int o = 0; o < op->n_outputs; o++)
		MU_TRY(mu_cuda_copy_like(d, op->outputs[o]->data, op->inputs[0]->data,
					 op->inputs[0]));
out:
	return st;
}

static enum mu_status backward(struct cuda_device *d, struct mu_op *op)
{
	const struct mu_tensor *in = op->inputs[0];
	struct cuda_add args = {
		.of = op->fusion.undo ? in->data : NULL,
		.y = in->grad,
		.type = mu_cuda_type(in),
		.kind = mu_cuda_activation_code(op->fusion.undo),
		.n = mu_shape_n(&in->shape),
	};

	if (!in->needs_grad || op->fusion.joined)
		return MU_OK;
	return mu_cuda_add_all(d, op->outputs, op->n_outputs, true, &args);
}

const struct cuda_kind mu_cuda_split = {
	.like = &mu_ref_split,
	.inputs = CUDA_INPUTS_ALIKE,
	.forward = forward,
	.backward = backward,
};
