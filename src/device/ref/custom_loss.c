/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Losses of users: their layer computes the output, a loss a sample, and the gradient of the sum of
 * these; the rest is here: labels, samples that do not count, what metrics need of predictions.
 */
#include "ref.h"

#include <float.h>
#include <math.h>

#include <muster/base.h>

#include "device/custom.h"

enum { ALIGNED = 64 };

static bool of_classes(const struct mu_op *op)
{
	return ((const struct mu_custom_loss *)op->attr)->of_classes;
}

static size_t samples_of(const struct mu_op *op)
{
	return op->inputs[0]->shape.dims[0];
}

/* Targets of a sample: one at each position, or for each output. */
static size_t targets_of(const struct mu_op *op)
{
	const struct mu_shape *out = &op->outputs[0]->shape;

	return of_classes(op) ? mu_shape_positions(out) : mu_shape_sample(out);
}

/* The workspace: predictions, losses, the user's. */
static size_t count_predictions(const struct mu_op *op)
{
	return samples_of(op) * (of_classes(op) ? targets_of(op) : 1);
}

static size_t own_nbytes(const struct mu_op *op)
{
	const size_t n = count_predictions(op) * sizeof(struct mu_prediction) +
			 samples_of(op) * sizeof(double);

	return (n + ALIGNED - 1) / ALIGNED * ALIGNED;
}

static void view(struct mu_layer *layer, const struct mu_op *op, bool grads)
{
	mu_custom_view(layer, op, grads);
	layer->output.grad = NULL;
	layer->losses =
		(double *)(void *)((struct mu_prediction *)op->workspace + count_predictions(op));
	layer->workspace_nbytes -= own_nbytes(op);
	layer->workspace = (char *)op->workspace + own_nbytes(op);
}

static enum mu_status plan(struct mu_op *op)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_custom_plan(op));
	op->workspace_nbytes += own_nbytes(op);
out:
	return st;
}

static enum mu_status check_targets(const struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_batch *b = op->batch;
	const size_t n = targets_of(op);

	if (of_classes(op))
		return mu_ref_check_labels(op);
	for (size_t i = 0; i < b->count * n; i++)
		if (!isfinite(b->labels[i]))
			MU_FAIL(MU_ERR_ARGUMENT,
				"%s: target %zu of sample %zu is %g; it must be "
				"finite",
				op->name, i % n, mu_ref_sample(b, i / n),
				(double)b->labels[i]);
out:
	return st;
}

/* Of label i, from the probabilities of the classes, at[k * step]. */
static struct mu_prediction predict(const struct mu_op *op, size_t i)
{
	const struct mu_shape *s = &op->outputs[0]->shape;
	const size_t step = targets_of(op), classes = mu_shape_channels(s),
		     label = (size_t)op->batch->labels[i];
	const float *at = op->outputs[0]->data + i / step * classes * step + i % step;
	/* of a float that underflowed, or is no probability, the largest that there is */
	struct mu_prediction out = {
		.cross_entropy = -logf(at[label * step] < FLT_MIN ? FLT_MIN : at[label * step])};

	for (size_t k = 0; k < classes; k++) {
		const float own = at[label * step], other = at[k * step];

		out.place += other > own || (k < label && !(other < own));
	}
	return out;
}

static enum mu_status forward(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	struct mu_batch *b = op->batch;
	struct mu_prediction *predictions = op->workspace;
	const size_t each = count_predictions(op) / samples_of(op);
	struct mu_layer layer;

	b->loss = 0;
	b->predictions = predictions;
	memset(op->workspace, 0, own_nbytes(op));
	memset(op->outputs[0]->data, 0, mu_shape_n(&op->outputs[0]->shape) * sizeof(float));
	MU_TRY(check_targets(op));
	view(&layer, op, false);
	MU_TRY(mu_custom_forward(op, &layer));
	for (size_t i = 0; of_classes(op) && i < b->count * each; i++)
		if (!(b->use_ignore && b->labels[i] == b->ignore_label))
			predictions[i] = predict(op, i);
	for (size_t s = 0; s < b->count; s++) {
		predictions[s * each].loss = layer.losses[s];
		b->loss += layer.losses[s];
	}
out:
	return st;
}

static enum mu_status backward(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const size_t each = mu_shape_sample(&op->inputs[0]->shape), n = op->batch->count * each,
		     all = samples_of(op) * each;
	const float scale = mu_batch_loss_scale(op->batch);
	struct mu_layer layer;
	float *dx;

	view(&layer, op, true);
	dx = layer.inputs[0].grad;
	MU_TRY(mu_custom_backward(op, &layer));
	for (size_t i = 0; dx && scale != 1 && i < n; i++)
		dx[i] *= scale;
	if (dx)
		memset(dx + n, 0, (all - n) * sizeof *dx);
out:
	return st;
}

const struct mu_ref_kind mu_ref_custom_loss = {
	.n_inputs = 1,
	.n_outputs = 1,
	.plan = plan,
	.forward = forward,
	.try_backward = backward,
};
