/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dice by region: formulas in ref/region_loss.c. The host checks the labels, which are copied to
 * the workspace; predictions and the sums of each class of each sample are copied back, and the
 * losses follow from them on the host, at once or when results are due.
 */
#include "cuda.h"

#include <string.h>

#include <muster/base.h>

static struct cuda_extent extent_of(const struct mu_op *op)
{
	const struct mu_shape *in = &op->inputs[0]->shape;

	return (struct cuda_extent){in->dims[0], in->dims[1], mu_shape_positions(in)};
}

static size_t n_predictions(const struct mu_op *op)
{
	return extent_of(op).samples * extent_of(op).area;
}

static size_t n_regions(const struct mu_op *op)
{
	return extent_of(op).samples * extent_of(op).channels;
}

static size_t parts_of(const struct mu_op *op)
{
	return (extent_of(op).area + CUDA_LOSS_PART - 1) / CUDA_LOSS_PART;
}

/* Workspace: sums of regions, then predictions, then labels. */
static struct cuda_region *totals_of(const struct mu_op *op)
{
	return op->workspace;
}

static struct mu_prediction *predictions_of(const struct mu_op *op)
{
	return (struct mu_prediction *)(void *)(totals_of(op) + n_regions(op));
}

static float *labels_of(const struct mu_op *op)
{
	return (float *)(void *)(predictions_of(op) + n_predictions(op));
}

/* On the host: predictions, then sums of regions. */
static struct mu_prediction *host_predictions(const struct mu_op *op)
{
	return op->impl;
}

static struct cuda_region *host_totals(const struct mu_op *op)
{
	return (struct cuda_region *)(void *)(host_predictions(op) + n_predictions(op));
}

static enum mu_status plan(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const size_t n = n_predictions(op);
	const size_t host = n * sizeof(struct mu_prediction) +
			    n_regions(op) * sizeof(struct cuda_region);

	op->workspace_nbytes = host + n * sizeof(float);
	op->scratch_nbytes = n_regions(op) * parts_of(op) * sizeof(struct cuda_region);
	CU(d, cuMemHostAlloc, &op->impl, host, CU_MEMHOSTALLOC_PORTABLE);
	memset(op->impl, 0, host); /* simulated GPUs may copy nothing */
out:
	return st;
}

static struct cuda_targets targets_of(const struct mu_op *op)
{
	const struct mu_batch *b = op->batch;

	return (struct cuda_targets){
		.labels = labels_of(op),
		.classes = extent_of(op).channels,
		.area = extent_of(op).area,
		.count = b->count,
		.use_ignore = b->use_ignore,
		.ignored = b->ignore_label,
	};
}

static double smooth_of(const struct mu_op *op)
{
	return (double)((const struct mu_region_loss *)op->attr)->smooth;
}

static void set_loss(struct mu_op *op)
{
	const struct cuda_extent e = extent_of(op);
	const double smooth = smooth_of(op);
	struct mu_prediction *predictions = host_predictions(op);

	op->batch->predictions = predictions;
	op->batch->loss = 0;
	for (size_t s = 0; s < op->batch->count; s++) {
		const struct cuda_region *c = host_totals(op) + s * e.channels;
		double loss = 0;

		for (size_t k = 0; k < e.channels; k++)
			loss += 1 - (2 * c[k].both + smooth) /
					    (c[k].found + c[k].targets + smooth);
		predictions[s * e.area].loss = loss / (double)e.channels;
		op->batch->loss += predictions[s * e.area].loss;
	}
}

static enum mu_status add_regions(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	struct cuda_region_sums parts = {
		.t = targets_of(op),
		.p = op->outputs[0]->data,
		.of = op->scratch,
		.parts = parts_of(op),
		.n = n_regions(op) * parts_of(op),
	};
	struct cuda_region_totals totals = {
		.of = op->scratch,
		.totals = totals_of(op),
		.parts = parts_of(op),
		.n = n_regions(op),
	};

	MU_TRY(mu_cuda_rows(d, CUDA_region_sums, parts.n, &parts));
	MU_TRY(mu_cuda_each(d, CUDA_region_totals, totals.n, &totals));
out:
	return st;
}

static enum mu_status forward(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_batch *b = op->batch;
	const size_t n = n_predictions(op);
	struct cuda_region_softmax args = {
		.t = targets_of(op),
		.x = op->inputs[0]->data,
		.p = op->outputs[0]->data,
		.predictions = predictions_of(op),
		.n = n,
	};

	MU_TRY(mu_ref_check_labels(op));
	MU_TRY(mu_cuda_copy(d, labels_of(op), b->device_labels ? b->device_labels : b->labels,
			    b->count * args.t.area * sizeof(float)));
	MU_TRY(mu_cuda_each(d, CUDA_region_softmax, n, &args));
	MU_TRY(add_regions(d, op));
	MU_TRY(mu_cuda_copy(d, host_predictions(op), args.predictions,
			    n * sizeof *args.predictions));
	MU_TRY(mu_cuda_copy(d, host_totals(op), totals_of(op),
			    n_regions(op) * sizeof(struct cuda_region)));
	if (op->loss_later)
		goto out;
	MU_TRY(mu_cuda_finish(d));
	set_loss(op);
out:
	return st;
}

static enum mu_status backward(struct cuda_device *d, struct mu_op *op)
{
	struct cuda_region_backward args = {
		.t = targets_of(op),
		.p = op->outputs[0]->data,
		.dx = op->inputs[0]->grad,
		.totals = totals_of(op),
		.smooth = smooth_of(op),
		.scale = (double)mu_batch_loss_scale(op->batch),
		.n = n_predictions(op),
	};

	return op->inputs[0]->needs_grad ? mu_cuda_each(d, CUDA_region_backward, args.n, &args)
					 : MU_OK;
}

const struct cuda_kind mu_cuda_region_loss = {
	.like = &mu_ref_region_loss,
	.inputs = CUDA_INPUTS_PLAIN,
	.host_forward = true,
	.plan = plan,
	.forward = forward,
	.set_loss = set_loss,
	.backward = backward,
	.release = mu_cuda_release_host,
};
