/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolution, by cuDNN: an algorithm for each phase (convolution/algorithms.h). An engine of the
 * graph API (engines.c) stands in its place where a table of convolutions names one, or where it
 * also sums the output for a batch-norm.
 *
 * In float16 and bfloat16 tensors and weights have channels last, for tensor cores, which
 * accumulate in float32. Weights are rounded and transposed, and their gradient is converted back:
 * parameters stay plain float32. layout.c does so for many convolutions at once, in memory that
 * each keeps during a step; without that memory each call does it, in the scratch.
 */
#include "device/cuda/convolution/algorithms.h"
#include "device/cuda/convolution/graph.h"

#include <limits.h>
#include <stdlib.h>

#include <muster/base.h>

enum { HALF_BYTES = 2 };

struct convolution {
	struct cuda_descriptors of;
	struct cuda_algorithm choices[MU_CONVOLUTION_PHASES];
	struct dnn_plan engines[MU_CONVOLUTION_PHASES]; /* where planned, in place of the choice */
	/* Scratch: weights or their gradient in `layout`, 0 and NULL if they are plain; then
	 * cuDNN's workspace. */
	const struct cuda_layout *layout;
	size_t weight_nbytes;
	/* Scores of a softmax whose number is odd: filters of zeros behind the others make rows
	 * aligned, without which cuDNN's kernels take some three times as long. */
	size_t pad_at, pad_nbytes; /* in the weights */
};

/* ---- choice ---- */

static void log_choice(const struct mu_op *op, enum mu_convolution_phase phase)
{
	static const char *const phases[MU_CONVOLUTION_PHASES] = {
		[MU_CONVOLUTION_FORWARD] = "forward",
		[MU_CONVOLUTION_DATA] = "data",
		[MU_CONVOLUTION_WEIGHTS] = "weights",
	};
	const struct convolution *c = op->impl;
	const struct cuda_algorithm *choice = &c->choices[phase];
	const struct dnn_plan *engine = &c->engines[phase];

	if (engine->plan)
		mu_log_detail("engine of %s, %s: cuDNN's engine %lld%s, %.3f MB of workspace",
			      op->name, phases[phase], (long long)engine->engine,
			      phase == MU_CONVOLUTION_FORWARD && op->outputs[0]->sums_at
				      ? ", with sums for the batch-norm"
				      : "",
			      (double)engine->nbytes / 1e6);
	else
		mu_log_detail("engine of %s, %s: cuDNN's algorithm %d, %s, %.3f MB of workspace",
			      op->name, phases[phase], choice->algorithm,
			      choice->math == CUDNN_FMA_MATH ? "no tensor cores" : "tensor cores",
			      (double)choice->nbytes / 1e6);
}

static enum mu_status choose(struct cuda_device *d, struct mu_op *op,
			     enum mu_convolution_phase phase)
{
	enum mu_status st = MU_OK;
	struct convolution *c = op->impl;
	struct dnn_plan *engine = &c->engines[phase];
	size_t nbytes;

	mu_cuda_plan_engine(d, op, phase, (int64_t)CUDA_CONVOLUTION_BYTES, engine);
	/* Engines set a gradient, and cannot add to it in place as micro-batches do. */
	if (!engine->plan || (phase == MU_CONVOLUTION_WEIGHTS && !c->layout))
		MU_TRY(mu_cuda_choose_algorithm(d, op, &c->of, phase, &c->choices[phase]));
	if (!engine->plan)
		op->algorithms[phase] = MU_CONVOLUTION_DIRECT;
	log_choice(op, phase);
	nbytes = c->choices[phase].nbytes;
	if (engine->plan && nbytes < (size_t)engine->nbytes)
		nbytes = (size_t)engine->nbytes;
	if (c->weight_nbytes + nbytes > op->scratch_nbytes)
		op->scratch_nbytes = c->weight_nbytes + nbytes;
out:
	return st;
}

/* ---- plan ---- */

