/* SPDX-License-Identifier: Apache-2.0 */
/* Operations that work element by element, or copy whole tensors: activations, dropout, flatten,
 * sum, concat, split. */
#include "cuda.h"

#include <muster/base.h>

static size_t n_of(const struct mu_tensor *t)
{
	return mu_shape_n(&t->shape);
}

/* Copy values or a gradient of a tensor, from one of the same layout. */
static enum mu_status copy(struct cuda_device *d, float *to, const float *from,
			   const struct mu_tensor *like)
{
	return mu_cuda_copy(d, to, from, mu_cuda_bytes(like));
}

/* ---- activation ---- */

static enum mu_status forward_activation(struct cuda_device *d, struct mu_op *op)
{
	struct cuda_activate args = {
		.x = op->inputs[0]->data,
		.y = op->outputs[0]->data,
		.type = mu_cuda_type(op->outputs[0]),
		.kind = mu_cuda_activation_code(op->attr),
		.n = n_of(op->outputs[0]),
	};

	return mu_cuda_eights(d, CUDA_activate, args.n, &args);
}

static enum mu_status backward_activation(struct cuda_device *d, struct mu_op *op)
{
	struct cuda_activate_backward args = {
		.y = op->outputs[0]->data,
		.dy = op->outputs[0]->grad,
		.dx = op->inputs[0]->grad,
		.type = mu_cuda_type(op->outputs[0]),
		.kind = mu_cuda_activation_code(op->attr),
		.n = n_of(op->outputs[0]),
	};

	return op->inputs[0]->needs_grad ? mu_cuda_eights(d, CUDA_activate_backward, args.n, &args)
					 : MU_OK;
}

const struct cuda_kind mu_cuda_activation = {
	.like = &mu_ref_activation,
	.inputs = CUDA_INPUTS_ALIKE,
	.forward = forward_activation,
	.backward = backward_activation,
};

/* ---- smooth activation: its numbers are those of enum mu_activation_kind ---- */

static struct cuda_smooth smooth_of(const struct mu_op *op)
{
	return (struct cuda_smooth){
		.x = op->inputs[0]->data,
		.type = mu_cuda_type(op->outputs[0]),
		.kind = (int)((const struct mu_activation *)op->attr)->kind,
		.n = n_of(op->outputs[0]),
	};
}

static enum mu_status forward_smooth(struct cuda_device *d, struct mu_op *op)
{
	struct cuda_smooth args = smooth_of(op);

	args.y = op->outputs[0]->data;
	return mu_cuda_eights(d, CUDA_smooth, args.n, &args);
}

static enum mu_status backward_smooth(struct cuda_device *d, struct mu_op *op)
{
	struct cuda_smooth args = smooth_of(op);

	args.dy = op->outputs[0]->grad;
	args.y = op->inputs[0]->grad;
	return op->inputs[0]->needs_grad ? mu_cuda_eights(d, CUDA_smooth_backward, args.n, &args)
					 : MU_OK;
}

const struct cuda_kind mu_cuda_smooth = {
	.like = &mu_ref_smooth,
	.inputs = CUDA_INPUTS_ALIKE,
	.forward = forward_smooth,
	.backward = backward_smooth,
};

/* ---- dropout: the mask is kept for backward; ids of samples come from the host ---- */

enum { ELEMENT_BITS = 24 }; /* of random numbers: op->index << 24 | element */

static enum mu_status plan_dropout(struct cuda_device *d, struct mu_op *op)
{
	(void)d;
	if (op->phase != MU_PHASE_TRAIN)
		return MU_OK;
	op->workspace_nbytes = n_of(op->inputs[0]) * sizeof(float);
	op->scratch_nbytes = op->inputs[0]->shape.dims[0] * sizeof(uint32_t);
	return MU_OK;
}

