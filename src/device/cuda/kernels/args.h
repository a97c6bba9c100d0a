/* SPDX-License-Identifier: Apache-2.0 */
/* Arguments of the kernels, shared by kernels.cu and by the code that launches them. n is the
 * number of elements, or of rows, of a kernel's loop. Sizes are in elements. */
#ifndef DEVICE_CUDA_KERNELS_ARGS_H
#define DEVICE_CUDA_KERNELS_ARGS_H

#include <stddef.h>
#include <stdint.h>

#include <muster/device.h>
#include <muster/update.h>

#include "attention_args.h"
#include "batch_norm_args.h"
#include "loss_args.h"
#include "space_args.h"

/* Kernels over elements; over groups of eight elements; over rows, with one block of threads per
 * row; and over rows with one warp per row. */
#define CUDA_EACH(F) \
	F(convert) \
	F(unpack) \
	F(copy_rows) \
	F(dropout) \
	F(normals) \
	F(normalize_float16) \
	F(normalize_bfloat16) \
	F(normalize_backward_float16) \
	F(normalize_backward_bfloat16) \
	F(lrn) \
	F(lrn_backward) \
	F(pool) \
	F(pool_backward) \
	F(pool_float16) \
	F(pool_bfloat16) \
	F(pool_backward_float16) \
	F(pool_backward_bfloat16) \
	F(softmax_backward) \
	F(embed) \
	F(to_steps) \
	F(from_steps) \
	F(lstm_weights) \
	F(lstm_gradients) \
	F(layer_norm_sums) \
	F(positions) \
	F(positions_backward) \
	F(pick_step) \
	F(pick_step_backward) \
	F(update) \
	F(element_loss_backward) \
	F(region_softmax) \
	F(region_totals) \
	F(region_backward) \
	F(group_sums) \
	F(group_means) \
	F(group_gradients) \
	F(upsample) \
	F(upsample_backward) \
	F(pad)
#define CUDA_EIGHTS(F) \
	F(scale) \
	F(activate) \
	F(activate_backward) \
	F(add_bias) \
	F(add) \
	F(multiply) \
	F(normalize) \
	F(normalize_backward) \
	F(smooth) \
	F(smooth_backward) \
	F(product_of) \
	F(product_of_backward) \
	F(group_norm) \
	F(group_norm_backward) \
	F(split_heads) \
	F(join_heads)
#define CUDA_ROWS(F) \
	F(channel_sums) \
	F(statistics) \
	F(normal_sums) \
	F(plane_sums) \
	F(value_sums_float16) \
	F(value_sums_bfloat16) \
	F(gradient_sums_float16) \
	F(gradient_sums_bfloat16) \
	F(joined_sums_float16) \
	F(joined_sums_bfloat16) \
	F(lay_weights) \
	F(softmax) \
	F(softmax_halves) \
	F(element_loss) \
	F(region_sums) \
	F(group_totals) \
	F(embed_backward)
#define CUDA_WARPS(F) \
	F(layer_norm) \
	F(layer_norm_backward) \
	F(attend) \
	F(attend_backward)
#define CUDA_KERNELS(F) \
	CUDA_EACH(F) \
	CUDA_EIGHTS(F) \
	CUDA_ROWS(F) \
	CUDA_WARPS(F)

enum { CUDA_THREADS = 256, CUDA_WARP = 32 }; /* of a block; of a warp */

/* enum mu_activation_kind, or none */
enum { CUDA_RELU, CUDA_TANH, CUDA_SIGMOID, CUDA_LINEAR = -1 };

/* Type of the numbers behind a void pointer; the values of enum mu_dtype. */
enum { CUDA_FLOAT32, CUDA_FLOAT16, CUDA_BFLOAT16 };

/* x *= factor; sets *found to 1 if a result is not finite. */
struct cuda_scale {
	float *x;
	float factor;
	uint32_t *found;
	size_t n;
};

/* Convert between types and layouts of (samples, channels, area); last: (samples, area, channels).
 * If only `from` is so, its rows are `row` elements apart. adds: add to the present values. */
struct cuda_convert {
	const void *from;
	void *to;
	int from_type, to_type, from_last, to_last, adds;
	size_t row, channels, area;
	size_t n;
};

/*
 * Convert weights (filters, channels, area) between float32 and 16-bit numbers with channels last:
 * many arrays at once, each of n elements, whose first row is `first`. A row is CUDA_WEIGHTS_ROW
 * elements. back: to float32, which adds to the present values with `adds`.
 */
enum { CUDA_MAX_WEIGHTS = 96, CUDA_WEIGHTS_ROW = 2048 };
struct cuda_weights {
	float *plain;
	uint16_t *laid;
	uint32_t n, channels, area, first;
	int adds;
};
struct cuda_lay_weights {
	struct cuda_weights of[CUDA_MAX_WEIGHTS];
	int n_of, type, back;
	size_t n;
};

/*
 * Bytes (samples, channels, area) become (byte - mean) / std of their channel; at most 3 channels.
 */
struct cuda_unpack {
	const unsigned char *from;
	void *to;
	int to_type, to_last;
	size_t channels, area;
	float mean[3], std[3];
	size_t n; /* with to_last positions, else elements */
};

/* y = f(x); x may be y */
struct cuda_activate {
	const void *x;
	void *y;
	int type, kind;
	size_t n;
};

/* dx = dy f'(x) from y = f(x); dx may be dy */
struct cuda_activate_backward {
	const void *y, *dy;
	void *dx;
	int type, kind;
	size_t n;
};

/* y = f(y + bias of its channel); bias may be NULL */
struct cuda_add_bias {
	void *y;
	const float *bias;
	size_t area, channels;
	int type, kind;
	size_t n;
};

