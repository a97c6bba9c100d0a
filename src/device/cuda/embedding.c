/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a table by number. The gradient of a row is summed over the positions that used it, in
 * their order, so that two runs give the same bits: a block for each position looks at all of
 * them, which is little beside the layers behind it for the 8,192 positions of a GPU's batch, and
 * would be 20 ms for 262,144 (computed).
 */
#include "cuda.h"

#include <math.h>

#include <muster/base.h>

static enum mu_status plan(struct cuda_device *d, struct mu_op *op)
{
	(void)d;
	op->scratch_nbytes = sizeof(int);
	op->can_add = op->phase == MU_PHASE_TRAIN;
	return MU_OK;
}

static enum mu_status zero(struct cuda_device *d, void *p, size_t nbytes)
{
	enum mu_status st = MU_OK;

	CU(d, cuMemsetD8Async, cuda_pointer(p), 0, nbytes, d->work);
out:
	return st;
}

/* Name a number that is out of range. */
static enum mu_status tell_bad(struct cuda_device *d, const struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const int inputs = ((const struct mu_embedding *)op->attr)->inputs;
	const size_t area = mu_shape_positions(&op->inputs[0]->shape), n = op->batch->count * area;
	float *x = NULL;

	MU_TRY(MU_ALLOC(x, n, "numbers to look at"));
	MU_TRY(mu_cuda_copy(d, x, op->inputs[0]->data, n * sizeof *x));
	MU_TRY(mu_cuda_finish(d));
	for (size_t i = 0; i < n; i++)
		if (!(x[i] >= 0 && x[i] < (float)inputs) || x[i] != floorf(x[i]))
			MU_FAIL(MU_ERR_ARGUMENT,
				"%s (embedding): sample %zu, position %zu is %g; it must be a "
				"whole number from 0 to %d",
				op->name, i / area, i % area, (double)x[i], inputs - 1);
out:
	mu_free(x);
	return st;
}

static enum mu_status forward(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_tensor *out = op->outputs[0];
	int bad = 0;
	struct cuda_embed args = {
		.x = op->inputs[0]->data,
		.weight = op->params[0].data,
		.y = out->data,
		.bad = op->scratch,
		.units = out->shape.dims[1],
		.area = mu_shape_positions(&out->shape),
		.count = op->batch->count,
		.inputs = ((const struct mu_embedding *)op->attr)->inputs,
		.n = mu_shape_n(&out->shape),
	};

	MU_TRY(zero(d, args.bad, sizeof *args.bad));
	MU_TRY(mu_cuda_each(d, CUDA_embed, args.n, &args));
	MU_TRY(mu_cuda_copy(d, &bad, args.bad, sizeof bad));
	MU_TRY(mu_cuda_finish(d));
	if (bad)
		MU_TRY(tell_bad(d, op));
out:
	return st;
}

static enum mu_status backward(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_tensor *in = op->inputs[0], *out = op->outputs[0];
	struct cuda_embed_backward args = {
		.x = in->data,
		.dy = out->grad,
		.dw = op->params[0].grad,
		.units = out->shape.dims[1],
		.area = mu_shape_positions(&out->shape),
		.count = op->batch->count,
		.inputs = ((const struct mu_embedding *)op->attr)->inputs,
		.n = out->shape.dims[0] * mu_shape_positions(&out->shape),
	};

	if (!op->adds)
		MU_TRY(zero(d, args.dw, mu_shape_n(&op->params[0].shape) * sizeof *args.dw));
	MU_TRY(mu_cuda_rows(d, CUDA_embed_backward, args.n, &args));
	if (in->needs_grad)
		MU_TRY(zero(d, in->grad, in->nbytes));
out:
	return st;
}

const struct cuda_kind mu_cuda_embedding = {
	.like = &mu_ref_embedding,
	.host_forward = true,
	.plan = plan,
	.forward = forward,
	.backward = backward,
};
