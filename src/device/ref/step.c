/* SPDX-License-Identifier: Apache-2.0 */
/* One step of a sequence. */
#include "ref.h"

#include <string.h>

#include <muster/base.h>

static enum mu_status plan(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_shape *in = &op->inputs[0]->shape;
	const struct mu_shape out = {2, {in->dims[0], in->dims[1]}};
	const int step = ((const struct mu_step *)op->attr)->step;

	MU_TRY(mu_ref_need_ndims(op, 4, "(n, c, steps, 1)"));
	if (in->dims[3] != 1 || step < 0 || (size_t)step >= in->dims[2])
		MU_FAIL(MU_ERR_ARGUMENT, "%s (step): step %d of %zu x %zu", op->name, step,
			in->dims[2], in->dims[3]);
	MU_TRY(mu_ref_need_shape(op, "output", &op->outputs[0]->shape, &out));
out:
	return st;
}

static enum mu_status forward(struct mu_op *op)
{
	const size_t steps = op->inputs[0]->shape.dims[2];
	const size_t step = (size_t)((const struct mu_step *)op->attr)->step;

	for (size_t i = 0; i < mu_shape_n(&op->outputs[0]->shape); i++)
		op->outputs[0]->data[i] = op->inputs[0]->data[i * steps + step];
	return MU_OK;
}

static void backward(struct mu_op *op)
{
	const size_t steps = op->inputs[0]->shape.dims[2];
	const size_t step = (size_t)((const struct mu_step *)op->attr)->step;

	if (!op->inputs[0]->needs_grad)
		return;
	memset(op->inputs[0]->grad, 0, mu_shape_n(&op->inputs[0]->shape) * sizeof(float));
	for (size_t i = 0; i < mu_shape_n(&op->outputs[0]->shape); i++)
		op->inputs[0]->grad[i * steps + step] = op->outputs[0]->grad[i];
}

const struct mu_ref_kind mu_ref_step = {
	.n_inputs = 1,
	.n_outputs = 1,
	.plan = plan,
	.forward = forward,
	.backward = backward,
};
