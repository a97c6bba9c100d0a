/* SPDX-License-Identifier: Apache-2.0 */
/* Split: several outputs of the same values. */
#include "ref.h"

#include <muster/base.h>

static enum mu_status plan(struct mu_op *op)
{
	enum mu_status st = MU_OK;

	for (int o = 0; o < op->n_outputs; o++)
		MU_TRY(mu_ref_need_shape(op, "output", &op->outputs[o]->shape,
					 &op->inputs[0]->shape));
out:
	return st;
}

static enum mu_status forward(struct mu_op *op)
{
	for (int o = 0; o < op->n_outputs; o++)
		mu_ref_copy(op->outputs[o]->data, op->inputs[0]->data,
			    mu_shape_n(&op->inputs[0]->shape));
	return MU_OK;
}

static void backward(struct mu_op *op)
{
	if (!op->inputs[0]->needs_grad)
		return;
	for (size_t k = 0; k < mu_shape_n(&op->inputs[0]->shape); k++) {
		double sum = 0;

		for (int o = 0; o < op->n_outputs; o++)
			sum += (double)op->outputs[o]->grad[k];
		op->inputs[0]->grad[k] = (float)sum;
	}
	if (op->fusion.undo)
		mu_ref_activate_backward(op->fusion.undo, op->inputs[0]->data, op->inputs[0]->grad,
					 op->inputs[0]->grad, mu_shape_n(&op->inputs[0]->shape));
}

const struct mu_ref_kind mu_ref_split = {
	.n_inputs = 1,
	.n_outputs = -2,
	.in_place = true,
	.plan = plan,
	.forward = forward,
	.backward = backward,
};
