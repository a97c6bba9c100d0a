/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Group normalisation. Over the m values of a sample's group of channels, with mean and biased
 * variance, xhat = (x - mean) factor, factor = 1 / sqrt(var + eps), y = xhat gamma + beta; and with
 * g = dy gamma: dx = factor (g - mean of g - xhat mean of (g xhat)).
 */
#include "ref.h"

#include <math.h>

#include <muster/base.h>

/* The values of a group lie together, `area` of each channel. */
struct group {
	size_t at, n, area, channel; /* channel: its first */
	double mean, factor;
};

static size_t groups_of(const struct mu_op *op)
{
	const struct mu_group_norm *a = op->attr;

	return a->groups ? (size_t)a->groups : op->inputs[0]->shape.dims[1];
}

/* Number i of all samples' groups. */
static struct group group_of(const struct mu_op *op, size_t i)
{
	const struct mu_group_norm *a = op->attr;
	const struct mu_shape *shape = &op->inputs[0]->shape;
	const size_t channels = shape->dims[1] / groups_of(op);
	struct group g = {.area = mu_shape_positions(shape)};
	double square = 0;

	g.n = channels * g.area;
	g.at = i * g.n;
	g.channel = i % groups_of(op) * channels;
	for (size_t k = 0; k < g.n; k++)
		g.mean += (double)op->inputs[0]->data[g.at + k] / (double)g.n;
	for (size_t k = 0; k < g.n; k++)
		square += pow((double)op->inputs[0]->data[g.at + k] - g.mean, 2) / (double)g.n;
	g.factor = 1 / sqrt(square + (double)a->eps);
	return g;
}

static double xhat(const struct mu_op *op, const struct group *g, size_t k)
{
	return ((double)op->inputs[0]->data[g->at + k] - g->mean) * g->factor;
}

static enum mu_status plan(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_group_norm *a = op->attr;
	const struct mu_shape vector = {1, {op->inputs[0]->shape.dims[1]}};

	if (!(a->eps > 0) || a->groups < 0 || vector.dims[0] % groups_of(op) != 0)
		MU_FAIL(MU_ERR_ARGUMENT,
			"%s (groupnorm): eps %g, %d groups of %zu channels; eps must be above 0, "
			"and groups divide channels",
			op->name, (double)a->eps, a->groups, vector.dims[0]);
	MU_TRY(mu_ref_need_same_shape(op));
	MU_TRY(mu_ref_need_shape(op, "gamma", &op->params[0].shape, &vector));
	MU_TRY(mu_ref_need_shape(op, "beta", &op->params[1].shape, &vector));
	op->scratch_nbytes = 2 * vector.dims[0] * sizeof(double);
out:
	return st;
}

static enum mu_status forward(struct mu_op *op)
{
	for (size_t i = 0; i < op->inputs[0]->shape.dims[0] * groups_of(op); i++) {
		const struct group g = group_of(op, i);

		for (size_t k = 0; k < g.n; k++) {
			const size_t c = g.channel + k / g.area;

			op->outputs[0]->data[g.at + k] =
				(float)(xhat(op, &g, k) * (double)op->params[0].data[c] +
					(double)op->params[1].data[c]);
		}
	}
	return MU_OK;
}

/* sums: of dy xhat and of dy, by channel. */
static void backward_group(struct mu_op *op, const struct group *g, double *sums)
{
	const float *dy = op->outputs[0]->grad + g->at, *gamma = op->params[0].data;
	const size_t channels = op->inputs[0]->shape.dims[1];
	double mean = 0, mixed = 0;

	for (size_t k = 0; k < g->n; k++) {
		const size_t c = g->channel + k / g->area;
		const double own = (double)dy[k], hat = xhat(op, g, k);

		sums[c] += own * hat;
		sums[channels + c] += own;
		mean += own * (double)gamma[c] / (double)g->n;
		mixed += own * (double)gamma[c] * hat / (double)g->n;
	}
	for (size_t k = 0; k < g->n && op->inputs[0]->needs_grad; k++)
		op->inputs[0]->grad[g->at + k] =
			(float)(g->factor *
				((double)dy[k] * (double)gamma[g->channel + k / g->area] - mean -
				 xhat(op, g, k) * mixed));
}

static void backward(struct mu_op *op)
{
	const size_t channels = op->inputs[0]->shape.dims[1];
	double *sums = op->scratch;

	memset(sums, 0, op->scratch_nbytes);
	for (size_t i = 0; i < op->inputs[0]->shape.dims[0] * groups_of(op); i++) {
		const struct group g = group_of(op, i);

		backward_group(op, &g, sums);
	}
	for (int p = 0; p < 2; p++)
		for (size_t c = 0; c < channels; c++)
			op->params[p].grad[c] = (float)sums[(size_t)p * channels + c];
}

const struct mu_ref_kind mu_ref_group_norm = {
	.n_inputs = 1,
	.n_outputs = 1,
	.min_params = 2,
	.max_params = 2,
	.plan = plan,
	.forward = forward,
	.backward = backward,
};
