/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Losses by element: formulas in ref/element_loss.c. The host checks the targets, which are copied
 * to the workspace; the sums of the losses of parts of samples are copied back, and summed on the
 * host in order, at once or when results are due.
 */
#include "cuda.h"

#include <string.h>

#include <muster/base.h>

static size_t n_samples(const struct mu_op *op)
{
	return op->inputs[0]->shape.dims[0];
}

static size_t elements_of(const struct mu_op *op)
{
	return mu_shape_n(&op->inputs[0]->shape) / n_samples(op);
}

static size_t parts_of(const struct mu_op *op)
{
	return (elements_of(op) + CUDA_LOSS_PART - 1) / CUDA_LOSS_PART;
}

/* Workspace: losses of parts, then targets. */
static double *losses_of(const struct mu_op *op)
{
	return op->workspace;
}

static float *targets_of(const struct mu_op *op)
{
	return (float *)(void *)(losses_of(op) + n_samples(op) * parts_of(op));
}

/* On the host: predictions, then losses of parts. */
static struct mu_prediction *predictions_of(const struct mu_op *op)
{
	return op->impl;
}

static double *host_losses(const struct mu_op *op)
{
	return (double *)(void *)(predictions_of(op) + n_samples(op));
}

static enum mu_status plan(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const size_t n = n_samples(op), losses = n * parts_of(op) * sizeof(double);
	const size_t host = n * sizeof(struct mu_prediction) + losses;

	op->workspace_nbytes = losses + n * elements_of(op) * sizeof(float);
	CU(d, cuMemHostAlloc, &op->impl, host, CU_MEMHOSTALLOC_PORTABLE);
	memset(op->impl, 0, host); /* simulated GPUs may copy nothing */
out:
	return st;
}

static void set_loss(struct mu_op *op)
{
	struct mu_prediction *predictions = predictions_of(op);
	const double *losses = host_losses(op);

	op->batch->predictions = predictions;
	op->batch->loss = 0;
	for (size_t s = 0; s < n_samples(op); s++) {
		double loss = 0;

		for (size_t k = 0; k < parts_of(op); k++)
			loss += *losses++;
		predictions[s].loss = loss / (double)elements_of(op);
		op->batch->loss += predictions[s].loss;
	}
}

static enum mu_status forward(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_element_loss *l = op->attr;
	const struct mu_batch *b = op->batch;
	struct cuda_element_loss args = {
		.x = op->inputs[0]->data,
		.labels = targets_of(op),
		.y = op->outputs[0]->data,
		.losses = losses_of(op),
		.form = (int)l->form,
		.delta = l->delta,
		.each = elements_of(op),
		.parts = parts_of(op),
		.count = b->count,
		.n = n_samples(op) * parts_of(op),
	};

	MU_TRY(mu_ref_check_targets(op));
	MU_TRY(mu_cuda_copy(d, targets_of(op), b->device_labels ? b->device_labels : b->labels,
			    b->count * args.each * sizeof(float)));
	MU_TRY(mu_cuda_rows(d, CUDA_element_loss, args.n, &args));
	MU_TRY(mu_cuda_copy(d, host_losses(op), args.losses, args.n * sizeof *args.losses));
	if (op->loss_later)
		goto out;
	MU_TRY(mu_cuda_finish(d));
	set_loss(op);
out:
	return st;
}

static enum mu_status backward(struct cuda_device *d, struct mu_op *op)
{
	const struct mu_element_loss *l = op->attr;
	struct cuda_element_loss_backward args = {
		.y = op->outputs[0]->data,
		.labels = targets_of(op),
		.dx = op->inputs[0]->grad,
		.form = (int)l->form,
		.delta = l->delta,
		.scale = (double)mu_batch_loss_scale(op->batch) / (double)elements_of(op),
		.counted = op->batch->count * elements_of(op),
		.n = mu_shape_n(&op->inputs[0]->shape),
	};

	return op->inputs[0]->needs_grad
		       ? mu_cuda_each(d, CUDA_element_loss_backward, args.n, &args)
		       : MU_OK;
}

const struct cuda_kind mu_cuda_element_loss = {
	.like = &mu_ref_element_loss,
	.inputs = CUDA_INPUTS_PLAIN,
	.host_forward = true,
	.plan = plan,
	.forward = forward,
	.set_loss = set_loss,
	.backward = backward,
	.release = mu_cuda_release_host,
};