static enum mu_status describe(struct cuda_device *d, const struct mu_op *op, struct convolution *c)
{
	const struct mu_convolution *a = op->attr;
	const struct mu_window w = mu_window_of_convolution(a, &op->inputs[0]->shape);
	const struct cuda_described described = {
		.in = op->inputs[0],
		.out = op->outputs[0],
		.weight = &op->params[0].shape,
		.layout = c->layout,
		.window = &w,
		.groups = mu_dnn_one_or(a->groups),
	};

	return mu_cuda_describe(d, &described, &c->of);
}

static bool can_pad(const struct mu_op *op)
{
	const struct mu_convolution *a = op->attr;

	return op->fusion.feeds_loss && op->phase == MU_PHASE_TRAIN && op->inputs[0]->layout &&
	       a->no_bias && a->groups <= 1 && !op->fusion.activation;
}

static void size_weights(struct mu_op *op, struct convolution *c)
{
	const struct mu_shape *shape = &op->params[0].shape;
	const size_t filters = shape->dims[0], n = mu_shape_n(shape);

	if (can_pad(op))
		mu_cuda_pad_rows(op->outputs[0]);
	c->pad_at = n * HALF_BYTES;
	c->pad_nbytes = n / filters * (mu_cuda_row(op->outputs[0]) - filters) * HALF_BYTES;
	c->weight_nbytes = mu_cuda_round(c->pad_at + c->pad_nbytes);
}

static enum mu_status plan(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	struct convolution *c = calloc(1, sizeof *c);
	const size_t sums = mu_cuda_sums_bytes(d, op->outputs[0]);
	const size_t n = mu_shape_n(&op->outputs[0]->shape);

	op->impl = c;
	if (!c)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the plan of %s", op->name);
	c->layout = op->inputs[0]->layout;
	if (c->layout)
		size_weights(op, c);
	if (mu_shape_n(&op->inputs[0]->shape) > INT_MAX ||
	    n / op->outputs[0]->shape.dims[1] * mu_cuda_row(op->outputs[0]) > INT_MAX)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"%s (convolution): cuDNN takes tensors of at most %d elements; a smaller "
			"batch size is needed",
			op->name, INT_MAX);
	if (mu_shape_n(&op->params[0].shape) <= INT_MAX)
		op->kept_nbytes = c->weight_nbytes;
	MU_TRY(describe(d, op, c));
	MU_TRY(choose(d, op, MU_CONVOLUTION_FORWARD));
	if (op->phase == MU_PHASE_TRAIN)
		MU_TRY(choose(d, op, MU_CONVOLUTION_WEIGHTS));
	if (op->phase == MU_PHASE_TRAIN && op->inputs[0]->needs_grad)
		MU_TRY(choose(d, op, MU_CONVOLUTION_DATA));
	op->can_add = op->phase == MU_PHASE_TRAIN;
	if (op->phase == MU_PHASE_TRAIN && op->scratch_nbytes < sums)
		op->scratch_nbytes = sums;
out:
	return st;
}

static void release(struct cuda_device *d, struct mu_op *op)
{
	struct convolution *c = op->impl;

	for (int phase = 0; phase < MU_CONVOLUTION_PHASES; phase++)
		mu_dnn_release(&d->api, &c->engines[phase]);
	mu_cuda_free_descriptors(d, &c->of);
	free(c);
}

/* ---- work ---- */

static void *room_of(const struct mu_op *op)
{
	const struct convolution *c = op->impl;

	return (char *)op->scratch + c->weight_nbytes;
}

/* Weights as the convolution reads them: the parameter itself, or a copy. */
static enum mu_status weights_of(struct cuda_device *d, const struct mu_op *op, void **out)
{
	enum mu_status st = MU_OK;
	const struct convolution *c = op->impl;
	const struct mu_param *p = &op->params[0];