static enum mu_status forward_dropout(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_tensor *in = op->inputs[0];
	const struct mu_batch *b = op->batch;
	struct cuda_dropout args = {
		.x = in->data,
		.y = op->outputs[0]->data,
		.mask = op->workspace,
		.type = mu_cuda_type(in),
		.last = in->layout != NULL,
		.channels = in->shape.dims[1],
		.area = mu_ref_area(&in->shape),
		.ids = b->device_draws ? b->device_draws + 1
		       : b->ids        ? op->scratch
				       : NULL,
		.epochs = b->device_draws,
		.seed = b->seed,
		.first = (uint64_t)op->index << ELEMENT_BITS,
		.from = op->block * mu_ref_features(&in->shape),
		.epoch = b->epoch,
		.purpose = MU_RANDOM_DROPOUT,
		.p = ((const struct mu_dropout *)op->attr)->p,
		.n = n_of(in),
	};

	if (op->phase != MU_PHASE_TRAIN)
		return copy(d, args.y, in->data, in);
	/* Rows from count on have undefined ids; their draws are not used. */
	if (b->ids && !b->device_draws)
		MU_TRY(mu_cuda_copy(d, op->scratch, b->ids, b->count * sizeof *b->ids));
	MU_TRY(mu_cuda_each(d, CUDA_dropout, args.n, &args));
out:
	return st;
}

/* By the mask: the batch's epoch and ids may be the next one's by now. */
static enum mu_status restore_dropout(struct cuda_device *d, struct mu_op *op)
{
	struct cuda_multiply args = {
		.x = op->inputs[0]->data,
		.factor = op->workspace,
		.y = op->outputs[0]->data,
		.type = mu_cuda_type(op->inputs[0]),
		.n = n_of(op->inputs[0]),
	};

	return mu_cuda_eights(d, CUDA_multiply, args.n, &args);
}

static enum mu_status backward_dropout(struct cuda_device *d, struct mu_op *op)
{
	struct cuda_multiply args = {
		.x = op->outputs[0]->grad,
		.factor = op->workspace,
		.y = op->inputs[0]->grad,
		.type = mu_cuda_type(op->inputs[0]),
		.n = n_of(op->inputs[0]),
	};

	return op->inputs[0]->needs_grad ? mu_cuda_eights(d, CUDA_multiply, args.n, &args) : MU_OK;
}

const struct cuda_kind mu_cuda_dropout = {
	.like = &mu_ref_dropout,
	.inputs = CUDA_INPUTS_ALIKE,
	.plan = plan_dropout,
	.forward = forward_dropout,
	.restore = restore_dropout,
	.backward = backward_dropout,
};

/* ---- flatten ---- */

static enum mu_status forward_flatten(struct cuda_device *d, struct mu_op *op)
{
	return copy(d, op->outputs[0]->data, op->inputs[0]->data, op->inputs[0]);
}

static enum mu_status backward_flatten(struct cuda_device *d, struct mu_op *op)
{
	if (!op->inputs[0]->needs_grad)
		return MU_OK;
	return copy(d, op->inputs[0]->grad, op->outputs[0]->grad, op->inputs[0]);
}

const struct cuda_kind mu_cuda_flatten = {
	.like = &mu_ref_flatten,
	.forward = forward_flatten,
	.backward = backward_flatten,
};

/* ---- sum ---- */

/*
 * Sum of the data, or the gradients, of some tensors. y may be the first. Added in order, as many
 * at a time as a kernel supports; the last kernel also applies the activation, or its derivative.
 */
static enum mu_status add_all(struct cuda_device *d, struct mu_tensor *const *tensors, int n,
			      bool grads, struct cuda_add *args)
{
	enum mu_status st = MU_OK;
	const int kind = args->kind;
	const void *of = args->of;

	args->n_x = 0;
	for (int i = 0; i < n; i++) {
		args->x[args->n_x++] = grads ? tensors[i]->grad : tensors[i]->data;
		args->kind = i == n - 1 ? kind : CUDA_LINEAR;
		args->of = i == n - 1 ? of : NULL;
		if (i < n - 1 && args->n_x < CUDA_MAX_ADDED)
			continue;
		MU_TRY(mu_cuda_eights(d, CUDA_add, args->n, args));
		args->x[0] = args->y;
		args->n_x = 1;
	}
out:
	return st;
}

