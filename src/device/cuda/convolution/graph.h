/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Convolutions by cuDNN's graph API: alone, or in one kernel with what stands beside them. cuDNN
 * plans a graph for a handle's GPU, or for a GPU that is not there, from its properties in JSON
 * ("without a device", cuDNN 9.8 and later), which is how the test shows what every network gets on
 * which GPU. Of a batch-norm's neighbours the device uses DNN_FORWARD_STATISTICS (norm.c):
 * the convolution writes its sums behind its output (sums_at of struct mu_tensor), and batch-norm's
 * forward, which then reads the output once less, starts from them.
 *
 * Tensors have channels last. Products of float16 and bfloat16 are summed in float32; those of
 * float32 are never rounded to TF32. An engine is taken if it gives the same bits in every run, is
 * direct (no Winograd or Fourier transform), and keeps to the limit of scratch: the first of
 * cuDNN's heuristics (fastest first), else of its list of engines that always work.
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

#include "device/cuda/cuda.h"

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
 * and the others at least where mu_dnn_fuses is true: of float16, one group, channels and filters
 * in eights.
 */
struct dnn_convolution {
	cudnnDataType_t type; /* of x, w, y and their gradients */
	int64_t in[4];        /* x: samples, channels, height, width */
	int64_t filters, kernel[2], pad[2], stride[2], dilate[2], groups;
};

/* A stride, a dilation or a number of groups of struct mu_convolution, where 0 is 1. */
static inline int mu_dnn_one_or(int value)
{
	return value ? value : 1;
}

bool mu_dnn_fuses(const struct dnn_convolution *c);

/* The GPU to plan for: the handle's, or one of these properties; the other is NULL. */
struct dnn_target {
	cudnnHandle_t handle;
	cudnnBackendDescriptor_t properties;
};

/* From JSON as cuDNN prints it. Freed by cudnnBackendDestroyDescriptor. */
enum mu_status mu_dnn_properties(const struct cuda_api *api, const char *json,
				 cudnnBackendDescriptor_t *out);

/* Arrays of the tensors, y and x or their gradients, in GPU memory, aligned to 16 bytes; sums are
 * float32, and NULL where there are none. Not for DNN_NORM. */
enum dnn_array { DNN_W, DNN_Y, DNN_X, DNN_SUM, DNN_SQUARES, DNN_N_ARRAYS };
struct dnn_arrays {
	const void *of[DNN_N_ARRAYS];
	void *scratch;
};

struct dnn_plan {
	cudnnBackendDescriptor_t plan; /* NULL: no engine does it */
	cudnnBackendDescriptor_t pack; /* these arrays, for cuDNN; NULL: none yet */
	struct dnn_arrays arrays;
	int64_t engine, nbytes;        /* number of the engine; scratch */
	bool tensor_cores;
	cudnnBackendDescriptor_t parts[64]; /* of the graph */
	int n_parts;
};

/* engine: of those that are fit, in the order of both of cuDNN's lists, this one or none; or
 * DNN_FIRST, the first that can be planned. */
enum { DNN_FIRST = -1 };
struct dnn_request {
	enum dnn_pattern pattern;
	int engine;
	int64_t most_bytes; /* of scratch */
};

/* MU_OK without a plan where no engine is fit. An error: cuDNN refused a descriptor. */
enum mu_status mu_dnn_plan(const struct cuda_api *api, const struct dnn_target *target,
			   const struct dnn_convolution *c, const struct dnn_request *request,
			   struct dnn_plan *out);
void mu_dnn_release(const struct cuda_api *api, struct dnn_plan *plan);
/* launch.c: submit the work of a plan. A call with the arrays of the last one allocates nothing. */
enum mu_status mu_dnn_run(struct cuda_device *d, struct dnn_plan *plan,
			  const struct dnn_arrays *arrays);

/*
 * engines.c: plan a phase of a convolution by an engine of the graph API. That is the one that a
 * table of convolutions names for it; or, forward, where the rule is asked for, one that also sums
 * its output for the batch-norm behind it, with room for the sums behind the output. No plan: the
 * caller takes another algorithm, and without sums batch-norm reads the output once more.
 */
void mu_cuda_plan_engine(struct cuda_device *d, struct mu_op *op, enum mu_convolution_phase phase,
			 int64_t most_bytes, struct dnn_plan *plan);
/* weights: as the convolution reads them, or room for their gradient. */
enum mu_status mu_cuda_run_engine(struct cuda_device *d, const struct mu_op *op,
				  enum mu_convolution_phase phase, struct dnn_plan *plan,
				  const void *weights, void *scratch);

#endif