/* y = f(x[0] + x[1] + ...), or with `of`, values of f: (x[0] + x[1] + ...) f'; x[0] may be y */
enum { CUDA_MAX_ADDED = 16 };
struct cuda_add {
	const void *x[CUDA_MAX_ADDED];
	int n_x;
	const void *of;
	void *y;
	int type, kind;
	size_t n;
};

/* y = x factor; x may be y */
struct cuda_multiply {
	const void *x;
	const float *factor;
	void *y;
	int type;
	size_t n;
};

/* y = a b; backward: da = dy b, db = dy a, either NULL: not wanted */
struct cuda_product_of {
	const void *a, *b, *dy;
	void *y, *da, *db;
	int type;
	size_t n;
};
#define cuda_product_of_backward cuda_product_of

/* Copy rows of `row` elements from distance from_step to distance to_step. */
struct cuda_copy_rows {
	const void *from;
	void *to;
	int type;
	size_t row, from_step, to_step;
	size_t n;
};

/* y = x mask, with the mask of mu_random_uniform; ids may be NULL: 0, 1, 2, ... x may be y.
 * Elements are counted in plain order, (channels, area); last: memory order is (area, channels). */
struct cuda_dropout {
	const void *x;
	void *y;
	float *mask;
	int type, last;
	size_t channels, area;
	const uint32_t *ids, *epochs; /* epochs[0] is the epoch; NULL: `epoch` is */
	uint64_t seed, first, from;   /* draws of the operation; elements of a sample before x */
	uint32_t epoch, purpose;
	float p;
	size_t n;
};

/* ---- lrn ---- */

struct cuda_lrn {
	const float *x;
	float *y, *scale; /* scale is kept for backward; NULL: not kept */
	size_t channels, area;
	int size;
	float alpha, beta, k;
	size_t n;
};

struct cuda_lrn_backward {
	const float *x, *scale, *dy;
	float *dx;
	size_t channels, area;
	int size;
	float alpha, beta;
	size_t n;
};

/* ---- pooling: axes are height, width, and the depth of volumes, else 1 ---- */

struct cuda_windows {
	int in[CUDA_SPACE], out[CUDA_SPACE], kernel[CUDA_SPACE], stride[CUDA_SPACE];
	int pad[CUDA_SPACE];
	int average;
};

/* planes: number of planes interleaved element by element; 1: consecutive planes. winners: where
 * maxima are, as ints, in the plane; for the kernels of a type as bytes, in the window, of which
 * padding is a part. */
struct cuda_pool {
	struct cuda_windows w;
	const void *x;
	void *y;
	int type;
	size_t planes;
	void *winners; /* of each y, see above; NULL: not needed */
	size_t n;      /* of y; groups of eight planes for the kernels of a type */
};
#define cuda_pool_float16 cuda_pool
#define cuda_pool_bfloat16 cuda_pool

struct cuda_pool_backward {
	struct cuda_windows w;
	const void *dy;
	const void *winners; /* of maxima */
	void *dx;
	int type;
	size_t planes;
	size_t n; /* of dx; groups of eight planes for the kernels of a type */
};
#define cuda_pool_backward_float16 cuda_pool_backward
#define cuda_pool_backward_bfloat16 cuda_pool_backward

/* ---- embedding: y (samples, units, area) ---- */

struct cuda_embed {
	const float *x, *weight;
	float *y;
	uint32_t *bad; /* set to 1 if a number that counts is not in 0 .. inputs - 1 */
	size_t units, area, count;
	int inputs;
	size_t n;
};

struct cuda_embed_backward {
	const float *x, *dy;
	float *dw; /* is added to */
	size_t units, area, count;
	int inputs;
	size_t n; /* positions of all samples */
};

/* ---- lstm ---- */

/* Arrays of steps are (steps, samples, c); tensors are (samples, c, steps), or with `last`
 * (samples, steps, c); both have one type. */
struct cuda_steps {
	const void *from;
	void *to;
	int type, last;
	size_t samples, c, steps;
	size_t n;
};
#define cuda_to_steps cuda_steps
#define cuda_from_steps cuda_steps

/*
 * Copy between the parameters of struct mu_lstm, or their gradients, and cuDNN's weight space: gate
 * g of parameter p starts there at element at[p][g], with `units` rows of width[p]. n elements in
 * total.
 */
enum { CUDA_LSTM_PARAMS = 4, CUDA_LSTM_GATES = 4 };
struct cuda_lstm_space {
	float *params[CUDA_LSTM_PARAMS];
	void *space;
	int type, adds; /* adds: add gradients to the present values */
	size_t units, width[CUDA_LSTM_PARAMS], at[CUDA_LSTM_PARAMS][CUDA_LSTM_GATES];
	size_t n;
};
#define cuda_lstm_weights cuda_lstm_space
#define cuda_lstm_gradients cuda_lstm_space

/* ---- updates: struct mu_device_update ---- */

struct cuda_update {
	float *weights;
	const float *gradients;
	float *states[3];
	const unsigned char *classes;
	struct mu_element of[MU_ELEMENT_CLASSES];
	size_t n;
};

/* ---- smooth activations: values of enum mu_activation_kind ---- */

enum {
	CUDA_GELU = 3,
	CUDA_GELU_TANH,
	CUDA_SILU,
	CUDA_LEAKY_RELU,
	CUDA_ELU,
	CUDA_SOFTPLUS,
	CUDA_SCALED_TANH
};

/* y = f(x); backward: y = dy f'(x) */
struct cuda_smooth {
	const void *x, *dy;
	void *y;
	int type, kind;
	float parameter;
	size_t n;
};
#define cuda_smooth_backward cuda_smooth

/* ---- layer norm: (samples, channels, area); a row is the channels of a position ---- */

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

#endif
