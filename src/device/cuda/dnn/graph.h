/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuDNN's graph API: a graph of operations, which cuDNN makes one kernel, or a few, of. A graph is
 * built tensor by tensor and operation by operation, then planned: for a handle's GPU, or for a GPU
 * that this machine lacks, from its properties in JSON ("without a device", cuDNN 9.8 and later),
 * which is how tests show what every network gets on which GPU.
 *
 * An engine is taken if cuDNN says that it gives the same bits in every run, and if it is direct
 * (no Winograd or Fourier transform) and keeps to the limit of scratch: the first of cuDNN's
 * heuristics (fastest first), else of its list of engines that always work. Numbers of float32 are
 * rounded to TF32 only where the wish allows it.
 */
#ifndef DEVICE_CUDA_DNN_GRAPH_H
#define DEVICE_CUDA_DNN_GRAPH_H

#include "device/cuda/cuda.h"

typedef cudnnBackendDescriptor_t dnn_part;

/* The GPU to plan for: the handle's, or one of these properties; the other is NULL. */
struct dnn_target {
	cudnnHandle_t handle;
	dnn_part properties;
};

/* From JSON as cuDNN prints it. Freed by cudnnBackendDestroyDescriptor. */
enum mu_status mu_dnn_properties(const struct cuda_api *api, const char *json, dnn_part *out);

/* Arrays of the graph's tensors, by their numbers, in GPU memory, aligned to 16 bytes; of those
 * passed by value in the host's. NULL: the graph has no tensor of this number. */
enum { DNN_MOST_ARRAYS = 14 };
struct dnn_arrays {
	const void *of[DNN_MOST_ARRAYS];
	void *scratch;
};

struct dnn_plan {
	dnn_part plan; /* NULL: no engine does it */
	dnn_part pack; /* these arrays, for cuDNN; NULL: none yet */
	struct dnn_arrays arrays;
	int64_t engine, nbytes; /* number of the engine; scratch */
	bool tensor_cores;
	bool lent;           /* `plan` is another's */
	dnn_part parts[112]; /* of the graph */
	int n_parts;
};

/* The same plan, for arrays of its own; released before `from`. */
struct dnn_plan mu_dnn_lend(const struct dnn_plan *from);
void mu_dnn_release(const struct cuda_api *api, struct dnn_plan *plan);
/* launch.c: submit the work of a plan. A call with the arrays of the last one allocates nothing. */
enum mu_status mu_dnn_run(struct cuda_device *d, struct dnn_plan *plan,
			  const struct dnn_arrays *arrays);

/* ---- a graph while it is built ---- */

/* After the first error later calls have no effect. */
struct dnn_graph {
	const struct cuda_api *api;
	struct dnn_plan *plan; /* owns the parts */
	enum mu_status st;
	int n_computed, n_ops;
	dnn_part ops[32];
};

/* `plan` is emptied. */
void mu_dnn_graph(struct dnn_graph *g, const struct cuda_api *api, struct dnn_plan *plan);

/* DNN_COMPUTED: the tensor stays inside the kernel. */
enum { DNN_COMPUTED = -1 };
struct dnn_tensor {
	cudnnDataType_t type;
	int number; /* of its array, or DNN_COMPUTED */
	bool by_value;
	int ndims;
	int64_t sizes[MU_MAX_DIMS], strides[MU_MAX_DIMS];
};
dnn_part mu_dnn_tensor(struct dnn_graph *g, const struct dnn_tensor *t);

/* A descriptor, its settings, its end. */
dnn_part mu_dnn_begin(struct dnn_graph *g, cudnnBackendDescriptorType_t kind);
void mu_dnn_set(struct dnn_graph *g, dnn_part d, cudnnBackendAttributeName_t name,
		cudnnBackendAttributeType_t type, int64_t n, const void *values);
void mu_dnn_set_part(struct dnn_graph *g, dnn_part d, cudnnBackendAttributeName_t name,
		     dnn_part value);
void mu_dnn_end(struct dnn_graph *g, dnn_part d, const char *what);
/* The end of an operation, which follows those before it. */
void mu_dnn_add_op(struct dnn_graph *g, dnn_part op, const char *what);

/* y = x (mode) b in float32, or of truth values; b and t may be NULL. BINARY_SELECT: y = t ? x : b.
 * GEN_INDEX: the index along `axis`, else -1. */
struct dnn_pointwise {
	cudnnPointwiseMode_t mode;
	dnn_part x, b, t, y;
	bool of_truth;
	int axis;
};
void mu_dnn_pointwise(struct dnn_graph *g, const struct dnn_pointwise *p);

/* type: of the factors. engine: of those that are fit, in the order of both of cuDNN's lists, this
 * one or none; or DNN_FIRST, the first that can be planned. */
enum { DNN_FIRST = -1 };
struct dnn_wish {
	cudnnDataType_t type;
	int engine;
	int64_t most_bytes; /* of scratch */
	bool allow_tf32;    /* for float32 */
};

/* MU_OK without a plan where no engine is fit. An error: cuDNN refused a descriptor. */
enum mu_status mu_dnn_finish(struct dnn_graph *g, const struct dnn_target *target,
			     const struct dnn_wish *wish);

#endif
