/* SPDX-License-Identifier: Apache-2.0 */
/* A learned vector for each step of a sequence, perhaps one step more. */
#include "ref.h"

#include <string.h>

#include <muster/base.h>

static enum mu_status plan(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_positions *a = op->attr;
	const struct mu_shape *in = &op->inputs[0]->shape;
	struct mu_shape out = *in, weight = {2, {0, in->dims[1]}};
	const struct mu_shape token = {1, {in->dims[1]}};

	MU_TRY(mu_ref_need_ndims(op, 4, "(n, c, h, w)"));
	out.dims[2] = in->dims[2] * in->dims[3] + (a->token ? 1 : 0);
	out.dims[3] = 1;
	MU_TRY(mu_ref_need_shape(op, "output", &op->outputs[0]->shape, &out));
	weight.dims[0] = a->most_steps ? (size_t)a->most_steps : out.dims[2];
	if (weight.dims[0] < out.dims[2])
		MU_FAIL(MU_ERR_ARGUMENT, "%s (positions): %zu steps; there are %zu positions",
			op->name, out.dims[2], weight.dims[0]);
	MU_TRY(mu_ref_need_shape(op, "weight", &op->params[0].shape, &weight));
	if (op->n_params != (a->token ? 2 : 1))
		MU_FAIL(MU_ERR_ARGUMENT, "%s (positions): %d parameters", op->name, op->n_params);
	if (a->token)
		MU_TRY(mu_ref_need_shape(op, "token", &op->params[1].shape, &token));
	op->scratch_nbytes = (weight.dims[0] + 1) * in->dims[1] * sizeof(double);
out:
	return st;
}

static enum mu_status forward(struct mu_op *op)
{
	const struct mu_shape *out = &op->outputs[0]->shape;
	const size_t c = out->dims[1], steps = out->dims[2];
	const size_t first = ((const struct mu_positions *)op->attr)->token ? 1 : 0;
	const float *x = op->inputs[0]->data;
	const float *weight = op->params[0].data + (op->past ? op->past->steps * c : 0);

	for (size_t i = 0; i < out->dims[0] * c; i++)
		for (size_t t = 0; t < steps; t++)
			op->outputs[0]->data[i * steps + t] =
				weight[t * c + i % c] +
				(t < first ? op->params[1].data[i % c]
					   : x[i * (steps - first) + t - first]);
	return MU_OK;
}

static void backward(struct mu_op *op)
{
	const struct mu_shape *out = &op->outputs[0]->shape;
	const size_t c = out->dims[1], steps = out->dims[2];
	const size_t first = ((const struct mu_positions *)op->attr)->token ? 1 : 0;
	const size_t n_weight = mu_shape_n(&op->params[0].shape);
	const float *dy = op->outputs[0]->grad;
	double *sums = op->scratch, *token = sums + n_weight;

	memset(sums, 0, op->scratch_nbytes);
	for (size_t i = 0; i < out->dims[0] * c; i++)
		for (size_t t = 0; t < steps; t++) {
			sums[t * c + i % c] += (double)dy[i * steps + t];
			if (t < first)
				token[i % c] += (double)dy[i * steps + t];
			else if (op->inputs[0]->needs_grad)
				op->inputs[0]->grad[i * (steps - first) + t - first] =
					dy[i * steps + t];
		}
	for (size_t k = 0; k < n_weight; k++)
		op->params[0].grad[k] = (float)sums[k];
	for (size_t k = 0; k < c && first > 0; k++)
		op->params[1].grad[k] = (float)token[k];
}

const struct mu_ref_kind mu_ref_positions = {
	.n_inputs = 1,
	.n_outputs = 1,
	.min_params = 1,
	.max_params = 2,
	.plan = plan,
	.forward = forward,
	.backward = backward,
};
