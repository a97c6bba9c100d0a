/* SPDX-License-Identifier: Apache-2.0 */
/* Sum of two or more inputs, element by element. */
#include "ref.h"

#include <muster/base.h>

static enum mu_status plan(struct mu_op *op)
{
	enum mu_status st = MU_OK;

	for (int i = 1; i < op->n_inputs; i++)
		MU_TRY(mu_ref_need_shape(op, "second or later input", &op->inputs[i]->shape,
					 &op->inputs[0]->shape));
	MU_TRY(mu_ref_need_same_shape(op));
out:
	return st;
}

static enum mu_status forward(struct mu_op *op)
{
	for (size_t k = 0; k < mu_shape_n(&op->inputs[0]->shape); k++) {
		double sum = 0;

		for (int i = 0; i < op->n_inputs; i++)
			sum += (double)op->inputs[i]->data[k];
		op->outputs[0]->data[k] = (float)sum;
	}
	if (op->fusion.activation)
		mu_ref_activate(op->fusion.activation, op->outputs[0]->data,
				mu_shape_n(&op->outputs[0]->shape));
	return MU_OK;
}

static void backward(struct mu_op *op)
{
	const struct mu_tensor *out = op->outputs[0];
	size_t n = mu_shape_n(&out->shape);

	if (op->fusion.undo)
		mu_ref_activate_backward(op->fusion.undo, out->data, out->grad, out->grad, n);
	for (int i = 0; i < op->n_inputs; i++)
		if (op->inputs[i]->needs_grad && !(op->fusion.shared_grads >> i & 1))
			mu_ref_copy(op->inputs[i]->grad, out->grad, n);
}

const struct mu_ref_kind mu_ref_sum = {
	.n_inputs = -2,
	.n_outputs = 1,
	.in_place = true,
	.plan = plan,
	.forward = forward,
	.backward = backward,
};