	*out = p->data;
	if (!c->layout)
		goto out;
	*out = op->kept ? op->kept : op->scratch;
	if (c->pad_nbytes > 0)
		CU(d, cuMemsetD8Async, cuda_pointer(*out) + c->pad_at, 0, c->pad_nbytes, d->work);
	if (op->kept)
		goto out;
	MU_TRY(mu_cuda_convert(d, &p->shape, &(struct cuda_array){p->data, NULL},
			       &(struct cuda_array){op->scratch, c->layout}));
out:
	return st;
}

static enum mu_status forward(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	struct convolution *c = op->impl;
	const struct cuda_algorithm *choice = &c->choices[MU_CONVOLUTION_FORWARD];
	struct dnn_plan *engine = &c->engines[MU_CONVOLUTION_FORWARD];
	void *weights;

	MU_TRY(weights_of(d, op, &weights));
	if (engine->plan) {
		MU_TRY(mu_cuda_run_engine(d, op, MU_CONVOLUTION_FORWARD, engine, weights,
					  room_of(op)));
	} else {
		MU_TRY(mu_cuda_convolve(d, &c->of, MU_CONVOLUTION_FORWARD, choice,
					&(struct cuda_convolved){.x = op->inputs[0]->data,
								 .weight = weights,
								 .y = op->outputs[0]->data,
								 .room = room_of(op)}));
	}
	MU_TRY(mu_cuda_add_bias(d, op));
out:
	return st;
}

static enum mu_status backward_weights(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	struct convolution *c = op->impl;
	const struct cuda_algorithm *choice = &c->choices[MU_CONVOLUTION_WEIGHTS];
	struct dnn_plan *engine = &c->engines[MU_CONVOLUTION_WEIGHTS];
	const struct mu_param *p = &op->params[0];
	void *gradient = op->kept ? op->kept : c->layout ? op->scratch : p->grad;
	const bool adds = op->adds && !c->layout;

	if (engine->plan && !adds) {
		MU_TRY(mu_cuda_run_engine(d, op, MU_CONVOLUTION_WEIGHTS, engine, gradient,
					  room_of(op)));
	} else {
		MU_TRY(mu_cuda_convolve(d, &c->of, MU_CONVOLUTION_WEIGHTS, choice,
					&(struct cuda_convolved){.x = op->inputs[0]->data,
								 .weight = gradient,
								 .y = op->outputs[0]->grad,
								 .room = room_of(op),
								 .adds = adds}));
	}
	if (c->layout && !op->kept)
		MU_TRY((op->adds ? mu_cuda_convert_add : mu_cuda_convert)(
			d, &p->shape, &(struct cuda_array){gradient, c->layout},
			&(struct cuda_array){p->grad, NULL}));
	MU_TRY(mu_cuda_bias_gradient(d, op, op->scratch));
out:
	return st;
}

static enum mu_status backward_data(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	struct convolution *c = op->impl;
	const struct cuda_algorithm *choice = &c->choices[MU_CONVOLUTION_DATA];
	struct dnn_plan *engine = &c->engines[MU_CONVOLUTION_DATA];
	const struct mu_tensor *in = op->inputs[0];
	void *weights;

	if (!in->needs_grad)
		goto out;
	MU_TRY(weights_of(d, op, &weights));
	if (engine->plan) {
		MU_TRY(mu_cuda_run_engine(d, op, MU_CONVOLUTION_DATA, engine, weights,
					  room_of(op)));
		goto out;
	}
	MU_TRY(mu_cuda_convolve(d, &c->of, MU_CONVOLUTION_DATA, choice,
				&(struct cuda_convolved){.x = in->grad,
							 .weight = weights,
							 .y = op->outputs[0]->grad,
							 .room = room_of(op)}));
out:
	return st;
}

/* The gradient of the weights takes the memory of their copy. */
static enum mu_status backward(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_cuda_undo_activation(d, op));
	MU_TRY(backward_data(d, op));
	MU_TRY(backward_weights(d, op));
out:
	return st;
}

const struct cuda_kind mu_cuda_convolution = {
	.like = &mu_ref_convolution,
	.inputs = CUDA_INPUTS_OF_DTYPE,
	.plan = plan,
	.forward = forward,
	.backward = backward,
	.release = release,
};
