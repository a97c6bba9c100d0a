/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout: the mask (0 or 1 / (1 - p)) is kept in the workspace. */
#include "ref.h"

#include <muster/base.h>

/* Random number of an element: its place in its sample, with the operation's index above it: 34
 * bits. */
enum { ELEMENT_BITS = 24, INDEX_BITS = 10 };

static enum mu_status plan(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_dropout *a = op->attr;

	if (!(a->p >= 0 && a->p < 1))
		MU_FAIL(MU_ERR_ARGUMENT, "%s (dropout): probability %g; it must be in [0, 1)",
			op->name, (double)a->p);
	if (op->index >> INDEX_BITS != 0 ||
	    mu_shape_sample(&op->inputs[0]->shape) >> ELEMENT_BITS != 0)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"%s (dropout): operation %d, %zu elements a sample; the random numbers "
			"reach for "
			"%d operations and %d elements",
			op->name, op->index, mu_shape_sample(&op->inputs[0]->shape),
			1 << INDEX_BITS, 1 << ELEMENT_BITS);
	MU_TRY(mu_ref_need_same_shape(op));
	if (op->phase == MU_PHASE_TRAIN)
		op->workspace_nbytes = mu_shape_n(&op->inputs[0]->shape) * sizeof(float);
out:
	return st;
}

/* A draw depends on the sample's id and the element's place in the sample, not on the batch. */
bool mu_ref_drops(const struct mu_op *op, size_t sample, uint64_t element, float p)
{
	const struct mu_batch *b = op->batch;
	const uint64_t high = element >> ELEMENT_BITS, low = element - (high << ELEMENT_BITS);
	const struct mu_random key = {.seed = b->seed,
				      .purpose = MU_RANDOM_DROPOUT,
				      .epoch = b->epoch,
				      .sample = (b->ids ? b->ids[sample] : sample) | high << 40};

	return mu_random_uniform(&key, (uint64_t)op->index << ELEMENT_BITS | low) < p;
}

static void draw_mask(struct mu_op *op)
{
	const struct mu_dropout *a = op->attr;
	size_t n = op->inputs[0]->shape.dims[0], features = mu_shape_sample(&op->inputs[0]->shape);
	float *mask = op->workspace;

	for (size_t s = 0; s < n; s++)
		for (size_t k = 0; k < features; k++)
			mask[s * features + k] = mu_ref_drops(op, s, op->block * features + k, a->p)
							 ? 0
							 : 1 / (1 - a->p);
}

static void multiply(const float *x, const float *mask, float *y, size_t n)
{
	for (size_t k = 0; k < n; k++)
		y[k] = x[k] * mask[k];
}

static enum mu_status forward(struct mu_op *op)
{
	const float *x = op->inputs[0]->data;
	float *y = op->outputs[0]->data;
	size_t n = mu_shape_n(&op->inputs[0]->shape);

	if (op->phase == MU_PHASE_TRAIN) {
		draw_mask(op);
		multiply(x, op->workspace, y, n);
	} else {
		mu_ref_copy(y, x, n);
	}
	return MU_OK;
}

static void backward(struct mu_op *op)
{
	if (op->inputs[0]->needs_grad)
		multiply(op->outputs[0]->grad, op->workspace, op->inputs[0]->grad,
			 mu_shape_n(&op->inputs[0]->shape));
}

const struct mu_ref_kind mu_ref_dropout = {
	.n_inputs = 1,
	.n_outputs = 1,
	.in_place = true,
	.plan = plan,
	.forward = forward,
	.backward = backward,
};
