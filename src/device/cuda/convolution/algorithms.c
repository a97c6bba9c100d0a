/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/convolution/algorithms.h"

#include <muster/base.h>

/* Results for each algorithm, for each type of arithmetic. */
enum { MAX_FOUND = 4 * CUDNN_CONVOLUTION_FWD_ALGO_COUNT };

/* One of cuDNN's results. */
struct found {
	bool works;
	int algorithm;
	cudnnMathType_t math;
};

struct list {
	struct found found[MAX_FOUND];
	int n;
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
static bool needs(struct cuda_device *d, const struct cuda_descriptors *of,
		  enum mu_convolution_phase phase, const struct found *f, size_t *nbytes)
{
	cudnnStatus_t result = d->api.cudnnSetConvolutionMathType(of->shape, f->math);

	if (result != CUDNN_STATUS_SUCCESS)
		return false;
	if (phase == MU_CONVOLUTION_FORWARD)
		result = d->api.cudnnGetConvolutionForwardWorkspaceSize(
			d->dnn, of->in, of->weight, of->shape, of->out,
			(cudnnConvolutionFwdAlgo_t)f->algorithm, nbytes);
	else if (phase == MU_CONVOLUTION_DATA)
		result = d->api.cudnnGetConvolutionBackwardDataWorkspaceSize(
			d->dnn, of->weight, of->out, of->shape, of->in,
			(cudnnConvolutionBwdDataAlgo_t)f->algorithm, nbytes);
	else
		result = d->api.cudnnGetConvolutionBackwardFilterWorkspaceSize(
			d->dnn, of->in, of->out, of->shape, of->weight,
			(cudnnConvolutionBwdFilterAlgo_t)f->algorithm, nbytes);
	return result == CUDNN_STATUS_SUCCESS;
}

/* The first of n that can be had. */
static bool take(struct cuda_device *d, const struct cuda_descriptors *of,
		 enum mu_convolution_phase phase, const struct list *list,
		 struct cuda_algorithm *out)
{
	size_t nbytes;

	for (int i = 0; i < list->n; i++) {
		const struct found *f = &list->found[i];

		if (!f->works || !is_direct(phase, f->algorithm) ||
		    !needs(d, of, phase, f, &nbytes) || nbytes > CUDA_CONVOLUTION_BYTES)
			continue;
		*out = (struct cuda_algorithm){f->algorithm, nbytes, f->math};
		return true;
	}
	return false;
}

/* The three kinds of results have the same members. */
#define KEEP(list, results) \
	for (int i_ = 0; i_ < (list)->n; i_++) \
		(list)->found[i_] = (struct found) \
		{ \
			(results)[i_].status == CUDNN_STATUS_SUCCESS && \
				(results)[i_].determinism == CUDNN_DETERMINISTIC, \
				(int)(results)[i_].algo, (results)[i_].mathType \
		}

static enum mu_status ask(struct cuda_device *d, const struct cuda_descriptors *of,
			  enum mu_convolution_phase phase, struct list *list)
{
	enum mu_status st = MU_OK;
	cudnnConvolutionFwdAlgoPerf_t forward[MAX_FOUND];
	cudnnConvolutionBwdDataAlgoPerf_t data[MAX_FOUND];
	cudnnConvolutionBwdFilterAlgoPerf_t weights[MAX_FOUND];

	list->n = 0;
	switch (phase) {
	case MU_CONVOLUTION_FORWARD:
		DNN(d, cudnnGetConvolutionForwardAlgorithm_v7, d->dnn, of->in, of->weight,
		    of->shape, of->out, MAX_FOUND, &list->n, forward);
		KEEP(list, forward);
		break;
	case MU_CONVOLUTION_DATA:
		DNN(d, cudnnGetConvolutionBackwardDataAlgorithm_v7, d->dnn, of->weight, of->out,
		    of->shape, of->in, MAX_FOUND, &list->n, data);
		KEEP(list, data);
		break;
	default:
		DNN(d, cudnnGetConvolutionBackwardFilterAlgorithm_v7, d->dnn, of->in, of->out,
		    of->shape, of->weight, MAX_FOUND, &list->n, weights);
		KEEP(list, weights);
	}
out:
	return st;
}

/* float32 is never rounded to float16, and to TF32 only where `most` is not FMA, whatever the list
 * says. */
static void limit_math(struct list *list, cudnnMathType_t most)
{
	for (int i = 0; i < list->n; i++)
		list->found[i].math =
			list->found[i].math == CUDNN_FMA_MATH ? CUDNN_FMA_MATH : most;
}

/* For convolutions whose list has no deterministic algorithm: cuDNN's heuristics leave some out
 * that work, for instance in float32 for gradients of the weights of 1x1 kernels with stride 2. All
 * of these are direct and deterministic. The gradients' ALGO_0 is not: it adds by atomics. */
static struct list unlisted(enum mu_convolution_phase phase, cudnnMathType_t math)
{
	switch (phase) {
	case MU_CONVOLUTION_FORWARD:
		return (struct list){
			{{true, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM, math},
			 {true, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_GEMM, math},
			 {true, CUDNN_CONVOLUTION_FWD_ALGO_GEMM, math}},
			3};
	case MU_CONVOLUTION_DATA:
		return (struct list){{{true, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1, math}}, 1};
	default:
		return (struct list){{{true, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1, math}}, 1};
	}
}

enum mu_status mu_cuda_choose_algorithm(struct cuda_device *d, const struct mu_op *op,
					const struct cuda_descriptors *of,
					enum mu_convolution_phase phase, struct cuda_algorithm *out)
{
	enum mu_status st = MU_OK;
	const cudnnMathType_t math = mu_cuda_dnn_math(d, of->layout);
	struct list list, others = unlisted(phase, math);

	DNN(d, cudnnSetConvolutionMathType, of->shape, math);
	MU_TRY(ask(d, of, phase, &list));
	if (!of->layout)
		limit_math(&list, math);
	if (!take(d, of, phase, &list, out) && !take(d, of, phase, &others, out))
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"%s (%s): cuDNN has no direct algorithm that gives the same bits in every "
			"run; another kernel, stride or number of groups is needed",
			op->name, mu_op_kind_name(op->kind));
out:
	return st;
}

enum mu_status mu_cuda_convolve(struct cuda_device *d, const struct cuda_descriptors *of,
				enum mu_convolution_phase phase, const struct cuda_algorithm *by,
				const struct cuda_convolved *a)
{
	enum mu_status st = MU_OK;
	const float one = 1, keep = a->adds ? 1 : 0;

	DNN(d, cudnnSetConvolutionMathType, of->shape, by->math);
	if (phase == MU_CONVOLUTION_FORWARD)
		DNN(d, cudnnConvolutionForward, d->dnn, &one, of->in, a->x, of->weight, a->weight,
		    of->shape, (cudnnConvolutionFwdAlgo_t)by->algorithm, a->room, by->nbytes, &keep,
		    of->out, a->y);
	else if (phase == MU_CONVOLUTION_DATA)
		DNN(d, cudnnConvolutionBackwardData, d->dnn, &one, of->weight, a->weight, of->out,
		    a->y, of->shape, (cudnnConvolutionBwdDataAlgo_t)by->algorithm, a->room,
		    by->nbytes, &keep, of->in, a->x);
	else
		DNN(d, cudnnConvolutionBackwardFilter, d->dnn, &one, of->in, a->x, of->out, a->y,
		    of->shape, (cudnnConvolutionBwdFilterAlgo_t)by->algorithm, a->room, by->nbytes,
		    &keep, of->weight, a->weight);
out:
	return st;
}
