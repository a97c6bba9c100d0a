/* SPDX-License-Identifier: Apache-2.0 */
/* Layer normalisation: along c, at every position. */
#include "ref.h"

#include <math.h>
#include <string.h>

#include <muster/base.h>

static enum mu_status plan(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_layer_norm *a = op->attr;
	const struct mu_shape channels = {1, {op->inputs[0]->shape.dims[1]}};

	if (!(a->eps > 0))
		MU_FAIL(MU_ERR_ARGUMENT, "%s (layernorm): eps %g; it must be above 0", op->name,
			(double)a->eps);
	if (op->n_params != (a->rms ? 1 : 2))
		MU_FAIL(MU_ERR_ARGUMENT, "%s (layernorm): %d parameters; it has gamma%s", op->name,
			op->n_params, a->rms ? "" : " and beta");
	MU_TRY(mu_ref_need_same_shape(op));
	for (int p = 0; p < op->n_params; p++)
		MU_TRY(mu_ref_need_shape(op, p ? "beta" : "gamma", &op->params[p].shape,
					 &channels));
	op->scratch_nbytes = 2 * channels.dims[0] * sizeof(double);
out:
	return st;
}

/* The elements of a position: at + k * stride, k < n. */
struct position {
	size_t at, stride, n;
	double mean, factor; /* xhat = (x - mean) factor */
};

static struct position position(const struct mu_op *op, size_t i)
{
	const struct mu_layer_norm *a = op->attr;
	const struct mu_shape *shape = &op->inputs[0]->shape;
	const size_t area = mu_shape_positions(shape), n = shape->dims[1];
	struct position p = {.at = i / area * n * area + i % area, .stride = area, .n = n};
	const float *x = op->inputs[0]->data + p.at;
	double square = 0;

	for (size_t k = 0; k < n && !a->rms; k++)
		p.mean += (double)x[k * area] / (double)n;
	for (size_t k = 0; k < n; k++)
		square += pow((double)x[k * area] - p.mean, 2) / (double)n;
	p.factor = 1 / sqrt(square + (double)a->eps);
	return p;
}

static size_t n_positions(const struct mu_op *op)
{
	return op->inputs[0]->shape.dims[0] * mu_shape_positions(&op->inputs[0]->shape);
}

static enum mu_status forward(struct mu_op *op)
{
	const float *gamma = op->params[0].data;
	const float *beta = op->n_params > 1 ? op->params[1].data : NULL;

	for (size_t i = 0; i < n_positions(op); i++) {
		const struct position p = position(op, i);

		for (size_t k = 0; k < p.n; k++) {
			const size_t at = p.at + k * p.stride;
			const double xhat = ((double)op->inputs[0]->data[at] - p.mean) * p.factor;

			op->outputs[0]->data[at] =
				(float)(xhat * (double)gamma[k] + (beta ? (double)beta[k] : 0));
		}
	}
	return MU_OK;
}

/* dx = factor (g - mean of g - xhat mean of (g xhat)), g = dy gamma; rms: without the mean of g. */
static void backward_position(struct mu_op *op, const struct position *p)
{
	const struct mu_layer_norm *a = op->attr;
	double *sums = op->scratch, mean = 0, mixed = 0;

	for (size_t k = 0; k < p->n; k++) {
		const size_t at = p->at + k * p->stride;
		const double dy = (double)op->outputs[0]->grad[at];
		const double xhat = ((double)op->inputs[0]->data[at] - p->mean) * p->factor;
		const double g = dy * (double)op->params[0].data[k];

		sums[k] += dy * xhat;
		sums[p->n + k] += dy;
		mean += a->rms ? 0 : g / (double)p->n;
		mixed += g * xhat / (double)p->n;
	}
	for (size_t k = 0; k < p->n && op->inputs[0]->needs_grad; k++) {
		const size_t at = p->at + k * p->stride;
		const double xhat = ((double)op->inputs[0]->data[at] - p->mean) * p->factor;
		const double g = (double)op->outputs[0]->grad[at] * (double)op->params[0].data[k];

		op->inputs[0]->grad[at] = (float)(p->factor * (g - mean - xhat * mixed));
	}
}

static void backward(struct mu_op *op)
{
	const size_t n = op->inputs[0]->shape.dims[1];
	const double *sums = op->scratch;

	memset(op->scratch, 0, op->scratch_nbytes);
	for (size_t i = 0; i < n_positions(op); i++) {
		const struct position p = position(op, i);

		backward_position(op, &p);
	}
	for (int p = 0; p < op->n_params; p++)
		for (size_t k = 0; k < n; k++)
			op->params[p].grad[k] = (float)sums[(size_t)p * n + k];
}

const struct mu_ref_kind mu_ref_layer_norm = {
	.n_inputs = 1,
	.n_outputs = 1,
	.min_params = 1,
	.max_params = 2,
	.plan = plan,
	.forward = forward,
	.backward = backward,
};
