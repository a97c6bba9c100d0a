/* SPDX-License-Identifier: Apache-2.0 */
/* Layer normalisation, smooth activations, positions and steps; attention is in attention.c. */
#include "ref.h"

#include <math.h>
#include <string.h>

#include <muster/base.h>

/* ---- layer normalisation ---- */

static enum mu_status plan_norm(struct mu_op *op)
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
	MU_TRY(mu_ref_need_shape(op, "output", &op->outputs[0]->shape, &op->inputs[0]->shape));
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
	const size_t area = mu_ref_area(shape), n = shape->dims[1];
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
	return op->inputs[0]->shape.dims[0] * mu_ref_area(&op->inputs[0]->shape);
}

static enum mu_status forward_norm(struct mu_op *op)
{
	const float *gamma = op->params[0].data;
	const float *beta = op->n_params > 1 ? op->params[1].data : NULL;

	for (size_t i = 0; i < n_positions(op); i++) {
		const struct position p = position(op, i);

		for (size_t k = 0; k < p.n; k++) {
			const size_t at = p.at + k * p.stride;
			const double xhat = ((double)op->inputs[0]->data[at] - p.mean) * p.factor;

			op->outputs[0]->data[at] = (float)(xhat * (double)gamma[k] +
							   (beta ? (double)beta[k] : 0));
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
		const double g =
			(double)op->outputs[0]->grad[at] * (double)op->params[0].data[k];

		op->inputs[0]->grad[at] = (float)(p->factor * (g - mean - xhat * mixed));
	}
}

static void backward_norm(struct mu_op *op)
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
	.plan = plan_norm,
	.forward = forward_norm,
	.backward = backward_norm,
};

/* ---- smooth activations ---- */

static const double root_2_pi = 0.79788456080286535588; /* sqrt(2 / pi) */

static double smooth(enum mu_activation_kind kind, double x)
{
	switch (kind) {
	case MU_ACTIVATION_GELU: return x / 2 * (1 + erf(x / sqrt(2)));
	case MU_ACTIVATION_GELU_TANH:
		return x / 2 * (1 + tanh(root_2_pi * (x + 0.044715 * x * x * x)));
	default: return x / (1 + exp(-x));
	}
}

static double smooth_slope(enum mu_activation_kind kind, double x)
{
	const double t = tanh(root_2_pi * (x + 0.044715 * x * x * x));
	const double s = 1 / (1 + exp(-x));

	switch (kind) {
	case MU_ACTIVATION_GELU:
		return (1 + erf(x / sqrt(2))) / 2 + x * root_2_pi / 2 * exp(-x * x / 2);
	case MU_ACTIVATION_GELU_TANH:
		return (1 + t) / 2 +
		       x / 2 * (1 - t * t) * root_2_pi * (1 + 3 * 0.044715 * x * x);
	default: return s * (1 + x * (1 - s));
	}
}

static enum mu_status plan_smooth(struct mu_op *op)
{
	enum mu_status st = MU_OK;

	if (!mu_activation_is_smooth(((const struct mu_activation *)op->attr)->kind))
		MU_FAIL(MU_ERR_ARGUMENT, "%s (smooth): only GELU and SiLU are", op->name);
	MU_TRY(mu_ref_need_shape(op, "output", &op->outputs[0]->shape, &op->inputs[0]->shape));
out:
	return st;
}

static enum mu_status forward_smooth(struct mu_op *op)
{
	const struct mu_activation *a = op->attr;

	for (size_t k = 0; k < mu_shape_n(&op->inputs[0]->shape); k++)
		op->outputs[0]->data[k] = (float)smooth(a->kind, (double)op->inputs[0]->data[k]);
	return MU_OK;
}

static void backward_smooth(struct mu_op *op)
{
	const struct mu_activation *a = op->attr;

	if (!op->inputs[0]->needs_grad)
		return;
	for (size_t k = 0; k < mu_shape_n(&op->inputs[0]->shape); k++)
		op->inputs[0]->grad[k] =
			(float)((double)op->outputs[0]->grad[k] *
				smooth_slope(a->kind, (double)op->inputs[0]->data[k]));
}

const struct mu_ref_kind mu_ref_smooth = {
	.n_inputs = 1,
	.n_outputs = 1,
	.plan = plan_smooth,
	.forward = forward_smooth,
	.backward = backward_smooth,
};

/* ---- positions ---- */

static enum mu_status plan_positions(struct mu_op *op)
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

static enum mu_status forward_positions(struct mu_op *op)
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

static void backward_positions(struct mu_op *op)
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
	.plan = plan_positions,
	.forward = forward_positions,
	.backward = backward_positions,
};

/* ---- a step ---- */

static enum mu_status plan_step(struct mu_op *op)
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

static enum mu_status forward_step(struct mu_op *op)
{
	const size_t steps = op->inputs[0]->shape.dims[2];
	const size_t step = (size_t)((const struct mu_step *)op->attr)->step;

	for (size_t i = 0; i < mu_shape_n(&op->outputs[0]->shape); i++)
		op->outputs[0]->data[i] = op->inputs[0]->data[i * steps + step];
	return MU_OK;
}

static void backward_step(struct mu_op *op)
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
	.plan = plan_step,
	.forward = forward_step,
	.backward = backward_step,
};
