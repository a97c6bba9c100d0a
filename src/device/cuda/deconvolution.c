/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transposed convolution, by cuDNN: forward is the gradient of the data of a convolution that reads
 * y and writes x, the gradient of x is that convolution. In float16 and bfloat16 the weights are
 * rounded and transposed in each call, and their gradient is converted back (convolution.c).
 */
#include "device/cuda/convolution/algorithms.h"

#include <stdlib.h>

#include <muster/base.h>

/* Scratch: weights or their gradient, 0 bytes if they are plain; then cuDNN's workspace. */
struct transposed {
	struct cuda_descriptors of;
	struct cuda_algorithm by[MU_CONVOLUTION_PHASES]; /* phases of the convolution */
	size_t weight_nbytes;
};

static enum mu_status describe(struct cuda_device *d, const struct mu_op *op, struct transposed *t)
{
	const struct mu_deconvolution *a = op->attr;
	const struct mu_window w = mu_window_of_deconvolution(a, &op->inputs[0]->shape);
	const struct cuda_described described = {
		.in = op->outputs[0],
		.out = op->inputs[0],
		.weight = &op->params[0].shape,
		.layout = op->inputs[0]->layout,
		.window = &w,
		.groups = a->groups > 1 ? a->groups : 1,
	};

	return mu_cuda_describe(d, &described, &t->of);
}

static enum mu_status choose(struct cuda_device *d, struct mu_op *op,
			     enum mu_convolution_phase phase)
{
	enum mu_status st = MU_OK;
	struct transposed *t = op->impl;
	const size_t nbytes = t->weight_nbytes;

	MU_TRY(mu_cuda_choose_algorithm(d, op, &t->of, phase, &t->by[phase]));
	if (op->scratch_nbytes < nbytes + t->by[phase].nbytes)
		op->scratch_nbytes = nbytes + t->by[phase].nbytes;
out:
	return st;
}

static enum mu_status plan(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const bool trains = op->phase == MU_PHASE_TRAIN;
	const size_t sums = trains ? mu_cuda_sums_bytes(d, op->outputs[0]) : 0;
	struct transposed *t = calloc(1, sizeof *t);

	op->impl = t;
	if (!t)
		MU_FAIL(MU_ERR_MEMORY, "no memory for the plan of %s", op->name);
	MU_TRY(mu_cuda_check_sizes(d, op));
	if (op->inputs[0]->layout)
		t->weight_nbytes = mu_cuda_round(mu_shape_n(&op->params[0].shape) * sizeof(short));
	MU_TRY(describe(d, op, t));
	MU_TRY(choose(d, op, MU_CONVOLUTION_DATA));
	if (trains)
		MU_TRY(choose(d, op, MU_CONVOLUTION_WEIGHTS));
	if (trains && op->inputs[0]->needs_grad)
		MU_TRY(choose(d, op, MU_CONVOLUTION_FORWARD));
	if (op->scratch_nbytes < sums)
		op->scratch_nbytes = sums;
	op->can_add = trains;
out:
	return st;
}

static void release(struct cuda_device *d, struct mu_op *op)
{
	struct transposed *t = op->impl;

	mu_cuda_free_descriptors(d, &t->of);
	free(t);
}

/* Weights as the convolution reads them: the parameter itself, or a copy. */
static enum mu_status weights_of(struct cuda_device *d, const struct mu_op *op, void **out)
{
	const struct transposed *t = op->impl;
	const struct mu_param *p = &op->params[0];

	*out = t->of.layout ? op->scratch : p->data;
	return t->of.layout ? mu_cuda_convert(d, &p->shape, &(struct cuda_array){p->data, NULL},
					      &(struct cuda_array){*out, t->of.layout})
			    : MU_OK;
}

static enum mu_status convolve(struct cuda_device *d, const struct mu_op *op,
			       enum mu_convolution_phase phase, struct cuda_convolved arrays)
{
	const struct transposed *t = op->impl;

	arrays.room = (char *)op->scratch + t->weight_nbytes;
	return mu_cuda_convolve(d, &t->of, phase, &t->by[phase], &arrays);
}

static enum mu_status forward(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	struct cuda_convolved arrays = {.x = op->outputs[0]->data, .y = op->inputs[0]->data};

	MU_TRY(weights_of(d, op, &arrays.weight));
	MU_TRY(convolve(d, op, MU_CONVOLUTION_DATA, arrays));
	MU_TRY(mu_cuda_add_bias(d, op));
out:
	return st;
}

static enum mu_status backward_weights(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct transposed *t = op->impl;
	const struct mu_param *p = &op->params[0];
	struct cuda_convolved arrays = {.x = op->outputs[0]->grad,
					.y = op->inputs[0]->data,
					.weight = t->of.layout ? op->scratch : p->grad,
					.adds = op->adds && !t->of.layout};

	MU_TRY(convolve(d, op, MU_CONVOLUTION_WEIGHTS, arrays));
	if (t->of.layout)
		MU_TRY((op->adds ? mu_cuda_convert_add : mu_cuda_convert)(
			d, &p->shape, &(struct cuda_array){arrays.weight, t->of.layout},
			&(struct cuda_array){p->grad, NULL}));
	MU_TRY(mu_cuda_bias_gradient(d, op, op->scratch));
out:
	return st;
}

static enum mu_status backward(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	struct cuda_convolved arrays = {.x = op->outputs[0]->grad, .y = op->inputs[0]->grad};

	MU_TRY(backward_weights(d, op));
	if (!op->inputs[0]->needs_grad)
		goto out;
	MU_TRY(weights_of(d, op, &arrays.weight));
	MU_TRY(convolve(d, op, MU_CONVOLUTION_FORWARD, arrays));
out:
	return st;
}

const struct cuda_kind mu_cuda_deconvolution = {
	.like = &mu_ref_deconvolution,
	.inputs = CUDA_INPUTS_OF_DTYPE,
	.plan = plan,
	.forward = forward,
	.backward = backward,
	.release = release,
};
