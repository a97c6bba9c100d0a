/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions by cuDNN's graph API: alone, or in one kernel with what stands beside them. Of a
 * batch-norm's neighbours the device uses DNN_FORWARD_STATISTICS (batch_norm.c): the convolution
 * writes its sums after its output (sums_at of struct mu_tensor), and batch-norm's forward, which
 * then reads the output once less, starts from them. dnn/graph.h says which engines are taken.
 *
 * Products of float16 and bfloat16 are summed in float32.
 *
 * Formulas, with u = relu(x a + b), a and b per channel of x (a batch-norm and its ReLU before the
 * convolution), sums per channel:
 *	DNN_FORWARD                  y = w * x
 *	DNN_FORWARD_STATISTICS       y = w * x, sums of y and of y y
 *	DNN_NORM_FORWARD_STATISTICS  y = w * u, sums of y and of y y
 *	DNN_DATA                     dx = w^T * dy
 *	DNN_WEIGHTS                  dw = dy * x
 *	DNN_NORM_WEIGHTS             dw = dy * u
 * The gradient of x with batch-norm's behind it is not asked for: to plan that graph for an A100,
 * which has no engine for it, cuDNN 9.19 writes into freed memory.
 */
#ifndef DEVICE_CUDA_CONVOLUTION_GRAPH_H
#define DEVICE_CUDA_CONVOLUTION_GRAPH_H

#include "device/cuda/dnn/graph.h"
#include "device/window.h"

enum dnn_pattern {
	DNN_FORWARD,
	DNN_FORWARD_STATISTICS,
	DNN_NORM_FORWARD_STATISTICS,
	DNN_DATA,
	DNN_WEIGHTS,
	DNN_NORM_WEIGHTS,
	DNN_N_PATTERNS
};

const char *mu_dnn_pattern_name(enum dnn_pattern pattern); /* "conv + statistics" */

/*
 * cuDNN 9.19 plans DNN_FORWARD, DNN_DATA and DNN_WEIGHTS of every convolution of Muster's networks,
 * and the others at least where mu_dnn_fuses is true: of images, float16, one group, channels and
 * filters in eights.
 */
struct dnn_convolution {
	cudnnDataType_t type; /* of x, w, y and their gradients */
	bool plain;           /* (n, c, space) in memory; else channels are last */
	int axes;             /* of space: 2 or 3 */
	int64_t in[MU_MAX_DIMS]; /* x: samples, channels, sizes in space */
	int64_t filters, groups;
	int64_t kernel[MU_MAX_SPACE], pad[MU_MAX_SPACE], stride[MU_MAX_SPACE],
		dilate[MU_MAX_SPACE];
};

/* A stride, a dilation or a number of groups of struct mu_convolution, where 0 is 1. */
static inline int mu_dnn_one_or(int value)
{
	return value ? value : 1;
}

/* `like`, with the sizes of an input and of a window over it. */
struct dnn_convolution mu_dnn_describe(const struct mu_window *w, const struct mu_shape *in,
				       const struct dnn_convolution *like);
bool mu_dnn_fuses(const struct dnn_convolution *c);

/* Numbers of the tensors' arrays: y and x or their gradients; sums are float32, and NULL where
 * there are none. */
enum dnn_array { DNN_W, DNN_Y, DNN_X, DNN_SUM, DNN_SQUARES, DNN_NORM_A, DNN_NORM_B };

/* As of struct dnn_wish. */
struct dnn_request {
	enum dnn_pattern pattern;
	int engine;
	int64_t most_bytes; /* of scratch */
	bool allow_tf32;    /* for float32 */
};

/* MU_OK without a plan where no engine is fit. An error: cuDNN refused a descriptor. */
enum mu_status mu_dnn_plan(const struct cuda_api *api, const struct dnn_target *target,
			   const struct dnn_convolution *c, const struct dnn_request *request,
			   struct dnn_plan *out);

/*
 * engines.c: plan a phase of a convolution by an engine of the graph API. That is the one that a
 * table of convolutions names for it, in half precision and where TF32 is allowed; or, forward,
 * where the rule is asked for, one that also sums its output for the batch-norm behind it, with
 * room for the sums behind the output. No plan: the caller takes another algorithm, and without
 * sums batch-norm reads the output once more.
 */
void mu_cuda_plan_engine(struct cuda_device *d, struct mu_op *op, enum mu_convolution_phase phase,
			 int64_t most_bytes, struct dnn_plan *plan);
/* weights: as the convolution reads them, or room for their gradient. */
enum mu_status mu_cuda_run_engine(struct cuda_device *d, const struct mu_op *op,
				  enum mu_convolution_phase phase, struct dnn_plan *plan,
				  const void *weights, void *scratch);

#endif
