/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Softmax cross-entropy: formulas in ref/softmax.c. The host checks the labels, which are copied to
 * the workspace; what was found out about each prediction is copied back, and the losses summed on
 * the host in order, for which forward waits for the GPU, unless that is left for later.
 *
 * Training with a large vocabulary in half precision (in_place): scores and their gradient are in
 * one place, rows of the type. Forward writes the gradient at once, rounded once; backward does
 * nothing.
 */
#include "cuda.h"

#include <string.h>

#include <muster/base.h>

static size_t n_predictions(const struct mu_op *op)
{
	return op->inputs[0]->shape.dims[0] * mu_shape_positions(&op->inputs[0]->shape);
}

/* Workspace: predictions, then labels, then the weights of the classes. */
static struct mu_prediction *predictions_of(const struct mu_op *op)
{
	return op->workspace;
}

static float *labels_of(const struct mu_op *op)
{
	return (float *)(void *)(predictions_of(op) + n_predictions(op));
}

static float *weights_of(const struct mu_op *op)
{
	return op->batch->class_weights ? labels_of(op) + n_predictions(op) : NULL;
}

static enum mu_status plan(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const size_t n = n_predictions(op);

	op->workspace_nbytes = n * (sizeof(struct mu_prediction) + sizeof(float));
	if (op->batch && op->batch->class_weights)
		op->workspace_nbytes += op->inputs[0]->shape.dims[1] * sizeof(float);
	/* predictions on the host */
	CU(d, cuMemHostAlloc, &op->impl, n * sizeof(struct mu_prediction),
	   CU_MEMHOSTALLOC_PORTABLE);
	memset(op->impl, 0, n * sizeof(struct mu_prediction)); /* simulated GPUs may copy nothing */
out:
	return st;
}

static float mean_weight(const struct mu_batch *b, size_t classes)
{
	double sum = 0;

	for (size_t k = 0; b->class_weights && k < classes; k++)
		sum += (double)b->class_weights[k];
	return (float)(sum / (double)classes);
}

static struct cuda_targets targets_of(const struct mu_op *op)
{
	const struct mu_batch *b = op->batch;
	const struct mu_shape *in = &op->inputs[0]->shape;

	return (struct cuda_targets){
		.labels = labels_of(op),
		.classes = in->dims[1],
		.area = mu_shape_positions(in),
		.count = b->count,
		.use_ignore = b->use_ignore,
		.ignored = b->ignore_label,
		.smoothing = b->label_smoothing,
		.weights = weights_of(op),
		.mean_weight = mean_weight(b, in->dims[1]),
	};
}

static void set_loss(struct mu_op *op)
{
	const struct mu_prediction *predictions = op->impl;

	op->batch->predictions = predictions;
	op->batch->loss = 0;
	for (size_t i = 0; i < n_predictions(op); i++)
		op->batch->loss += predictions[i].loss;
}

static enum mu_status forward(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const size_t n = n_predictions(op);
	const float *labels = op->batch->labels;
	struct cuda_softmax args = {
		.t = targets_of(op),
		.x = op->inputs[0]->data,
		.y = op->outputs[0]->data,
		.predictions = predictions_of(op),
		.type = mu_cuda_type(op->inputs[0]),
		.row = mu_cuda_row(op->inputs[0]),
		.scale = op->fusion.in_place ? mu_batch_loss_scale(op->batch) : 0,
		.n = n,
	};

	MU_TRY(mu_ref_check_labels(op));
	if (op->batch->device_labels)
		labels = op->batch->device_labels;
	MU_TRY(mu_cuda_copy(d, labels_of(op), labels, args.t.count * args.t.area * sizeof(float)));
	if (op->batch->class_weights)
		MU_TRY(mu_cuda_copy(d, weights_of(op), op->batch->class_weights,
				    args.t.classes * sizeof(float)));
	MU_TRY(mu_cuda_rows(d, args.type == CUDA_FLOAT32 ? CUDA_softmax : CUDA_softmax_halves, n,
			    &args));
	MU_TRY(mu_cuda_copy(d, op->impl, args.predictions, n * sizeof *args.predictions));
	if (op->loss_later)
		goto out;
	MU_TRY(mu_cuda_finish(d));
	set_loss(op);
out:
	return st;
}

static enum mu_status backward(struct cuda_device *d, struct mu_op *op)
{
	struct cuda_softmax_backward args = {
		.t = targets_of(op),
		.p = op->outputs[0]->data,
		.dx = op->inputs[0]->grad,
		.scale = mu_batch_loss_scale(op->batch),
		.n = mu_shape_n(&op->inputs[0]->shape),
	};

	return op->inputs[0]->needs_grad && !op->fusion.in_place
		       ? mu_cuda_each(d, CUDA_softmax_backward, args.n, &args)
		       : MU_OK;
}

const struct cuda_kind mu_cuda_softmax = {
	.like = &mu_ref_softmax,
	.inputs = CUDA_INPUTS_OVER,
	.host_forward = true,
	.plan = plan,
	.forward = forward,
	.set_loss = set_loss,
	.backward = backward,
	.release = mu_cuda_release_host,
};
