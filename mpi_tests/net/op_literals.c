/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers worked out by hand, and refusals. A new one: an entry here. */
#include "op_literals.h"

static const struct mu_activation relu = {.kind = MU_ACTIVATION_RELU};

/* clang-format off */
#define ATTR(kind, ...) .attr = &(const struct mu_##kind){__VA_ARGS__}
#define CONV(...) .kind = MU_OP_CONVOLUTION, ATTR(convolution, .filters = __VA_ARGS__)
#define DENSE(...) .kind = MU_OP_FULLY_CONNECTED, ATTR(fully_connected, .units = __VA_ARGS__)
#define RELU .kind = MU_OP_ACTIVATION, ATTR(activation, .kind = MU_ACTIVATION_RELU)
#define MAXIMUM(...) .kind = MU_OP_POOLING, ATTR(pooling, __VA_ARGS__)
#define AVERAGE(...) .kind = MU_OP_POOLING, ATTR(pooling, .average = true, __VA_ARGS__)
#define NORM(...) .kind = MU_OP_BATCH_NORM, ATTR(batch_norm, .momentum = 0.5f, .eps = __VA_ARGS__)
#define ELEMENT(...) \
	.kind = MU_OP_ELEMENT_LOSS, ATTR(element_loss, .form = MU_ELEMENT_##__VA_ARGS__)
#define LRN(...) .kind = MU_OP_LRN, ATTR(lrn, .size = __VA_ARGS__)
#define K(height, width) .kernel = {height, width}
#define S(height, width) .stride = {height, width}
#define P(height, width) .pad = {height, width}
#define GROUPS(n) .groups = n
#define NO_BIAS .no_bias = true
#define CEIL .ceil = true
#define IMAGE(n, c, h, w) {4, {n, c, h, w}}
#define VECTOR(n, c) {2, {n, c}}
#define IN(...) .in = {__VA_ARGS__}

const struct op_literal op_literals[] = {
	{
		.c = {"conv by hand", CONV(1, K(2, 2)), IN(IMAGE(1, 1, 3, 3))},
		.in = {1, 2, 3, 4, 5, 6, 7, 8, 9}, .params = {{1, 0, 0, -1}, {0.5f}},
		.out_grad = {1, 2, 3, 4},
		.out = {-3.5f, -3.5f, -3.5f, -3.5f}, /* x[0][0] - x[1][1] + 0.5, ... */
		.in_grad = {1, 2, 0, 3, 4 - 1, -2, 0, -3, -4},
		.param_grads = {{1 + 4 + 12 + 20, 2 + 6 + 15 + 24, 4 + 10 + 21 + 32,
				 5 + 12 + 24 + 36}, {1 + 2 + 3 + 4}},
	},
	{
		/* out[x] = w00 in[0][2x-1] + w01 in[0][2x] + w10 in[2][2x-1] + w11 in[2][2x] */
		.c = {"conv with dilation, padding and stride",
		      CONV(1, K(2, 2), .dilate = {2, 1}, S(1, 2), P(0, 1), NO_BIAS),
		      IN(IMAGE(1, 1, 3, 3))},
		.in = {1, 2, 3, 4, 5, 6, 7, 8, 9}, .params = {{1, 10, 100, 1000}},
		.out_grad = {1, 2},
		.out = {10 * 1 + 1000 * 7, 1 * 2 + 10 * 3 + 100 * 8 + 1000 * 9},
		.in_grad = {10, 2, 20, 0, 0, 0, 1000, 200, 2000},
		.param_grads = {{2 * 2, 1 * 1 + 2 * 3, 2 * 8, 1 * 7 + 2 * 9}},
	},
	{
		.c = {"conv, order of weights", CONV(2, K(1, 1), NO_BIAS), IN(IMAGE(1, 2, 1, 1))},
		.in = {1, 2}, .params = {{1, 2, 3, 4}}, .out_grad = {1, 10}, .out = {5, 11},
		.in_grad = {1 + 30, 2 + 40}, .param_grads = {{1, 2, 10, 20}},
	},
	{
		.c = {"conv in two groups", CONV(2, K(1, 1), GROUPS(2), NO_BIAS),
		      IN(IMAGE(1, 2, 1, 2))},
		.in = {1, 2, 3, 4}, .params = {{2, 3}}, .out_grad = {1, 1, 1, 1},
		.out = {2, 4, 9, 12},
		.in_grad = {2, 2, 3, 3}, .param_grads = {{1 + 2, 3 + 4}},
	},
	{
		.c = {"dense by hand", DENSE(2), IN(VECTOR(1, 2))},
		.in = {1, 2}, .params = {{3, 4, 5, 6}, {0.5f, -0.5f}}, .out_grad = {1, -1},
		.out = {11.5f, 16.5f}, .in_grad = {3 - 5, 4 - 6},
		.param_grads = {{1, 2, -1, -2}, {1, -1}},
	},
	{
		.c = {"relu by hand", RELU, IN(VECTOR(1, 3))},
		.in = {-1, 0, 2}, .out_grad = {1, 1, 1}, .out = {0, 0, 2}, .in_grad = {0, 0, 1},
	},
	{
		.c = {"tanh by hand", .kind = MU_OP_ACTIVATION,
		      ATTR(activation, .kind = MU_ACTIVATION_TANH), IN(VECTOR(1, 1))},
		.in = {0.5f}, .out_grad = {1}, .out = {0.462117157f}, .in_grad = {0.786447733f},
	},
	{
		.c = {"sigmoid by hand", .kind = MU_OP_ACTIVATION,
		      ATTR(activation, .kind = MU_ACTIVATION_SIGMOID), IN(VECTOR(1, 1))},
		.in = {0.5f}, .out_grad = {1}, .out = {0.622459331f}, .in_grad = {0.235003712f},
	},
	{
		.c = {"average with padding: by the kernel's area",
		      AVERAGE(K(3, 3), S(2, 2), P(1, 1)), IN(IMAGE(1, 1, 2, 2))},
		.in = {1, 2, 3, 4}, .out_grad = {9}, .out = {10.0f / 9}, .in_grad = {1, 1, 1, 1},
	},
	{
		/* windows [0, 3), [2, 4) */
		.c = {"average with ceil: by the clipped area",
		      AVERAGE(K(1, 3), S(1, 2), CEIL), IN(IMAGE(1, 1, 1, 4))},
		.in = {1, 2, 3, 4}, .out_grad = {3, 2}, .out = {2, 3.5f},
		.in_grad = {1, 1, 1 + 1, 1},
	},
	{
		/* windows [-1, 2), [1, 4), [3, 5): the padded image ends at 5 */
		.c = {"average with ceil and padding",
		      AVERAGE(K(1, 3), S(1, 2), P(0, 1), CEIL), IN(IMAGE(1, 1, 1, 4))},
		.in = {1, 2, 3, 4}, .out_grad = {3, 3, 2}, .out = {1, 3, 2},
		.in_grad = {1, 1 + 1, 1, 1 + 1},
	},
	{
		.c = {"maximum, the first of equal ones", MAXIMUM(K(1, 2)), IN(IMAGE(1, 1, 1, 3))},
		.in = {5, 5, 1}, .out_grad = {1, 2}, .out = {5, 5}, .in_grad = {1, 2, 0},
	},
	{
		.c = {"maximum of negative ones beside padding",
		      MAXIMUM(K(1, 2), P(0, 1)), IN(IMAGE(1, 1, 1, 2))},
		.in = {-5, -3}, .out_grad = {1, 2, 4}, .out = {-5, -3, -3}, .in_grad = {1, 2 + 4},
	},
	{
		/* mean 2, variance 1, sqrt(1 + 3) = 2, normal -0.5, 0.5 */
		.c = {"norm by hand", NORM(3), IN(VECTOR(2, 1))},
		.in = {1, 3}, .params = {{2}, {1}}, .aux = {{100}, {100}}, .out_grad = {1, 0},
		.out = {0, 2}, .in_grad = {1 - 0.5f - 0.125f, 0 - 0.5f + 0.125f},
		.param_grads = {{-0.5f}, {1}}, .aux_grads = {{2 * 2}, {2 * 1}},
	},
	{
		/* Only one of them counts: the statistics are those of both, once. */
		.c = {"norm, 1 of 2 counts", NORM(3), IN(VECTOR(2, 1)), .count = 1},
		.in = {1, 3}, .params = {{2}, {1}}, .aux = {{100}, {100}}, .out_grad = {1, 0},
		.out = {0, 2}, .in_grad = {1 - 0.5f - 0.125f, 0 - 0.5f + 0.125f},
		.param_grads = {{-0.5f}, {1}}, .aux_grads = {{2}, {1}},
	},
	{
		/* both channels: variance 1, normal -0.5, 0.5; gammas 2 and 4 */
		.c = {"norm of two channels", NORM(3), IN(IMAGE(1, 2, 1, 2))},
		.in = {1, 3, 5, 7}, .params = {{2, 4}, {1, 0}}, .aux = {{100, 100}, {100, 100}},
		.out_grad = {1, 0, 0, 0}, .out = {0, 2, -2, 2}, .in_grad = {0.375f, -0.375f, 0, 0},
		.param_grads = {{-0.5f, 0}, {1, 0}}, .aux_grads = {{2, 6}, {1, 1}},
	},
	{
		/* y = -0.5, 1.5 before the relu: normal as above, the first gradient is lost. */
		.c = {"norm relu by hand", NORM(3), IN(VECTOR(2, 1)), .fused = &relu},
		.in = {1, 3}, .params = {{2}, {0.5f}}, .aux = {{100}, {100}}, .out_grad = {7, 1},
		.out = {0, 1.5f}, .in_grad = {0 - 0.5f + 0.125f, 1 - 0.5f - 0.125f},
		.param_grads = {{0.5f}, {1}}, .aux_grads = {{2 * 2}, {2 * 1}},
	},
	{
		.c = {"norm with moving statistics", NORM(3), IN(VECTOR(2, 1))},
		.phase = MU_PHASE_INFER,
		.in = {1, 3}, .params = {{2}, {1}}, .aux = {{1}, {13}}, .out = {1, 2},
	},
	{
		.c = {"flatten by hand", .kind = MU_OP_FLATTEN, IN(IMAGE(1, 2, 1, 2))},
		.in = {1, 2, 3, 4}, .out_grad = {5, 6, 7, 8}, .out = {1, 2, 3, 4},
		.in_grad = {5, 6, 7, 8},
	},
	{
		.c = {"sum by hand", .kind = MU_OP_SUM, IN(VECTOR(1, 2), VECTOR(1, 2))},
		.in = {1, 2}, .second = {30, 40}, .out_grad = {5, 6}, .out = {31, 42},
		.in_grad = {5, 6}, .second_grad = {5, 6},
	},
	{
		.c = {"sum relu by hand", .kind = MU_OP_SUM, IN(VECTOR(1, 2), VECTOR(1, 2)),
		      .fused = &relu},
		.in = {1, 2}, .second = {30, -40}, .out_grad = {5, 6}, .out = {31, 0},
		.in_grad = {5, 0}, .second_grad = {5, 0},
	},
	{
		.c = {"sum relu, undone", .kind = MU_OP_SUM, IN(VECTOR(1, 2), VECTOR(1, 2)),
		      .fused = &relu, .undone = true},
		.in = {1, 2}, .second = {30, -40}, .out_grad = {5, 6}, .out = {31, 0},
		.in_grad = {5, 6}, .second_grad = {5, 6},
	},
	{
		.c = {"concat by hand", .kind = MU_OP_CONCAT, IN(VECTOR(2, 1), VECTOR(2, 2))},
		.in = {1, 4}, .second = {2, 3, 5, 6}, .out_grad = {1, 2, 3, 4, 5, 6},
		.out = {1, 2, 3, 4, 5, 6}, .in_grad = {1, 4}, .second_grad = {2, 3, 5, 6},
	},
	{
		.c = {"split by hand", .kind = MU_OP_SPLIT, IN(VECTOR(1, 2)), .n_outputs = 2},
		.in = {1, 2}, .out_grad = {3, 4}, .out = {1, 2}, .in_grad = {3 + 3, 4 + 4},
	},
	{
		.c = {"split behind a relu", .kind = MU_OP_SPLIT, IN(VECTOR(1, 2)), .n_outputs = 2,
		      .undoes = &relu},
		.in = {0, 2}, .out_grad = {3, 4}, .out = {0, 2}, .in_grad = {0, 4 + 4},
	},
	{
		/*
		 * s = 1 + 3 / 3 * (1 + 4, 1 + 4 + 4, 4 + 4) = 6, 10, 9; y = x / s;
		 * dx = dy / s - 2 * 3 / 3 * x * sum of dy x / s^2
		 */
		.c = {"lrn by hand", LRN(3, .alpha = 3, .beta = 1, .k = 1), IN(IMAGE(1, 3, 1, 1))},
		.in = {1, -2, 2}, .out_grad = {6, 0, 0}, .out = {1.0f / 6, -0.2f, 2.0f / 9},
		.in_grad = {1 - 2 * 1 / 6.0f, 4 / 6.0f, 0},
	},
	{
		.c = {"transposed by hand", .kind = MU_OP_DECONVOLUTION,
		      ATTR(deconvolution, .filters = 1, K(1, 2), S(1, 2)), IN(IMAGE(1, 1, 1, 2))},
		.in = {1, 2}, .params = {{3, 4}, {0.5f}}, .out_grad = {1, 2, 3, 4},
		.out = {3.5f, 4.5f, 6.5f, 8.5f}, .in_grad = {3 + 8, 9 + 16},
		.param_grads = {{1 + 6, 2 + 8}, {1 + 2 + 3 + 4}},
	},
	{
		.c = {"nearest by hand", .kind = MU_OP_UPSAMPLING,
		      ATTR(upsampling, .scale = {1, 2}), IN(IMAGE(1, 1, 1, 2))},
		.in = {1, 2}, .out_grad = {1, 2, 3, 4}, .out = {1, 1, 2, 2}, .in_grad = {3, 7},
	},
	{
		/* at -1/4, 1/4, 3/4, 5/4: as PyTorch's interpolate without align_corners */
		.c = {"linear by hand", .kind = MU_OP_UPSAMPLING,
		      ATTR(upsampling, .linear = true, .scale = {1, 2}), IN(IMAGE(1, 1, 1, 2))},
		.in = {1, 2}, .out_grad = {1, 2, 3, 4}, .out = {1, 1.25f, 1.75f, 2},
		.in_grad = {1 + 1.5f + 0.75f, 0.5f + 2.25f + 4},
	},
	{
		.c = {"linear by hand, corners", .kind = MU_OP_UPSAMPLING,
		      ATTR(upsampling, .linear = true, .align_corners = true, .size = {0, 3}),
		      IN(IMAGE(1, 1, 1, 2))},
		.in = {1, 2}, .out_grad = {1, 2, 3}, .out = {1, 1.5f, 2}, .in_grad = {2, 4},
	},
	{
		.c = {"pad and crop by hand", .kind = MU_OP_PAD,
		      ATTR(pad, .before = {0, 1}, .after = {0, -1}, .value = 9),
		      IN(IMAGE(1, 1, 1, 3))},
		.in = {1, 2, 3}, .out_grad = {4, 5, 6}, .out = {9, 1, 2}, .in_grad = {5, 6, 0},
	},
	{
		/* mean 2, sqrt(1 + 3) = 2: xhat = -1/2, 1/2; g = 2, 4 */
		.c = {"instance norm by hand", .kind = MU_OP_GROUP_NORM,
		      ATTR(group_norm, .eps = 3), IN(IMAGE(1, 1, 1, 2))},
		.in = {1, 3}, .params = {{2}, {1}}, .out_grad = {1, 2}, .out = {0, 2},
		.in_grad = {(2 - 3 + 0.25f) / 2, (4 - 3 - 0.25f) / 2},
		.param_grads = {{0.5f}, {3}},
	},
	{
		.c = {"leaky relu by hand", .kind = MU_OP_SMOOTH,
		      ATTR(activation, MU_ACTIVATION_LEAKY_RELU, 0.25f), IN(VECTOR(1, 2))},
		.in = {-2, 3}, .out_grad = {1, 2}, .out = {-0.5f, 3}, .in_grad = {0.25f, 2},
	},
	{
		/* -ln 2 */
		.c = {"elu by hand", .kind = MU_OP_SMOOTH,
		      ATTR(activation, MU_ACTIVATION_ELU, 2), IN(VECTOR(1, 2))},
		.in = {-0.69314718f, 3}, .out_grad = {1, 2}, .out = {-1, 3}, .in_grad = {1, 2},
	},
	{
		.c = {"softplus by hand", .kind = MU_OP_SMOOTH,
		      ATTR(activation, MU_ACTIVATION_SOFTPLUS, 2), IN(VECTOR(1, 2))},
		.in = {0, 100}, .out_grad = {1, 2}, .out = {0.69314718f / 2, 100},
		.in_grad = {0.5f, 2},
	},
	{
		/* tanh(ln 3 / 2) = 1/2 */
		.c = {"scaled tanh by hand", .kind = MU_OP_SMOOTH,
		      ATTR(activation, MU_ACTIVATION_SCALED_TANH, 3), IN(VECTOR(1, 2))},
		.in = {0, 0.54930614f}, .out_grad = {1, 2}, .out = {0, 1.5f}, .in_grad = {3, 4.5f},
	},
	{
		/* exp(0) : exp(ln 3) = 1 : 3; the second row does not count */
		.c = {"embedding by hand", .kind = MU_OP_EMBEDDING,
		      ATTR(embedding, .inputs = 2, .units = 2), IN(IMAGE(1, 1, 3, 1)), .frozen = 1},
		.in = {1, 0, 1}, .params = {{1, 2, 3, 4}}, .out_grad = {1, 2, 3, 10, 20, 30},
		.out = {3, 1, 3, 4, 2, 4}, .param_grads = {{2, 20, 1 + 3, 10 + 30}},
	},
	{
		.c = {"softmax by hand", .kind = MU_OP_SOFTMAX, IN(VECTOR(2, 2)), .count = 1},
		.in = {0, 1.09861229f, 7, 7}, .labels = {0, 1}, .out = {0.25f, 0.75f, 0.5f, 0.5f},
		.in_grad = {-0.75f, 0.75f, 0, 0}, .loss = 1.38629436112, /* ln 4 */
	},
	{
		/* ln 4, and 1.5 times ln(4/3) */
		.c = {"softmax weighted by hand", .kind = MU_OP_SOFTMAX, IN(VECTOR(2, 2)),
		      .weighted = true},
		.in = {0, 1.09861229f, 0, 1.09861229f}, .labels = {0, 1},
		.out = {0.25f, 0.75f, 0.25f, 0.75f},
		.in_grad = {-0.75f, 0.75f, 0.375f, -0.375f}, .loss = 1.38629436 + 1.5 * 0.28768207,
	},
	{
		/* 1 : 3 with label 1, 1 : 1 with label 0: 1 - (2 / 2.75 + 2.5 / 3.25) / 2 */
		.c = {"dice by hand", .kind = MU_OP_REGION_LOSS, ATTR(region_loss, .smooth = 1),
		      IN(IMAGE(1, 2, 1, 2))},
		.in = {0, 0, 1.09861229f, 0}, .labels = {1, 0}, .out = {0.25f, 0.5f, 0.75f, 0.5f},
		.in_grad = {0.06029635f, -0.08743704f, -0.06029635f, 0.08743704f},
		.loss = 0.25174825175,
	},
	{
		.c = {"mse by hand", ELEMENT(SQUARED), IN(VECTOR(3, 1)), .count = 2},
		.in = {1, -2, 9}, .labels = {0.5f, 1, 7}, .out = {1, -2, 9},
		.in_grad = {1, -6, 0}, .loss = 0.25 + 9,
	},
	{
		.c = {"mae by hand, a mean of three", ELEMENT(ABSOLUTE), IN(VECTOR(1, 3))},
		.in = {1, -2, 3}, .labels = {0.25f, 1, 3}, .out = {1, -2, 3},
		.in_grad = {1 / 3.0f, -1 / 3.0f, 0}, .loss = 1.25,
	},
	{
		.c = {"huber by hand", ELEMENT(HUBER, .delta = 2), IN(IMAGE(1, 1, 1, 3))},
		.in = {1, -2, 8}, .labels = {0, 3, 4}, .out = {1, -2, 8},
		.in_grad = {1 / 3.0f, -2 / 3.0f, 2 / 3.0f}, .loss = (0.5 + 2 * 4 + 2 * 3) / 3,
	},
	{
		/* ln 4 and ln(4/3), halves; a logit of -200 whose probability rounds to 0 */
		.c = {"bce by hand", ELEMENT(LOGISTIC), IN(VECTOR(3, 1))},
		.in = {1.09861229f, 0, -200}, .labels = {0.5f, 0, 1}, .out = {0.75f, 0.5f, 0},
		.in_grad = {0.25f, 0.5f, -1}, .loss = 0.83698822 + 0.69314718 + 200,
	},
	{
		/* e^-200 : 1, and 1 : e^-200, with label 0: the loss is not that of a rounded p */
		.c = {"softmax far by hand", .kind = MU_OP_SOFTMAX, IN(VECTOR(2, 2))},
		.in = {-100, 100, 200, 0}, .out = {0, 1, 1, 0}, .in_grad = {-1, 1, 0, 0},
		.loss = 200,
	},
	{
		/*
		 * Three positions: 1 : 3 and 1 : 1, both with label 0, and one that is ignored.
		 * Targets are 3/4 for the label, 1/4 for the other class.
		 */
		.c = {"softmax of steps by hand", .kind = MU_OP_SOFTMAX, IN(IMAGE(1, 2, 1, 3)),
		      .smoothing = 0.5f, .use_ignore = true},
		.in = {-1.09861229f, 5, 7, 0, 5, 7}, .labels = {0, 0, 1},
		.out = {0.25f, 0.5f, 0.5f, 0.75f, 0.5f, 0.5f},
		.in_grad = {0.25f - 0.75f, 0.5f - 0.75f, 0, 0.75f - 0.25f, 0.5f - 0.25f, 0},
		.loss = 1.80478846950, /* 3/4 ln 4 + 1/4 ln(4/3) + ln 2 */
	},
};

const struct op_refusal op_refusals[] = {
	{
		CONV(2, K(5, 5), NO_BIAS), .in = IMAGE(1, 1, 4, 9), .out = IMAGE(1, 2, 1, 5),
		.n_params = 1, .weight = IMAGE(2, 1, 5, 5), .message = "(1, 1, 4, 9)",
	},
	{
		CONV(2, K(3, 3), NO_BIAS), .in = IMAGE(1, 1, 4, 9), .out = IMAGE(1, 2, 2, 6),
		.n_params = 1, .weight = IMAGE(2, 1, 3, 3),
		.message = "(1, 2, 2, 6); it must be (1, 2, 2, 7)",
	},
	{
		CONV(2, K(3, 3), NO_BIAS), .in = IMAGE(1, 1, 4, 9), .out = IMAGE(1, 2, 2, 7),
		.n_params = 1, .weight = IMAGE(2, 2, 3, 3),
		.message = "weight has shape (2, 2, 3, 3)",
	},
	{
		CONV(4, K(1, 1), GROUPS(3), NO_BIAS), .in = IMAGE(1, 3, 4, 9),
		.out = IMAGE(1, 4, 4, 9), .n_params = 1, .weight = IMAGE(4, 1, 1, 1),
		.message = "3 groups",
	},
	{
		CONV(4, K(1, 1)), .in = VECTOR(1, 3), .out = IMAGE(1, 4, 1, 1), .n_params = 2,
		.weight = IMAGE(4, 3, 1, 1), .bias = {1, {4}}, .message = "(n, c, h, w)",
	},
	{
		DENSE(4), .in = VECTOR(2, 3), .out = VECTOR(2, 4), .n_params = 2,
		.weight = VECTOR(4, 3), .bias = {1, {3}}, .message = "bias has shape (3)",
	},
	{
		DENSE(4), .in = VECTOR(2, 3), .out = VECTOR(2, 4), .n_params = 1,
		.weight = VECTOR(4, 3), .message = "weight and bias",
	},
	{
		MAXIMUM(K(2, 2), P(2, 2)), .in = IMAGE(1, 1, 4, 4), .out = IMAGE(1, 1, 7, 7),
		.message = "window without an element",
	},
	{
		MAXIMUM(K(1, 1), S(3, 3), CEIL), .in = IMAGE(1, 1, 5, 5), .out = IMAGE(1, 1, 3, 3),
		.message = "(1, 1, 5, 5)",
	},
	{
		MAXIMUM(K(5, 1)), .in = IMAGE(1, 1, 4, 4), .out = IMAGE(1, 1, 1, 4),
		.message = "does not fit",
	},
	{
		.kind = MU_OP_DROPOUT, ATTR(dropout, .p = 1), .in = VECTOR(2, 3),
		.out = VECTOR(2, 3), .message = "[0, 1)",
	},
	{
		.kind = MU_OP_FLATTEN, .in = IMAGE(2, 3, 4, 5), .out = VECTOR(2, 61),
		.message = "it must be (2, 60)",
	},
	{
		.kind = MU_OP_SOFTMAX, .in = IMAGE(2, 3, 1, 2), .out = IMAGE(2, 3, 2, 1),
		.message = "(2, 3, 2, 1); it must be (2, 3, 1, 2)",
	},
	{ELEMENT(HUBER, .delta = -1), .in = VECTOR(2, 3), .out = VECTOR(2, 3),
	 .message = "delta of Huber's loss is -1"},
	{ELEMENT(SQUARED), .in = VECTOR(2, 3), .out = VECTOR(3, 2), .message = "it must be (2, 3)"},
	{LRN(4, .alpha = 1, .beta = 1, .k = 1), .in = IMAGE(1, 3, 1, 1), .out = IMAGE(1, 3, 1, 1),
	 .message = "size 4"},
	{.kind = MU_OP_EMBEDDING, ATTR(embedding, .inputs = 5, .units = 2), .in = IMAGE(2, 2, 3, 1),
	 .out = IMAGE(2, 2, 3, 1), .n_params = 1, .weight = VECTOR(5, 2),
	 .message = "(2, 2, 3, 1); it must be (2, 1, 3, 1)"},
	{.kind = MU_OP_SUM, .in = VECTOR(2, 3), .out = VECTOR(2, 3),
	 .message = "1 input; this kind has 2 or more"},
	{RELU, .in = {3, {2, 3, 4}}, .out = {3, {2, 3, 4}}, .message = "(2, 3, 4)"},
};
/* clang-format on */

const size_t op_n_literals = sizeof op_literals / sizeof *op_literals;
const size_t op_n_refusals = sizeof op_refusals / sizeof *op_refusals;
