/* SPDX-License-Identifier: Apache-2.0 */
/* Continuation of args.h: the layers of transformers. */
#ifndef DEVICE_CUDA_TRANSFORMER_ARGS_H
#define DEVICE_CUDA_TRANSFORMER_ARGS_H

/* ---- smooth activations: values of enum mu_activation_kind ---- */

enum { CUDA_GELU = 3, CUDA_GELU_TANH, CUDA_SILU };

/* y = f(x); backward: y = dy f'(x) */
struct cuda_smooth {
	const void *x, *dy;
	void *y;
	int type, kind;
	size_t n;
};
#define cuda_smooth_backward cuda_smooth

/* ---- layer norm: (samples, channels, area); a row is the channels of a position ---- */

/* xhat = (x - mean) factor */
struct cuda_row_statistics {
	float mean, factor;
};

struct cuda_layer_norm {
	const void *x;
	void *y;
	const float *gamma, *beta;              /* beta NULL: 0 */
	struct cuda_row_statistics *statistics; /* of each row, for backward; NULL: not kept */
	int type, rms;
	float eps;
	size_t channels, area;
	size_t n;
};

struct cuda_layer_norm_backward {
	const void *x, *dy;
	void *dx;
	const float *gamma;
	const struct cuda_row_statistics *statistics;
	int type, rms;
	size_t channels, area;
	size_t n;
};

/* Partial sums of each channel, of dy xhat and of dy: lane l adds `rows / lanes` neighbouring rows.
 * An element is a lane and eight channels. */
struct cuda_layer_norm_sums {
	const void *x, *dy;
	const struct cuda_row_statistics *statistics;
	float *first, *second; /* (lanes, channels) */
	int type;
	size_t channels, area, rows, lanes;
	size_t n;
};

/* ---- positions: (samples, c, steps), or with `last` (samples, steps, c) ---- */

/* y(t) = x(t - first) + weight[t]; first 1: y(0) = token + weight[0] */
struct cuda_positions {
	const void *x;
	const float *weight, *token;
	void *y;
	int type, last;
	size_t c, steps, first; /* steps: of y */
	size_t n;
};

/* Gradients of weight (most, c), then, where it is not NULL, of token (c): sums over samples. */
struct cuda_positions_backward {
	const void *dy;
	float *weight, *token;
	int type, last, adds; /* adds: add to the present values */
	size_t samples, c, steps, most;
	size_t n;
};

/* ---- one step: y (samples, c), float32, of x as above; backward: n elements of dx ---- */

struct cuda_pick_step {
	const void *x;
	float *y;
	int type, last;
	size_t c, steps, step;
	size_t n;
};

struct cuda_pick_step_backward {
	const float *dy;
	void *dx;
	int type, last;
	size_t c, steps, step;
	size_t n;
};

/* ---- attention ---- */

/*
 * Between a tensor of struct mu_attention and its heads: the queries (samples, heads, steps, d),
 * then keys and values (samples, kv, steps, d) each; kv 0: only the former. angles (steps, d / 2):
 * cosine and sine of the rotation of queries and keys, which join_heads undoes; NULL: none.
 */
struct cuda_heads {
	const void *from;
	void *to;
	int from_type, to_type, last; /* last: the tensor is (samples, steps, channels) */
	const float *angles;
	size_t samples, steps, heads, kv, d;
	size_t n;
};
#define cuda_split_heads cuda_heads
#define cuda_join_heads cuda_heads

/*
 * Rows of scores become weights. The rows are `rows` queries of each sample and head of keys,
 * counted over the heads that share those keys: from number `first`, first / steps being the head
 * and first % steps the step. Each has `keys` scores; those that the query does not see become 0.
 * backward: `grads` are gradients of the weights; `slopes` become those of the scores. Outputs may
 * be the inputs.
 */
struct cuda_attend {
	const float *scores, *grads;
	void *weights, *slopes;
	int type, causal;
	size_t keys, rows, first, sample, steps, heads, kv;
	/* dropout, as of struct cuda_dropout */
	const uint32_t *ids, *epochs;
	uint64_t seed, element;
	uint32_t epoch, purpose;
	float p;
	size_t n;
};
#define cuda_attend_backward cuda_attend

#endif
