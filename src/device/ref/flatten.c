/* SPDX-License-Identifier: Apache-2.0 */
/* Flatten: the same values as (n, c * h * w), or as the shape of the attribute. */
#include "ref.h"

#include <muster/base.h>

static enum mu_status plan(struct mu_op *op)
{
	const struct mu_shape *in = &op->inputs[0]->shape, *to = op->attr;
	struct mu_shape out = {2, {in->dims[0], mu_shape_sample(in)}};

	if (to && to->ndims > 0 && mu_shape_sample(to) == mu_shape_sample(in)) {
		out = *to;
		out.dims[0] = in->dims[0];
	}

	return mu_ref_need_shape(op, "output", &op->outputs[0]->shape, &out);
}

static enum mu_status forward(struct mu_op *op)
{
	mu_ref_copy(op->outputs[0]->data, op->inputs[0]->data, mu_shape_n(&op->inputs[0]->shape));
	return MU_OK;
}

static void backward(struct mu_op *op)
{
	if (op->inputs[0]->needs_grad)
		mu_ref_copy(op->inputs[0]->grad, op->outputs[0]->grad,
			    mu_shape_n(&op->inputs[0]->shape));
}

const struct mu_ref_kind mu_ref_flatten = {
	.n_inputs = 1,
	.n_outputs = 1,
	.in_place = true,
	.plan = plan,
	.forward = forward,
	.backward = backward,
};
