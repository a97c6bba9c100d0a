/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that move or add whole tensors: flatten, sum, concat, split. */
#include "ref.h"

#include <string.h>

#include <muster/base.h>

/* In place both are the same memory, and nothing is copied. */
static void copy(float *to, const float *from, size_t n)
{
	if (to != from)
		memcpy(to, from, n * sizeof *to);
}

/* ---- flatten ---- */

static enum mu_status plan_flatten(struct mu_op *op)
{
	const struct mu_shape *in = &op->inputs[0]->shape;
	struct mu_shape out = {2, {in->dims[0], mu_ref_features(in)}};

	return mu_ref_need_shape(op, "output", &op->outputs[0]->shape, &out);
}

static enum mu_status forward_flatten(struct mu_op *op)
{
	copy(op->outputs[0]->data, op->inputs[0]->data, mu_shape_n(&op->inputs[0]->shape));
	return MU_OK;
}

static void backward_flatten(struct mu_op *op)
{
	if (op->inputs[0]->needs_grad)
		copy(op->inputs[0]->grad, op->outputs[0]->grad, mu_shape_n(&op->inputs[0]->shape));
}

const struct mu_ref_kind mu_ref_flatten = {
	.n_inputs = 1,
	.n_outputs = 1,
	.in_place = true,
	.plan = plan_flatten,
	.forward = forward_flatten,
	.backward = backward_flatten,
};

/* ---- sum ---- */

static enum mu_status plan_sum(struct mu_op *op)
{
	enum mu_status st = MU_OK;

	for (int i = 1; i < op->n_inputs; i++)
		MU_TRY(mu_ref_need_shape(op, "second or later input", &op->inputs[i]->shape,
					 &op->inputs[0]->shape));
	MU_TRY(mu_ref_need_shape(op, "output", &op->outputs[0]->shape, &op->inputs[0]->shape));
out:
	return st;
}

static enum mu_status forward_sum(struct mu_op *op)
{
	for (size_t k = 0; k < mu_shape_n(&op->inputs[0]->shape); k++) {
		double sum = 0;

		for (int i = 0; i < op->n_inputs; i++)
			sum += (double)op->inputs[i]->data[k];
		op->outputs[0]->data[k] = (float)sum;
	}
	if (op->fusion.activation)
		mu_ref_activate(op->fusion.activation, op->outputs[0]->data,
				mu_shape_n(&op->outputs[0]->shape));
	return MU_OK;
}

static void backward_sum(struct mu_op *op)
{
	const struct mu_tensor *out = op->outputs[0];
	size_t n = mu_shape_n(&out->shape);

	if (op->fusion.undo)
		mu_ref_activate_backward(op->fusion.undo, out->data, out->grad, out->grad, n);
	for (int i = 0; i < op->n_inputs; i++)
		if (op->inputs[i]->needs_grad && !(op->fusion.shared_grads >> i & 1))
			copy(op->inputs[i]->grad, out->grad, n);
}

const struct mu_ref_kind mu_ref_sum = {
	.n_inputs = -2,
	.n_outputs = 1,
	.in_place = true,
	.plan = plan_sum,
	.forward = forward_sum,
	.backward = backward_sum,
};

/* ---- concat ---- */

static enum mu_status plan_concat(struct mu_op *op)
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
static enum mu_status forward_concat(struct mu_op *op)
{
	float *to = op->outputs[0]->data;

	for (size_t s = 0; s < op->outputs[0]->shape.dims[0]; s++)
		for (int i = 0; i < op->n_inputs; i++) {
			size_t n = mu_ref_features(&op->inputs[i]->shape);

			copy(to, op->inputs[i]->data + s * n, n);
			to += n;
		}
	return MU_OK;
}

static void backward_concat(struct mu_op *op)
{
	const float *from = op->outputs[0]->grad;

	for (size_t s = 0; s < op->outputs[0]->shape.dims[0]; s++)
		for (int i = 0; i < op->n_inputs; i++) {
			size_t n = mu_ref_features(&op->inputs[i]->shape);

			if (op->inputs[i]->needs_grad)
				copy(op->inputs[i]->grad + s * n, from, n);
			from += n;
		}
}

const struct mu_ref_kind mu_ref_concat = {
	.n_inputs = -2,
	.n_outputs = 1,
	.plan = plan_concat,
	.forward = forward_concat,
	.backward = backward_concat,
};

/* ---- split ---- */

static enum mu_status plan_split(struct mu_op *op)
{
	enum mu_status st = MU_OK;

	for (int o = 0; o < op->n_outputs; o++)
		MU_TRY(mu_ref_need_shape(op, "output", &op->outputs[o]->shape,
					 &op->inputs[0]->shape));
out:
	return st;
}

static enum mu_status forward_split(struct mu_op *op)
{
	for (int o = 0; o < op->n_outputs; o++)
		copy(op->outputs[o]->data, op->inputs[0]->data, mu_shape_n(&op->inputs[0]->shape));
	return MU_OK;
}

static void backward_split(struct mu_op *op)
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
	.plan = plan_split,
	.forward = forward_split,
	.backward = backward_split,
};
