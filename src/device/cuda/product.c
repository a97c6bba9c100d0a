/* SPDX-License-Identifier: Apache-2.0 */
/* Product of two inputs, element by element. */
#include "cuda.h"

#include <muster/base.h>

static struct cuda_product_of product_of(const struct mu_op *op)
{
	return (struct cuda_product_of){
		.a = op->inputs[0]->data,
		.b = op->inputs[1]->data,
		.type = mu_cuda_type(op->outputs[0]),
		.n = mu_shape_n(&op->outputs[0]->shape),
	};
}

static enum mu_status forward(struct cuda_device *d, struct mu_op *op)
{
	struct cuda_product_of args = product_of(op);

	args.y = op->outputs[0]->data;
	return mu_cuda_eights(d, CUDA_product_of, args.n, &args);
}

static enum mu_status backward(struct cuda_device *d, struct mu_op *op)
{
	struct cuda_product_of_backward args = product_of(op);

	args.dy = op->outputs[0]->grad;
	args.da = op->inputs[0]->needs_grad ? op->inputs[0]->grad : NULL;
	args.db = op->inputs[1]->needs_grad ? op->inputs[1]->grad : NULL;
	return mu_cuda_eights(d, CUDA_product_of_backward, args.n, &args);
}

const struct cuda_kind mu_cuda_product = {
	.like = &mu_ref_product,
	.inputs = CUDA_INPUTS_ALIKE,
	.forward = forward,
	.backward = backward,
};
