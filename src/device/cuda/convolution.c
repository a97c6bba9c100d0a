/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolution, by cuDNN. For each phase cuDNN's heuristics list algorithms, the fastest first. The
 * first one is used that is deterministic, needs at most MOST_BYTES of scratch, and is direct:
 * Winograd and Fourier transforms round differently (measured on an H100: cuDNN's Winograd loses
 * up to 2.6e-4 with 3x3 kernels and 3e-2 with 5x5, direct ones 1e-6); then some that are not
 * listed. Products are float32, or TF32 where the device allows it. An engine of the graph API
 * (engines.c) stands in their place where a table of convolutions names one, or where it also sums
 * the output for a batch-norm.
 *
 * In float16 and bfloat16 tensors and weights have channels last, for tensor cores, which
 * accumulate in float32. Weights are rounded and transposed, and their gradient is converted back:
 * parameters stay plain float32. layout.c does so for many convolutions at once, in memory that
 * each keeps during a step; without that memory each call does it, in the scratch.
 */
#include "device/cuda/convolution/descriptors.h"
#include "device/cuda/convolution/graph.h"

#include <limits.h>
#include <stdlib.h>

#include <muster/base.h>

#define MOST_BYTES ((size_t)1 << 30)

/* Results for each algorithm, for each type of arithmetic. */
enum { MAX_FOUND = 4 * CUDNN_CONVOLUTION_FWD_ALGO_COUNT };

enum { HALF_BYTES = 2 };

/* The choice for a phase. */
struct choice {
	int algorithm;
	size_t nbytes;
	cudnnMathType_t math;
};

struct convolution {
	struct cuda_descriptors of;
	struct choice choices[MU_CONVOLUTION_PHASES];
	struct dnn_plan engines[MU_CONVOLUTION_PHASES]; /* where planned, in place of the choice */
	/* Scratch: weights or their gradient in `layout`, 0 and NULL if they are plain; then
	 * cuDNN's workspace. */
	const struct cuda_layout *layout;
	size_t weight_nbytes;
	/* Scores of a softmax whose number is odd: filters of zeros behind the others make rows
	 * aligned, without which cuDNN's kernels take some three times as long. */
	size_t pad_at, pad_nbytes; /* in the weights */
};

static const float one = 1, zero = 0;

/* ---- choice ---- */

/* One of cuDNN's results. */
struct found {
	bool works;
	int algorithm;
	cudnnMathType_t math;
};

