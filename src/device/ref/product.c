/* SPDX-License-Identifier: Apache-2.0 */
/* Product of two inputs, element by element. */
#include "ref.h"

#include <muster/base.h>

static enum mu_status plan(struct mu_op *op)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_ref_need_shape(op, "second input", &op->inputs[1]->shape,
				 &op->inputs[0]->shape));
	MU_TRY(mu_ref_need_same_shape(op));
out:
	return st;
}

static enum mu_status forward(struct mu_op *op)
{
	for (size_t k = 0; k < mu_shape_n(&op->outputs[0]->shape); k++)
		op->outputs[0]->data[k] = op->inputs[0]->data[k] * op->inputs[1]->data[k];
	return MU_OK;
}

/* The gradient of each input is that of the output times the other input. */
static void backward(struct mu_op *op)
{
	const float *dy = op->outputs[0]->grad;

	for (int i = 0; i < 2; i++)
		for (size_t k = 0;
		     op->inputs[i]->needs_grad && k < mu_shape_n(&op->outputs[0]->shape); k++)
			op->inputs[i]->grad[k] = dy[k] * op->inputs[1 - i]->data[k];
}

const struct mu_ref_kind mu_ref_product = {
	.n_inputs = 2,
	.n_outputs = 1,
	.plan = plan,
	.forward = forward,
	.backward = backward,
};
