/* SPDX-License-Identifier: Apache-2.0 */
/* Pad and crop: each output is an element of the input, or the value. Backward is the same the
 * other way round, with zeros. */
#include "cuda.h"

#include <muster/base.h>

enum { EIGHT = 8 };

static struct cuda_pad pad(const struct mu_op *op, const struct mu_tensor *from,
			   const struct mu_tensor *to)
{
	const struct mu_pad *a = op->attr;
	const size_t channels = to->shape.dims[1];
	const int first = MU_MAX_DIMS - to->shape.ndims;
	struct cuda_pad args = {
		.type = mu_cuda_type(to),
		.width = mu_cuda_in_groups(to) ? EIGHT : 1,
		.inner = to->layout ? (uint32_t)channels : 1,
	};

	args.inner /= (uint32_t)args.width;
	args.n = mu_shape_n(&to->shape) / (size_t)args.width;
	mu_cuda_space(&from->shape, args.in);
	mu_cuda_space(&to->shape, args.out);
	for (int i = first; i < CUDA_SPACE; i++)
		args.before[i] = a->before[i - first];
	return args;
}

static enum mu_status forward(struct cuda_device *d, struct mu_op *op)
{
	struct cuda_pad args = pad(op, op->inputs[0], op->outputs[0]);

	args.x = op->inputs[0]->data;
	args.y = op->outputs[0]->data;
	args.value = ((const struct mu_pad *)op->attr)->value;
	return mu_cuda_each(d, CUDA_pad, args.n, &args);
}

static enum mu_status backward(struct cuda_device *d, struct mu_op *op)
{
	struct cuda_pad args = pad(op, op->outputs[0], op->inputs[0]);

	args.x = op->outputs[0]->grad;
	args.y = op->inputs[0]->grad;
	for (int i = 0; i < CUDA_SPACE; i++)
		args.before[i] = -args.before[i];
	return op->inputs[0]->needs_grad ? mu_cuda_each(d, CUDA_pad, args.n, &args) : MU_OK;
}

const struct cuda_kind mu_cuda_pad = {
	.like = &mu_ref_pad,
	.inputs = CUDA_INPUTS_ALIKE,
	.plan = mu_cuda_check_sizes,
	.forward = forward,
	.backward = backward,
};
