/* SPDX-License-Identifier: Apache-2.0 */
/* Concat along c. */
#include "ref.h"

#include <muster/base.h>

static enum mu_status plan(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	struct mu_shape out = op->inputs[0]->shape;

	for (int i = 1; i < op->n_inputs; i++) {
		struct mu_shape want = op->inputs[0]->shape;

		if (op->inputs[i]->shape.ndims == want.ndims)
			want.dims[1] = op->inputs[i]->shape.dims[1];
		MU_TRY(mu_ref_need_shape(op, "second or later input", &op->inputs[i]->shape,
					 &want));
		out.dims[1] += want.dims[1];
	}
	MU_TRY(mu_ref_need_shape(op, "output", &op->outputs[0]->shape, &out));
out:
	return st;
}

/* Within a sample the channels of the inputs are consecutive. */
static enum mu_status forward(struct mu_op *op)
{
	float *to = op->outputs[0]->data;

	for (size_t s = 0; s < op->outputs[0]->shape.dims[0]; s++)
		for (int i = 0; i < op->n_inputs; i++) {
			size_t n = mu_shape_sample(&op->inputs[i]->shape);

			mu_ref_copy(to, op->inputs[i]->data + s * n, n);
			to += n;
		}
	return MU_OK;
}

static void backward(struct mu_op *op)
{
	const float *from = op->outputs[0]->grad;

	for (size_t s = 0; s < op->outputs[0]->shape.dims[0]; s++)
		for (int i = 0; i < op->n_inputs; i++) {
			size_t n = mu_shape_sample(&op->inputs[i]->shape);

			if (op->inputs[i]->needs_grad)
				mu_ref_copy(op->inputs[i]->grad + s * n, from, n);
			from += n;
		}
}

const struct mu_ref_kind mu_ref_concat = {
	.n_inputs = -2,
	.n_outputs = 1,
	.plan = plan,
	.forward = forward,
	.backward = backward,
};
