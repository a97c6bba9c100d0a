/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout: the mask is kept for backward; ids of samples come from the host. */
#include "cuda.h"

#include <muster/base.h>

enum { ELEMENT_BITS = 24 }; /* of random numbers: op->index << 24 | element */

static enum mu_status plan(struct cuda_device *d, struct mu_op *op)
{
	(void)d;
	if (op->phase != MU_PHASE_TRAIN)
		return MU_OK;
	op->workspace_nbytes = mu_shape_n(&op->inputs[0]->shape) * sizeof(float);
	op->scratch_nbytes = op->inputs[0]->shape.dims[0] * sizeof(uint32_t);
	return MU_OK;
}

static enum mu_status forward(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_tensor *in = op->inputs[0];
	const struct mu_batch *b = op->batch;
	struct cuda_dropout args = {
		.x = in->data,
		.y = op->outputs[0]->data,
		.mask = op->workspace,
		.type = mu_cuda_type(in),
		.last = in->layout != NULL,
		.channels = in->shape.dims[1],
		.area = mu_shape_positions(&in->shape),
		.ids = b->device_draws ? b->device_draws + 1
		       : b->ids        ? op->scratch
				       : NULL,
		.epochs = b->device_draws,
		.seed = b->seed,
		.first = (uint64_t)op->index << ELEMENT_BITS,
		.from = op->block * mu_shape_sample(&in->shape),
		.epoch = b->epoch,
		.purpose = MU_RANDOM_DROPOUT,
		.p = ((const struct mu_dropout *)op->attr)->p,
		.n = mu_shape_n(&in->shape),
	};

	if (op->phase != MU_PHASE_TRAIN)
		return mu_cuda_copy_like(d, args.y, in->data, in);
	/* Rows from count on have undefined ids; their draws are not used. */
	if (b->ids && !b->device_draws)
		MU_TRY(mu_cuda_copy(d, op->scratch, b->ids, b->count * sizeof *b->ids));
	MU_TRY(mu_cuda_each(d, CUDA_dropout, args.n, &args));
out:
	return st;
}

/* By the mask: the batch's epoch and ids may be the next one's by now. */
static enum mu_status restore(struct cuda_device *d, struct mu_op *op)
{
	struct cuda_multiply args = {
		.x = op->inputs[0]->data,
		.factor = op->workspace,
		.y = op->outputs[0]->data,
		.type = mu_cuda_type(op->inputs[0]),
		.n = mu_shape_n(&op->inputs[0]->shape),
	};

	return mu_cuda_eights(d, CUDA_multiply, args.n, &args);
}

static enum mu_status backward(struct cuda_device *d, struct mu_op *op)
{
	struct cuda_multiply args = {
		.x = op->outputs[0]->grad,
		.factor = op->workspace,
		.y = op->inputs[0]->grad,
		.type = mu_cuda_type(op->inputs[0]),
		.n = mu_shape_n(&op->inputs[0]->shape),
	};

	return op->inputs[0]->needs_grad ? mu_cuda_eights(d, CUDA_multiply, args.n, &args) : MU_OK;
}

const struct cuda_kind mu_cuda_dropout = {
	.like = &mu_ref_dropout,
	.inputs = CUDA_INPUTS_ALIKE,
	.plan = plan,
	.forward = forward,
	.restore = restore,
	.backward = backward,
};
