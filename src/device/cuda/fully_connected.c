/* SPDX-License-Identifier: Apache-2.0 */
/* Fully connected layer: y = x W' + b. */
#include "cuda.h"

#include <muster/base.h>

static enum mu_status plan(struct cuda_device *d, struct mu_op *op)
{
	if (op->phase == MU_PHASE_TRAIN && op->n_params > 1)
		op->scratch_nbytes = mu_cuda_sums_bytes(d, op->outputs[0]);
	return MU_OK;
}

/* y = x W' + b */
static enum mu_status forward(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_tensor *in = op->inputs[0], *out = op->outputs[0];
	const struct cuda_product product = {
		.a = in->data,
		.b = op->params[0].data,
		.transpose_b = true,
		.c = out->data,
		.rows = in->shape.dims[0],
		.columns = out->shape.dims[1],
		.inner = mu_shape_sample(&in->shape),
	};

	MU_TRY(mu_cuda_multiply(d, &product));
	MU_TRY(mu_cuda_add_bias(d, op));
out:
	return st;
}

/* dW = dy' x, db = the sum of dy's rows, dx = dy W */
static enum mu_status backward(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_tensor *in = op->inputs[0], *out = op->outputs[0];
	const size_t n = in->shape.dims[0], features = mu_shape_sample(&in->shape);
	const size_t units = out->shape.dims[1];
	const struct cuda_product weight = {
		.a = out->grad,
		.transpose_a = true,
		.b = in->data,
		.c = op->params[0].grad,
		.rows = units,
		.columns = features,
		.inner = n,
	};
	const struct cuda_product data = {
		.a = out->grad,
		.b = op->params[0].data,
		.c = in->grad,
		.rows = n,
		.columns = features,
		.inner = units,
	};

	MU_TRY(mu_cuda_undo_activation(d, op));
	MU_TRY(mu_cuda_multiply(d, &weight));
	MU_TRY(mu_cuda_bias_gradient(d, op, op->scratch));
	if (in->needs_grad)
		MU_TRY(mu_cuda_multiply(d, &data));
out:
	return st;
}

const struct cuda_kind mu_cuda_fully_connected = {
	.like = &mu_ref_fully_connected,
	.plan = plan,
	.forward = forward,
	.backward = backward,
};