/* No Winograd, no Fourier transform. */
#define IS_DIRECT(phase, algorithm) \
	((algorithm) != CUDNN_CONVOLUTION_##phase##_ALGO_WINOGRAD && \
	 (algorithm) != CUDNN_CONVOLUTION_##phase##_ALGO_WINOGRAD_NONFUSED && \
	 (algorithm) != CUDNN_CONVOLUTION_##phase##_ALGO_FFT && \
	 (algorithm) != CUDNN_CONVOLUTION_##phase##_ALGO_FFT_TILING)

static bool is_direct(enum mu_convolution_phase phase, int algorithm)
{
	switch (phase) {
	case MU_CONVOLUTION_FORWARD: return IS_DIRECT(FWD, algorithm);
	case MU_CONVOLUTION_DATA: return IS_DIRECT(BWD_DATA, algorithm);
	default: return IS_DIRECT(BWD_FILTER, algorithm);
	}
}

/* Scratch of this algorithm for the current descriptors. False: it does not support this
 * convolution. */
static bool needs(struct cuda_device *d, const struct convolution *c,
		  enum mu_convolution_phase phase, const struct found *f, size_t *nbytes)
{
	cudnnStatus_t result = d->api.cudnnSetConvolutionMathType(c->of.shape, f->math);

	if (result != CUDNN_STATUS_SUCCESS)
		return false;
	if (phase == MU_CONVOLUTION_FORWARD)
		result = d->api.cudnnGetConvolutionForwardWorkspaceSize(
			d->dnn, c->of.in, c->of.weight, c->of.shape, c->of.out,
			(cudnnConvolutionFwdAlgo_t)f->algorithm, nbytes);
	else if (phase == MU_CONVOLUTION_DATA)
		result = d->api.cudnnGetConvolutionBackwardDataWorkspaceSize(
			d->dnn, c->of.weight, c->of.out, c->of.shape, c->of.in,
			(cudnnConvolutionBwdDataAlgo_t)f->algorithm, nbytes);
	else
		result = d->api.cudnnGetConvolutionBackwardFilterWorkspaceSize(
			d->dnn, c->of.in, c->of.out, c->of.shape, c->of.weight,
			(cudnnConvolutionBwdFilterAlgo_t)f->algorithm, nbytes);
	return result == CUDNN_STATUS_SUCCESS;
}

/* The first one that can be had. */
static bool take(struct cuda_device *d, struct mu_op *op, enum mu_convolution_phase phase,
		 const struct found *found, int n)
{
	struct convolution *c = op->impl;
	size_t nbytes;

	for (int i = 0; i < n; i++) {
		const struct found *f = &found[i];

		if (!f->works || !is_direct(phase, f->algorithm) ||
		    !needs(d, c, phase, f, &nbytes) || nbytes > MOST_BYTES)
			continue;
		c->choices[phase] = (struct choice){f->algorithm, nbytes, f->math};
		return true;
	}
	return false;
}

/* The three kinds of results have the same members. */
#define KEEP(found, n, results) \
	for (int i_ = 0; i_ < (n); i_++) \
		(found)[i_] = (struct found) \
		{ \
			(results)[i_].status == CUDNN_STATUS_SUCCESS && \
				(results)[i_].determinism == CUDNN_DETERMINISTIC, \
				(int)(results)[i_].algo, (results)[i_].mathType \
		}

static enum mu_status ask(struct cuda_device *d, const struct convolution *c,
			  enum mu_convolution_phase phase, struct found *found, int *n)
{
	enum mu_status st = MU_OK;
	cudnnConvolutionFwdAlgoPerf_t forward[MAX_FOUND];
	cudnnConvolutionBwdDataAlgoPerf_t data[MAX_FOUND];
	cudnnConvolutionBwdFilterAlgoPerf_t weights[MAX_FOUND];

	*n = 0;
	switch (phase) {
	case MU_CONVOLUTION_FORWARD:
		DNN(d, cudnnGetConvolutionForwardAlgorithm_v7, d->dnn, c->of.in, c->of.weight,
		    c->of.shape, c->of.out, MAX_FOUND, n, forward);
		KEEP(found, *n, forward);
		break;
	case MU_CONVOLUTION_DATA:
		DNN(d, cudnnGetConvolutionBackwardDataAlgorithm_v7, d->dnn, c->of.weight, c->of.out,
		    c->of.shape, c->of.in, MAX_FOUND, n, data);
		KEEP(found, *n, data);
		break;
	default:
		DNN(d, cudnnGetConvolutionBackwardFilterAlgorithm_v7, d->dnn, c->of.in, c->of.out,
		    c->of.shape, c->of.weight, MAX_FOUND, n, weights);
		KEEP(found, *n, weights);
	}
out:
	return st;
}

/* float32 is never rounded to float16, and to TF32 only where `most` is not FMA, whatever the list
 * says. */
static void limit_math(struct found *found, int n, cudnnMathType_t most)
{
	for (int i = 0; i < n; i++)
		found[i].math = found[i].math == CUDNN_FMA_MATH ? CUDNN_FMA_MATH : most;
}

/* For convolutions whose list has no deterministic algorithm: cuDNN's heuristics leave some out
 * that work, for instance in float32 for gradients of the weights of 1x1 kernels with stride 2. All
 * of these are direct and deterministic. The gradients' ALGO_0 is not: it adds by atomics. */
static bool take_unlisted(struct cuda_device *d, struct mu_op *op, enum mu_convolution_phase phase)
{
	const struct convolution *c = op->impl;
	const cudnnMathType_t math = mu_cuda_dnn_math(d, c->layout);
	const struct found forward[] = {
		{true, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, math},
		{true, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, math},
		{true, CUDNN_CONVOLUTION_FWD_ALGO_GEMM, math}};
	const struct found data[] = {{true, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, math}};
	const struct found weights[] = {{true, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, math}};

	switch (phase) {
	case MU_CONVOLUTION_FORWARD:
		return take(d, op, phase, forward, sizeof forward / sizeof *forward);
	case MU_CONVOLUTION_DATA: return take(d, op, phase, data, 1);
	default: return take(d, op, phase, weights, 1);
	}
}

static void log_choice(const struct mu_op *op, enum mu_convolution_phase phase)
{
	static const char *const phases[MU_CONVOLUTION_PHASES] = {
		[MU_CONVOLUTION_FORWARD] = "forward",
		[MU_CONVOLUTION_DATA] = "data",
		[MU_CONVOLUTION_WEIGHTS] = "weights",
	};
	const struct convolution *c = op->impl;
	const struct choice *choice = &c->choices[phase];
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

static enum mu_status choose_algorithm(struct cuda_device *d, struct mu_op *op,
				       enum mu_convolution_phase phase)
{
	enum mu_status st = MU_OK;
	struct convolution *c = op->impl;
	struct found found[MAX_FOUND];
	int n;

	DNN(d, cudnnSetConvolutionMathType, c->of.shape, mu_cuda_dnn_math(d, c->layout));
	MU_TRY(ask(d, c, phase, found, &n));
	if (!c->layout)
		limit_math(found, n, mu_cuda_dnn_math(d, NULL));
	if (!take(d, op, phase, found, n) && !take_unlisted(d, op, phase))
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"%s (convolution): cuDNN has no direct algorithm that gives the same bits "
			"in every run; another kernel, stride or number of groups is needed",
			op->name);
	if (!c->engines[phase].plan)
		op->algorithms[phase] = MU_CONVOLUTION_DIRECT;
out:
	return st;
}

static enum mu_status choose(struct cuda_device *d, struct mu_op *op,
			     enum mu_convolution_phase phase)
{
	enum mu_status st = MU_OK;
	struct convolution *c = op->impl;
	struct dnn_plan *engine = &c->engines[phase];
	size_t nbytes;

	mu_cuda_plan_engine(d, op, phase, (int64_t)MOST_BYTES, engine);
	/* Engines set a gradient, and cannot add to it in place as micro-batches do. */
	if (!engine->plan || (phase == MU_CONVOLUTION_WEIGHTS && !c->layout))
		MU_TRY(choose_algorithm(d, op, phase));
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
static enum mu_status weights_of(struct cuda_device *d, const struct mu_op *op, const void **out)
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
	const struct choice *choice = &c->choices[MU_CONVOLUTION_FORWARD];
	struct dnn_plan *engine = &c->engines[MU_CONVOLUTION_FORWARD];
	const void *weights;

	MU_TRY(weights_of(d, op, &weights));
	if (engine->plan) {
		MU_TRY(mu_cuda_run_engine(d, op, MU_CONVOLUTION_FORWARD, engine, weights,
					  room_of(op)));
	} else {
		DNN(d, cudnnSetConvolutionMathType, c->of.shape, choice->math);
		DNN(d, cudnnConvolutionForward, d->dnn, &one, c->of.in, op->inputs[0]->data,
		    c->of.weight, weights, c->of.shape,
		    (cudnnConvolutionFwdAlgo_t)choice->algorithm, room_of(op), choice->nbytes,
		    &zero, c->of.out, op->outputs[0]->data);
	}
	MU_TRY(mu_cuda_add_bias(d, op));
out:
	return st;
}

static enum mu_status backward_weights(struct cuda_device *d, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	struct convolution *c = op->impl;
	const struct choice *choice = &c->choices[MU_CONVOLUTION_WEIGHTS];
	struct dnn_plan *engine = &c->engines[MU_CONVOLUTION_WEIGHTS];
	const struct mu_param *p = &op->params[0];
	void *gradient = op->kept ? op->kept : c->layout ? op->scratch : p->grad;
	const float *keep = op->adds && !c->layout ? &one : &zero;

	if (engine->plan && keep == &zero) {
		MU_TRY(mu_cuda_run_engine(d, op, MU_CONVOLUTION_WEIGHTS, engine, gradient,
					  room_of(op)));
	} else {
		DNN(d, cudnnSetConvolutionMathType, c->of.shape, choice->math);
		DNN(d, cudnnConvolutionBackwardFilter, d->dnn, &one, c->of.in, op->inputs[0]->data,
		    c->of.out, op->outputs[0]->grad, c->of.shape,
		    (cudnnConvolutionBwdFilterAlgo_t)choice->algorithm, room_of(op), choice->nbytes,
		    keep, c->of.weight, gradient);
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
	const struct choice *choice = &c->choices[MU_CONVOLUTION_DATA];
	struct dnn_plan *engine = &c->engines[MU_CONVOLUTION_DATA];
	const struct mu_tensor *in = op->inputs[0];
	const void *weights;

	if (!in->needs_grad)
		goto out;
	MU_TRY(weights_of(d, op, &weights));
	if (engine->plan) {
		MU_TRY(mu_cuda_run_engine(d, op, MU_CONVOLUTION_DATA, engine, weights,
					  room_of(op)));
		goto out;
	}
	DNN(d, cudnnSetConvolutionMathType, c->of.shape, choice->math);
	DNN(d, cudnnConvolutionBackwardData, d->dnn, &one, c->of.weight, weights, c->of.out,
	    op->outputs[0]->grad, c->of.shape, (cudnnConvolutionBwdDataAlgo_t)choice->algorithm,
	    room_of(op), choice->nbytes, &zero, c->of.in, in->grad);
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
