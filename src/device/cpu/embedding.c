/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of a table by number, in loops of our own; formulas: ref/embedding.c. The output has its
 * channels last, so that a row is copied as it is.
 */
#include "cpu.h"

#include <string.h>

#include <muster/base.h>

/* The numbers are the net's input, which is plain; with one channel, every layout of it is. Those
 * of samples that do not count may be anything. */
static enum mu_status find(const struct mu_op *op, size_t i, size_t *row)
{
	enum mu_status st = MU_OK;
	size_t area = mu_shape_sample(&op->inputs[0]->shape);
	int inputs = ((const struct mu_embedding *)op->attr)->inputs;
	float x = op->inputs[0]->data[i];

	*row = 0;
	if (i >= op->batch->count * area)
		goto out;
	if (!(x >= 0 && x < (float)inputs) || x != (float)(size_t)x)
		MU_FAIL(MU_ERR_ARGUMENT,
			"%s (embedding): position %zu of the batch is %g; it must be a whole "
			"number from 0 to %d",
			op->name, i, (double)x, inputs - 1);
	*row = (size_t)x;
out:
	return st;
}

static enum mu_status forward(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	size_t n = mu_shape_n(&op->inputs[0]->shape), units = op->params[0].shape.dims[1];
	size_t row = 0;

	for (size_t i = 0; i < n; i++) {
		MU_TRY(find(op, i, &row));
		memcpy(op->outputs[0]->data + i * units, op->params[0].data + row * units,
		       units * sizeof(float));
	}
out:
	return st;
}

static enum mu_status backward(struct mu_op *op)
{
	enum mu_status st = MU_OK;
	size_t n = mu_shape_n(&op->inputs[0]->shape), units = op->params[0].shape.dims[1];
	size_t row = 0;

	if (!op->adds)
		memset(op->params[0].grad, 0, op->params[0].n_padded * sizeof(float));
	for (size_t i = 0; i < n; i++) {
		MU_TRY(find(op, i, &row));
		mu_cpu_add(op->params[0].grad + row * units, op->outputs[0]->grad + i * units,
			   units);
	}
	if (op->inputs[0]->needs_grad)
		memset(op->inputs[0]->grad, 0, op->inputs[0]->nbytes);
out:
	return st;
}

enum mu_status mu_cpu_plan_embedding(struct cpu_plan *p)
{
	enum mu_status st = MU_OK;
	struct mu_op *op = p->op;
	struct cpu_md md;

	if (op->inputs[0]->nbytes != mu_shape_n(&op->inputs[0]->shape) * sizeof(float))
		MU_FAIL(MU_ERR_UNSUPPORTED, "%s (embedding): its numbers come in a padded layout",
			op->name);
	mu_cpu_tag(&md, &op->outputs[0]->shape, dnnl_acdb);
	MU_TRY(mu_cpu_set_tensor(op->outputs[0], &md));
	mu_cpu_plain(&md, &op->params[0].shape);
	MU_TRY(mu_cpu_set_param(&op->params[0], &md));
	mu_cpu_try_call(p, forward);
	p->program = &p->impl->backward;
	op->can_add = op->phase == MU_PHASE_TRAIN;
	if (op->phase == MU_PHASE_TRAIN)
		mu_cpu_try_call(p, backward);
out:
	return st;
}
