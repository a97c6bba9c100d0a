/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Group normalisation. Sums of each channel of each sample are made in double by lanes, whose
 * number depends on the shape alone, then added: statistics of groups, and the gradients of gamma
 * and beta, follow from them. Mean and factor of each group are kept for backward.
 */
#include "cuda.h"

#include <muster/base.h>

/* So many threads sum, if there is work for them: some hundred on each processor. */
enum { THREADS = 1 << 17, MOST_LANES = 4096, WARP_LANES = CUDA_WARP };

/* Whatever the layout. */
static struct cuda_extent extent_of(const struct mu_op *op)
{
	const struct mu_shape *in = &op->inputs[0]->shape;

	return (struct cuda_extent){in->dims[0], in->dims[1], mu_shape_positions(in)};
}

static size_t groups_of(const struct mu_op *op)
{
	const struct mu_group_norm *a = op->attr;

	return a->groups ? (size_t)a->groups : extent_of(op).channels;
}

static size_t lanes_of(const struct mu_op *op)
{
	const struct cuda_extent e = extent_of(op);
	size_t lanes = WARP_LANES;

	while (lanes < MOST_LANES && e.samples * e.channels * lanes < THREADS)
		lanes *= 2;
	while (lanes > 1 && lanes > e.area)
		lanes /= 2;
	return lanes;
}

static size_t n_planes(const struct mu_op *op)
{
	return extent_of(op).samples * extent_of(op).channels;
}

static size_t n_groups(const struct mu_op *op)
{
	return extent_of(op).samples * groups_of(op);
}

/* Scratch: totals of channels, then statistics of inference or means of backward, then lanes. */
static struct cuda_group_pair *totals_of(const struct mu_op *op)
{
	return op->scratch;
}

static struct cuda_row_statistics *means_of(const struct mu_op *op)
{
	return (struct cuda_row_statistics *)(void *)(totals_of(op) + n_planes(op));
}

static struct cuda_group_pair *lanes_room(const struct mu_op *op)
{
	return (struct cuda_group_pair *)(void *)(means_of(op) + n_groups(op) + n_groups(op) % 2);
}

static struct cuda_row_statistics *statistics_of(const struct mu_op *op)
{
	return op->phase == MU_PHASE_TRAIN ? op->workspace : means_of(op);
}

static enum mu_status plan(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_cuda_check_sizes(d, op));
	op->scratch_nbytes = n_planes(op) * (1 + lanes_of(op)) * sizeof(struct cuda_group_pair) +
			     (n_groups(op) + 1) * sizeof(struct cuda_row_statistics);
	if (op->phase != MU_PHASE_TRAIN)
		goto out;
	op->workspace_nbytes = n_groups(op) * sizeof(struct cuda_row_statistics);
	op->can_add = true;
out:
	return st;
}

/* Totals of x and its squares, or with dy of that and dy x. */
static enum mu_status add_channels(struct cuda_device *d, const struct mu_op *op, const float *dy)
{
	enum mu_status st = MU_OK;
	const struct cuda_extent e = extent_of(op);
	struct cuda_group_sums lanes = {
		.x = op->inputs[0]->data,
		.dy = dy,
		.sums = lanes_room(op),
		.type = mu_cuda_type(op->inputs[0]),
		.last = op->inputs[0]->layout != NULL,
		.channels = e.channels,
		.area = e.area,
		.lanes = lanes_of(op),
		.n = n_planes(op) * lanes_of(op),
	};
	struct cuda_group_totals totals = {
		.sums = lanes_room(op),
		.totals = totals_of(op),
		.lanes = lanes_of(op),
		.n = n_planes(op),
	};

	if (lanes.lanes == 1)
		lanes.sums = totals_of(op);
	MU_TRY(mu_cuda_each(d, CUDA_group_sums, lanes.n, &lanes));
	if (lanes.lanes > 1)
		MU_TRY(mu_cuda_rows(d, CUDA_group_totals, totals.n, &totals));
out:
	return st;
}

static struct cuda_group_means means(const struct mu_op *op)
{
	return (struct cuda_group_means){
		.totals = totals_of(op),
		.eps = ((const struct mu_group_norm *)op->attr)->eps,
		.channels = extent_of(op).channels,
		.groups = groups_of(op),
		.area = extent_of(op).area,
		.n = n_groups(op),
	};
}

static enum mu_status forward(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	struct cuda_group_means of = means(op);
	struct cuda_group_norm args = {
		.x = op->inputs[0]->data,
		.y = op->outputs[0]->data,
		.gamma = op->params[0].data,
		.beta = op->params[1].data,
		.statistics = statistics_of(op),
		.type = mu_cuda_type(op->inputs[0]),
		.last = op->inputs[0]->layout != NULL,
		.channels = (uint32_t)of.channels,
		.groups = (uint32_t)of.groups,
		.area = (uint32_t)of.area,
		.n = mu_shape_n(&op->inputs[0]->shape),
	};

	of.out = statistics_of(op);
	MU_TRY(add_channels(d, op, NULL));
	MU_TRY(mu_cuda_each(d, CUDA_group_means, of.n, &of));
	MU_TRY(mu_cuda_eights(d, CUDA_group_norm, args.n, &args));
out:
	return st;
}

static enum mu_status backward_params(struct cuda_device *d, struct mu_op *op)
{
	const struct cuda_extent e = extent_of(op);
	struct cuda_group_gradients args = {
		.totals = totals_of(op),
		.statistics = statistics_of(op),
		.gamma = op->params[0].grad,
		.beta = op->params[1].grad,
		.adds = op->adds,
		.samples = e.samples,
		.channels = e.channels,
		.groups = groups_of(op),
		.n = e.channels,
	};

	return mu_cuda_each(d, CUDA_group_gradients, args.n, &args);
}

static enum mu_status backward(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	struct cuda_group_means of = means(op);
	struct cuda_group_norm_backward args = {
		.x = op->inputs[0]->data,
		.dy = op->outputs[0]->grad,
		.dx = op->inputs[0]->grad,
		.gamma = op->params[0].data,
		.statistics = statistics_of(op),
		.means = means_of(op),
		.type = mu_cuda_type(op->inputs[0]),
		.last = op->inputs[0]->layout != NULL,
		.channels = (uint32_t)of.channels,
		.groups = (uint32_t)of.groups,
		.area = (uint32_t)of.area,
		.n = mu_shape_n(&op->inputs[0]->shape),
	};

	of.gamma = op->params[0].data;
	of.statistics = statistics_of(op);
	of.out = means_of(op);
	MU_TRY(add_channels(d, op, op->outputs[0]->grad));
	MU_TRY(backward_params(d, op));
	if (!op->inputs[0]->needs_grad)
		goto out;
	MU_TRY(mu_cuda_each(d, CUDA_group_means, of.n, &of));
	MU_TRY(mu_cuda_eights(d, CUDA_group_norm_backward, args.n, &args));
out:
	return st;
}

const struct cuda_kind mu_cuda_group_norm = {
	.like = &mu_ref_group_norm,
	.inputs = CUDA_INPUTS_ALIKE,
	.plan = plan,
	.forward = forward,
	.backward = backward,
};
