/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Attention on a GPU, shared by its files: attention.c, by products of cuBLAS; heads.c, what both
 * do with the heads of a tensor; fused.c, by kernels of cuDNN's that do not write scores to memory;
 * fused_graph.c, their graphs and plans.
 */
#ifndef DEVICE_CUDA_SEQUENCES_ATTENTION_H
#define DEVICE_CUDA_SEQUENCES_ATTENTION_H

#include "device/cuda/dnn/graph.h"

/* impl of the operation */
struct attention {
	CUdeviceptr angles;  /* see struct cuda_heads; 0: none */
	struct fused *fused; /* NULL: by products */
};

struct attention_sizes {
	size_t n, steps, heads, kv, d, channels; /* of the input */
	size_t rows;                             /* of queries that share keys */
	size_t block_rows, block_samples;
	size_t queries, keys; /* elements of each of the heads' arrays */
	int type;
};
struct attention_sizes mu_cuda_attention_sizes(const struct mu_op *op);
bool mu_cuda_attention_drops(const struct mu_op *op); /* weights, by dropout */

/* Room for n bytes in the scratch, behind *nbytes, which grows; NULL where scratch is. */
void *mu_cuda_room(char *scratch, size_t *nbytes, size_t n);

/* ---- heads.c: between tensors and arrays whose heads are contiguous, (steps, d) ---- */

enum mu_status mu_cuda_upload_angles(struct cuda_device *d, struct mu_op *op);
/* Queries, keys and values of all heads, rotated, into x; and back, of gradients of this type, in
 * dx, into the input's. */
enum mu_status mu_cuda_split_input(struct cuda_device *d, const struct mu_op *op, void *x);
enum mu_status mu_cuda_join_input(struct cuda_device *d, const struct mu_op *op, const void *dx,
				  int type);
/* The gradient of the output, and the output. */
enum mu_status mu_cuda_split_output(struct cuda_device *d, const struct mu_op *op, void *dy);
enum mu_status mu_cuda_join_output(struct cuda_device *d, const struct mu_op *op, const void *y);

/* ---- fused.c ---- */

/* cuDNN 9.10 has bugs, and up to 9.15 backward reads behind the last key where the number of keys
 * is no multiple of 128, as cuDNN's own frontend says. */
enum { FUSED_LEAST_CUDNN = 91600 };

/*
 * Where the device is asked for it (fused_attention) and cuDNN's kernels are known to be right:
 * struct attention gets `fused`, and the operation its workspace and scratch; elsewhere a warning
 * says why not. Half precision, channels of a head in eights, no dropout: cuDNN's draws are not
 * ours. In training not one step; and not 64 steps more than a multiple of 128 with all keys: on
 * Hopper cuDNN's backward then counts keys behind the last with a score of 0 (reported for 9.20 to
 * 9.30, pytorch issue 196678), which shows where all scores are near -100. GPUs of compute
 * capability 8 and 9: later ones want settings of an engine for the same bits in every run.
 *
 * cuDNN takes queries, keys and values where the tensor has them, but for rotary ones, which
 * heads.c rotates. Forward keeps of each query the logarithm of its sum, ln(sum exp(score)), (n,
 * heads, steps), in the workspace; backward makes weights of it and of the scores, which it
 * computes again, and reads the output. With w the weights, g = dy v', D = sum over d of dy y:
 *
 *	dv = w' dy      ds = w (g - D) / sqrt d      dq = ds k      dk = ds' q
 *
 * (Dao et al., FlashAttention, 2022, algorithm 4). cuDNN adds to dq in no fixed order unless ds is
 * kept for a product of its own: (n, heads, steps, steps) numbers of the tensor's type in the
 * scratch. Where they are too many, samples are done in several parts; where those of one sample
 * are, attention is by products.
 */
enum mu_status mu_cuda_plan_fused(struct cuda_device *d, struct mu_op *op);
enum mu_status mu_cuda_fused_forward(struct cuda_device *d, const struct mu_op *op);
enum mu_status mu_cuda_fused_backward(struct cuda_device *d, const struct mu_op *op);
void mu_cuda_release_fused(struct cuda_device *d, struct fused *fused);

/* ---- fused_graph.c ---- */

/* Arrays of a graph; the last three are numbers of the host's. */
enum {
	QUERIES,
	KEYS,
	VALUES,
	OUTPUT,
	LOGARITHMS, /* of sums, of each query */
	OUTPUT_GRAD,
	QUERIES_GRAD,
	KEYS_GRAD,
	VALUES_GRAD,
	ROW_SUMS, /* D, of each query */
	SCALE,
	MASKED, /* -infinity */
	ONE,
};

/* Of this type, for samples of an input whose heads are interleaved, or split. */
struct fused_shape {
	cudnnDataType_t type;
	int64_t n, steps, heads, kv, d;
	bool causal, split;
};
enum fused_way { FUSED_FORWARD, FUSED_BACKWARD, FUSED_WAYS };
enum mu_status mu_cuda_fused_plan(const struct cuda_api *api, const struct dnn_target *target,
				  const struct fused_shape *shape, enum fused_way way,
				  int64_t most_bytes, struct dnn_plan *out);
/* The same for the device's GPU, lent: the device keeps all until it is closed, for cuDNN compiles
 * each for 0.3 s. */
enum mu_status mu_cuda_keep_fused_plan(struct cuda_device *d, const struct fused_shape *shape,
				       enum fused_way way, int64_t most_bytes,
				       struct dnn_plan *out);

#endif
