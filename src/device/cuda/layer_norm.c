/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layer normalisation: a warp of threads for each position. Mean and factor of each are kept for
 * backward. The gradients of gamma and beta are sums over all positions: of neighbouring positions
 * in lanes, whose number depends on the shape alone, then of the lanes.
 */
#include "cuda.h"

#include <muster/base.h>

enum { LANE_ROWS = 16, MOST_LANES = 512 };

static size_t n_rows(const struct mu_op *op)
{
	return mu_shape_n(&op->inputs[0]->shape) / op->inputs[0]->shape.dims[1];
}

static size_t n_lanes(const struct mu_op *op)
{
	const size_t lanes = (n_rows(op) + LANE_ROWS - 1) / LANE_ROWS;

	return lanes < MOST_LANES ? lanes : MOST_LANES;
}

static enum mu_status plan(struct cuda_device *d, struct mu_op *op)
{
	const size_t channels = op->inputs[0]->shape.dims[1];

	(void)d;
	if (op->phase != MU_PHASE_TRAIN)
		return MU_OK;
	op->workspace_nbytes = n_rows(op) * sizeof(struct cuda_row_statistics);
	op->scratch_nbytes = 2 * n_lanes(op) * channels * sizeof(float);
	op->can_add = true;
	return MU_OK;
}

static enum mu_status forward(struct cuda_device *d, struct mu_op *op)
{
	const struct mu_layer_norm *a = op->attr;
	const struct cuda_extent e = mu_cuda_extent(op->inputs[0]);
	struct cuda_layer_norm args = {
		.x = op->inputs[0]->data,
		.y = op->outputs[0]->data,
		.gamma = op->params[0].data,
		.beta = op->n_params > 1 ? op->params[1].data : NULL,
		.statistics = op->phase == MU_PHASE_TRAIN ? op->workspace : NULL,
		.type = mu_cuda_type(op->inputs[0]),
		.rms = a->rms,
		.eps = a->eps,
		.channels = e.channels,
		.area = e.area,
		.n = n_rows(op),
	};

	return mu_cuda_warps(d, CUDA_layer_norm, args.n, &args);
}

static enum mu_status backward_params(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct cuda_extent e = mu_cuda_extent(op->inputs[0]);
	struct cuda_layer_norm_sums parts = {
		.x = op->inputs[0]->data,
		.dy = op->outputs[0]->grad,
		.statistics = op->workspace,
		.first = op->scratch,
		.second = (float *)op->scratch + n_lanes(op) * e.channels,
		.type = mu_cuda_type(op->inputs[0]),
		.channels = e.channels,
		.area = e.area,
		.rows = n_rows(op),
		.lanes = n_lanes(op),
		.n = n_lanes(op) * mu_cuda_eights_of(e.channels),
	};

	MU_TRY(mu_cuda_each(d, CUDA_layer_norm_sums, parts.n, &parts));
	for (int p = 0; p < op->n_params; p++) {
		struct cuda_channel_sums args = {
			.of = {p ? parts.second : parts.first, parts.second, parts.lanes,
			       e.channels},
			.out = op->params[p].grad,
			.adds = op->adds,
			.n = mu_cuda_eights_of(e.channels),
		};

		MU_TRY(mu_cuda_rows(d, CUDA_channel_sums, args.n, &args));
	}
out:
	return st;
}

static enum mu_status backward(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct cuda_extent e = mu_cuda_extent(op->inputs[0]);
	struct cuda_layer_norm_backward args = {
		.x = op->inputs[0]->data,
		.dy = op->outputs[0]->grad,
		.dx = op->inputs[0]->grad,
		.gamma = op->params[0].data,
		.statistics = op->workspace,
		.type = mu_cuda_type(op->inputs[0]),
		.rms = ((const struct mu_layer_norm *)op->attr)->rms,
		.channels = e.channels,
		.area = e.area,
		.n = n_rows(op),
	};

	MU_TRY(backward_params(d, op));
	if (op->inputs[0]->needs_grad)
		MU_TRY(mu_cuda_warps(d, CUDA_layer_norm_backward, args.n, &args));
out:
	return st;
}

const struct cuda_kind mu_cuda_layer_norm = {
	.like = &mu_ref_layer_norm,
	.inputs = CUDA_INPUTS_ALIKE,
	.plan = plan,
	.forward = forward,
	.backward = backward,
};
