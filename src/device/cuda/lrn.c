/* SPDX-License-Identifier: Apache-2.0 */
/* LRN: formulas in ref/lrn.c. The workspace keeps the base of the power. */
#include "cuda.h"

#include <muster/base.h>

static enum mu_status plan(struct cuda_device *d, struct mu_op *op)
{
	(void)d;
	if (op->phase == MU_PHASE_TRAIN)
		op->workspace_nbytes = mu_shape_n(&op->inputs[0]->shape) * sizeof(float);
	return MU_OK;
}

static enum mu_status forward(struct cuda_device *d, struct mu_op *op)
{
	const struct mu_lrn *a = op->attr;
	const struct mu_tensor *in = op->inputs[0];
	struct cuda_lrn args = {
		.x = in->data,
		.y = op->outputs[0]->data,
		.scale = op->workspace_nbytes > 0 ? op->workspace : NULL,
		.channels = in->shape.dims[1],
		.area = mu_shape_positions(&in->shape),
		.size = a->size,
		.alpha = a->alpha,
		.beta = a->beta,
		.k = a->k,
		.n = mu_shape_n(&in->shape),
	};

	return mu_cuda_each(d, CUDA_lrn, args.n, &args);
}

static enum mu_status backward(struct cuda_device *d, struct mu_op *op)
{
	const struct mu_lrn *a = op->attr;
	const struct mu_tensor *in = op->inputs[0];
	struct cuda_lrn_backward args = {
		.x = in->data,
		.scale = op->workspace,
		.dy = op->outputs[0]->grad,
		.dx = in->grad,
		.channels = in->shape.dims[1],
		.area = mu_shape_positions(&in->shape),
		.size = a->size,
		.alpha = a->alpha,
		.beta = a->beta,
		.n = mu_shape_n(&in->shape),
	};

	return in->needs_grad ? mu_cuda_each(d, CUDA_lrn_backward, args.n, &args) : MU_OK;
}

const struct cuda_kind mu_cuda_lrn = {
	.like = &mu_ref_lrn,
	.plan = plan,
	.forward = forward,
	.backward = backward,
};