static enum mu_status forward_sum(struct cuda_device *d, struct mu_op *op)
{
	struct cuda_add args = {
		.y = op->outputs[0]->data,
		.type = mu_cuda_type(op->outputs[0]),
		.kind = mu_cuda_activation_code(op->fusion.activation),
		.n = n_of(op->outputs[0]),
	};

	return add_all(d, op->inputs, op->n_inputs, false, &args);
}

static enum mu_status backward_sum(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct mu_tensor *out = op->outputs[0];

	MU_TRY(mu_cuda_undo_activation(d, op));
	for (int i = 0; i < op->n_inputs; i++)
		if (op->inputs[i]->needs_grad && !(op->fusion.shared_grads >> i & 1))
			MU_TRY(copy(d, op->inputs[i]->grad, out->grad, out));
out:
	return st;
}

const struct cuda_kind mu_cuda_sum = {
	.like = &mu_ref_sum,
	.inputs = CUDA_INPUTS_ALIKE,
	.forward = forward_sum,
	.backward = backward_sum,
};

/* ---- concat: the channels of the inputs are consecutive within a sample, or with channels last
 * within a position ---- */

/* Arguments from input i to the output, without addresses. */
static struct cuda_copy_rows rows_of(const struct mu_op *op, int i)
{
	const struct mu_tensor *in = op->inputs[i], *out = op->outputs[0];
	const struct cuda_extent e = mu_cuda_extent(in), all = mu_cuda_extent(out);

	return (struct cuda_copy_rows){
		.type = mu_cuda_type(out),
		.row = e.channels * e.area,
		.from_step = e.channels * e.area,
		.to_step = all.channels * all.area,
		.n = n_of(in),
	};
}

static char *number(float *data, const struct mu_tensor *t, size_t at)
{
	return (char *)data + at * mu_dtype_bytes((enum mu_dtype)mu_cuda_type(t));
}

static enum mu_status forward_concat(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	size_t at = 0;

	for (int i = 0; i < op->n_inputs; i++) {
		struct cuda_copy_rows args = rows_of(op, i);

		args.from = op->inputs[i]->data;
		args.to = number(op->outputs[0]->data, op->outputs[0], at);
		MU_TRY(mu_cuda_each(d, CUDA_copy_rows, args.n, &args));
		at += args.row;
	}
out:
	return st;
}

static enum mu_status backward_concat(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	size_t at = 0;

	for (int i = 0; i < op->n_inputs; i++) {
		struct cuda_copy_rows args = rows_of(op, i);

		args.from = number(op->outputs[0]->grad, op->outputs[0], at);
		args.to = op->inputs[i]->grad;
		args.from_step = args.to_step;
		args.to_step = args.row;
		if (op->inputs[i]->needs_grad)
			MU_TRY(mu_cuda_each(d, CUDA_copy_rows, args.n, &args));
		at += args.row;
	}
out:
	return st;
}

const struct cuda_kind mu_cuda_concat = {
	.like = &mu_ref_concat,
	.inputs = CUDA_INPUTS_ALIKE,
	.forward = forward_concat,
	.backward = backward_concat,
};

/* ---- split ---- */

static enum mu_status forward_split(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;

	for (int o = 0; o < op->n_outputs; o++)
		MU_TRY(copy(d, op->outputs[o]->data, op->inputs[0]->data, op->inputs[0]));
out:
	return st;
}

static enum mu_status backward_split(struct cuda_device *d, struct mu_op *op)
{
	const struct mu_tensor *in = op->inputs[0];
	struct cuda_add args = {
		.of = op->fusion.undo ? in->data : NULL,
		.y = in->grad,
		.type = mu_cuda_type(in),
		.kind = mu_cuda_activation_code(op->fusion.undo),
		.n = n_of(in),
	};

	if (!in->needs_grad || op->fusion.joined)
		return MU_OK;
	return add_all(d, op->outputs, op->n_outputs, true, &args);
}

const struct cuda_kind mu_cuda_split = {
	.like = &mu_ref_split,
	.inputs = CUDA_INPUTS_ALIKE,
	.forward = forward_split,
	.backward = backward_split,
};
