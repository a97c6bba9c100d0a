/* SPDX-License-Identifier: Apache-2.0 */
/* The table of cases. A new one: a line here. */
#include "op_cases.h"

/* clang-format off */
#define ATTR(kind, ...) .attr = &(const struct mu_##kind){__VA_ARGS__}
#define CONV(...) .kind = MU_OP_CONVOLUTION, ATTR(convolution, .filters = __VA_ARGS__)
#define DENSE(...) .kind = MU_OP_FULLY_CONNECTED, ATTR(fully_connected, .units = __VA_ARGS__)
#define ACT(name) .kind = MU_OP_ACTIVATION, .attr = &name
#define MAXIMUM(...) .kind = MU_OP_POOLING, ATTR(pooling, __VA_ARGS__)
#define AVERAGE(...) .kind = MU_OP_POOLING, ATTR(pooling, .average = true, __VA_ARGS__)
#define DROP(probability) .kind = MU_OP_DROPOUT, ATTR(dropout, .p = probability)
#define NORM(...) .kind = MU_OP_BATCH_NORM, ATTR(batch_norm, .momentum = 0.9f, .eps = __VA_ARGS__)
#define LRN(...) .kind = MU_OP_LRN, ATTR(lrn, .size = __VA_ARGS__)
#define K(height, width) .kernel = {height, width}
#define S(height, width) .stride = {height, width}
#define P(height, width) .pad = {height, width}
#define D(height, width) .dilate = {height, width}
#define GROUPS(n) .groups = n
#define NO_BIAS .no_bias = true
#define GLOBAL .global = true
#define CEIL .ceil = true
#define IN(...) .in = {__VA_ARGS__}
#define IMAGE(n, c, h, w) {4, {n, c, h, w}}
#define VECTOR(n, c) {2, {n, c}}

static const struct mu_activation relu = {MU_ACTIVATION_RELU};
static const struct mu_activation tanh_ = {MU_ACTIVATION_TANH};
static const struct mu_activation sigmoid = {MU_ACTIVATION_SIGMOID};

const struct op_case op_cases[] = {
	{"conv", CONV(5, K(3, 2)), IN(IMAGE(2, 3, 9, 7))},
	{"conv batch 1", CONV(4, K(3, 3), P(1, 1)), IN(IMAGE(1, 2, 5, 6))},
	{"conv lenet 0", CONV(20, K(5, 5)), IN(IMAGE(3, 1, 12, 12))},
	{"conv lenet 1", CONV(50, K(5, 5)), IN(IMAGE(2, 20, 8, 8))},
	{"conv rgb", CONV(16, K(3, 3), P(1, 1)), IN(IMAGE(2, 3, 8, 8)), .frozen = 1},
	{"conv 16 to 32", CONV(32, K(3, 3), P(1, 1)), IN(IMAGE(2, 16, 7, 6))},
	{"conv 32 to 16", CONV(16, K(3, 3), S(2, 2)), IN(IMAGE(2, 32, 8, 9))},
	{"conv 64 to 64", CONV(64, K(3, 3), P(1, 1)), IN(IMAGE(1, 64, 8, 8)), .tolerance = 1e-4},
	{"conv 16 to 10", CONV(10, K(3, 3)), IN(IMAGE(2, 16, 5, 5))},
	{"conv 17 to 33", CONV(33, K(3, 3)), IN(IMAGE(2, 17, 5, 5))},
	{"conv stride > kernel", CONV(4, K(2, 2), S(3, 3)), IN(IMAGE(2, 3, 10, 11))},
	{"conv unread border", CONV(4, K(3, 3), S(2, 2)), IN(IMAGE(2, 3, 8, 6))},
	{"conv asymmetric", CONV(3, K(1, 5), S(2, 1), P(0, 2)), IN(IMAGE(2, 4, 7, 6))},
	{"conv whole image", CONV(6, K(4, 5)), IN(IMAGE(3, 2, 4, 5))},
	{"conv 1x1", CONV(7, K(1, 1)), IN(IMAGE(2, 5, 4, 3))},
	{"conv 1x1 16 to 16", CONV(16, K(1, 1)), IN(IMAGE(2, 16, 4, 3))},
	{"conv 1x1 stride 2", CONV(16, K(1, 1), S(2, 2)), IN(IMAGE(2, 32, 7, 7))},
	{"conv one pixel", CONV(3, K(1, 1)), IN(IMAGE(1, 1, 1, 1))},
	{"conv pad 2 of 3", CONV(3, K(3, 3), P(2, 2)), IN(IMAGE(2, 2, 4, 5))},
	{"conv pad > kernel", CONV(3, K(2, 2), P(3, 3)), IN(IMAGE(2, 2, 4, 5))},
	{"conv pad 2 of 3, 16", CONV(16, K(3, 3), P(2, 2)), IN(IMAGE(2, 16, 4, 5))},
	{"conv dilate 2", CONV(4, K(3, 3), D(2, 2)), IN(IMAGE(2, 3, 8, 7))},
	{"conv dilate 3x1", CONV(16, K(2, 3), D(3, 1), P(2, 1)), IN(IMAGE(2, 16, 6, 5))},
	{"conv dilate, stride", CONV(3, K(3, 3), D(2, 2), S(2, 2), P(2, 2)), IN(IMAGE(1, 3, 9, 8))},
	{"conv groups 2", CONV(4, K(3, 3), GROUPS(2)), IN(IMAGE(2, 6, 5, 5))},
	{"conv groups 3", CONV(9, K(2, 2), GROUPS(3), NO_BIAS), IN(IMAGE(2, 6, 5, 4))},
	{"conv groups 2, 32", CONV(32, K(3, 3), GROUPS(2), P(1, 1)), IN(IMAGE(2, 32, 5, 4))},
	{"conv groups 4, 32", CONV(32, K(3, 3), GROUPS(4)), IN(IMAGE(2, 32, 5, 4))},
	{"conv depthwise", CONV(5, K(3, 3), GROUPS(5), P(1, 1)), IN(IMAGE(2, 5, 6, 5))},
	{"conv depthwise twice", CONV(8, K(3, 3), GROUPS(4)), IN(IMAGE(2, 4, 6, 5))},
	{"conv depthwise 16", CONV(16, K(3, 3), GROUPS(16), P(1, 1), S(2, 2)),
	 IN(IMAGE(2, 16, 7, 6))},
	{"conv depthwise 32", CONV(32, K(3, 3), GROUPS(32), P(1, 1), NO_BIAS),
	 IN(IMAGE(1, 32, 7, 6))},
	{"conv no bias", CONV(5, K(3, 3), NO_BIAS), IN(IMAGE(2, 3, 6, 5))},
	{"conv no bias 16", CONV(16, K(3, 3), NO_BIAS), IN(IMAGE(2, 16, 6, 5))},
	{"conv relu", CONV(5, K(3, 3)), IN(IMAGE(2, 3, 6, 5)), .fused = &relu},
	{"conv relu 16", CONV(16, K(3, 3), P(1, 1)), IN(IMAGE(2, 16, 4, 5)), .fused = &relu},
	{"conv tanh", CONV(20, K(5, 5)), IN(IMAGE(3, 1, 9, 9)), .fused = &tanh_, .frozen = 1},
	{"conv tanh 32", CONV(32, K(1, 1), NO_BIAS), IN(IMAGE(2, 16, 4, 5)), .fused = &tanh_},
	{"conv sigmoid", CONV(6, K(2, 2), GROUPS(2)), IN(IMAGE(2, 4, 4, 5)), .fused = &sigmoid},

	{"dense", DENSE(7), IN(VECTOR(5, 13))},
	{"dense batch 1", DENSE(16), IN(VECTOR(1, 32))},
	{"dense one unit", DENSE(1), IN(VECTOR(3, 5))},
	{"dense 10 of 500", DENSE(10), IN(VECTOR(4, 500))},
	{"dense image", DENSE(6), IN(IMAGE(3, 5, 4, 3))},
	{"dense image 16", DENSE(32), IN(IMAGE(2, 16, 3, 2))},
	{"dense no bias", DENSE(9, NO_BIAS), IN(VECTOR(4, 6))},
	{"dense relu", DENSE(9), IN(VECTOR(4, 6)), .fused = &relu},
	{"dense tanh", DENSE(20), IN(IMAGE(2, 16, 2, 2)), .fused = &tanh_},
	{"dense sigmoid, frozen", DENSE(3), IN(VECTOR(2, 10)), .fused = &sigmoid, .frozen = 1},

	{"relu", ACT(relu), IN(IMAGE(2, 3, 5, 4))},
	{"relu in place", ACT(relu), IN(IMAGE(2, 3, 5, 4)), .in_place = true},
	{"relu 16 in place", ACT(relu), IN(IMAGE(2, 16, 3, 4)), .in_place = true},
	{"relu vectors", ACT(relu), IN(VECTOR(3, 17))},
	{"tanh", ACT(tanh_), IN(IMAGE(1, 3, 5, 7))},
	{"tanh in place", ACT(tanh_), IN(VECTOR(3, 33)), .in_place = true},
	{"sigmoid", ACT(sigmoid), IN(VECTOR(1, 5))},
	{"sigmoid 16 in place", ACT(sigmoid), IN(IMAGE(2, 16, 3, 3)), .in_place = true},

	{"max 2/2", MAXIMUM(K(2, 2), S(2, 2)), IN(IMAGE(2, 3, 6, 8))},
	{"max 2/2, unread border", MAXIMUM(K(2, 2), S(2, 2)), IN(IMAGE(2, 20, 5, 7))},
	{"max overlapping", MAXIMUM(K(3, 3), S(2, 2)), IN(IMAGE(2, 3, 7, 9))},
	{"max overlapping 16", MAXIMUM(K(3, 3), S(1, 1), P(1, 1)), IN(IMAGE(1, 16, 5, 4))},
	{"max pad", MAXIMUM(K(3, 2), S(2, 1), P(1, 1)), IN(IMAGE(2, 2, 6, 5))},
	{"max pad 2 of 3", MAXIMUM(K(3, 3), S(2, 2), P(2, 2)), IN(IMAGE(2, 3, 5, 5))},
	{"max ceil", MAXIMUM(K(3, 3), S(2, 2), CEIL), IN(IMAGE(2, 3, 8, 6))},
	{"max ceil 16", MAXIMUM(K(3, 3), S(2, 2), P(1, 1), CEIL), IN(IMAGE(2, 16, 6, 7))},
	{"max global", MAXIMUM(GLOBAL), IN(IMAGE(2, 5, 4, 3))},
	{"max stride > kernel", MAXIMUM(K(2, 2), S(3, 3)), IN(IMAGE(1, 3, 8, 9))},
	{"max 1x1", MAXIMUM(K(1, 1)), IN(IMAGE(1, 3, 3, 2))},
	{"max frozen", MAXIMUM(K(2, 2)), IN(IMAGE(2, 3, 4, 4)), .frozen = 1},
	{"average 2/2", AVERAGE(K(2, 2), S(2, 2)), IN(IMAGE(2, 3, 6, 7))},
	{"average pad", AVERAGE(K(3, 3), S(2, 2), P(1, 1)), IN(IMAGE(2, 3, 5, 6))},
	{"average pad 16", AVERAGE(K(3, 3), S(1, 1), P(1, 1)), IN(IMAGE(2, 16, 4, 5))},
	{"average ceil", AVERAGE(K(3, 3), S(2, 2), CEIL), IN(IMAGE(2, 3, 8, 6))},
	{"average ceil, pad, 16", AVERAGE(K(3, 2), S(2, 2), P(1, 0), CEIL), IN(IMAGE(1, 16, 6, 7))},
	{"average global", AVERAGE(GLOBAL), IN(IMAGE(2, 5, 4, 3))},
	{"average global 32", AVERAGE(GLOBAL), IN(IMAGE(2, 32, 7, 7))},
	{"average stride > kernel", AVERAGE(K(1, 2), S(2, 3)), IN(IMAGE(2, 3, 6, 8))},

	{"flatten", .kind = MU_OP_FLATTEN, IN(IMAGE(2, 3, 5, 4))},
	{"flatten 16", .kind = MU_OP_FLATTEN, IN(IMAGE(3, 16, 2, 3))},
	{"flatten in place", .kind = MU_OP_FLATTEN,
	 IN(IMAGE(2, 3, 5, 4)), .in_place = true, .ref_only = true},
	{"flatten vectors", .kind = MU_OP_FLATTEN, IN(VECTOR(2, 7))},
	{"flatten frozen", .kind = MU_OP_FLATTEN, IN(IMAGE(2, 3, 2, 2)), .frozen = 1},

	{"dropout 0", DROP(0), IN(VECTOR(3, 20))},
	{"dropout 0.5", DROP(0.5f), IN(VECTOR(4, 50)), .index = 2},
	{"dropout 0.9", DROP(0.9f), IN(IMAGE(2, 3, 5, 4)), .index = 1},
	{"dropout 0.5, 16", DROP(0.5f), IN(IMAGE(2, 16, 3, 4)), .index = 3},
	{"dropout, last index", DROP(0.5f), IN(VECTOR(2, 33)), .index = 1023},
	{"dropout in place", DROP(0.5f), IN(VECTOR(3, 20)), .in_place = true, .ref_only = true},
	{"dropout frozen", DROP(0.5f), IN(VECTOR(3, 20)), .frozen = 1},

	{"norm", NORM(1e-3f), IN(IMAGE(3, 5, 4, 3))},
	{"norm 16", NORM(2e-5f), IN(IMAGE(2, 16, 4, 5))},
	{"norm batch 1", NORM(1e-3f), IN(IMAGE(1, 3, 4, 3))},
	{"norm vectors", NORM(1e-3f), IN(VECTOR(7, 5))},
	{"norm fix_gamma", NORM(1e-3f, .fix_gamma = true), IN(IMAGE(3, 4, 3, 3))},
	{"norm fix_gamma 32", NORM(1e-3f, .fix_gamma = true), IN(IMAGE(2, 32, 3, 3))},
	{"norm frozen", NORM(1e-3f), IN(IMAGE(3, 3, 4, 4)), .frozen = 1},

	{"lrn", LRN(5, .alpha = 0.5f, .beta = 0.75f, .k = 2), IN(IMAGE(2, 7, 4, 3))},
	{"lrn 3 of 2", LRN(3, .alpha = 1, .beta = 0.5f, .k = 1), IN(IMAGE(2, 2, 3, 3))},
	{"lrn 1", LRN(1, .alpha = 1, .beta = 0.75f, .k = 1), IN(IMAGE(1, 3, 2, 2))},
	{"lrn 7 of 3", LRN(7, .alpha = 0.5f, .beta = 1, .k = 1), IN(IMAGE(1, 3, 5, 2))},
	{"lrn 96", LRN(5, .alpha = 1e-4f, .beta = 0.75f, .k = 2), IN(IMAGE(2, 96, 6, 5))},
	{"lrn 3 of 3", LRN(3, .alpha = 1, .beta = 0.75f, .k = 1), IN(IMAGE(1, 3, 2, 2))},
	{"lrn 5 of 17", LRN(5, .alpha = 1, .beta = 0.75f, .k = 2), IN(IMAGE(2, 17, 3, 3))},
	{"lrn 5 of 3", LRN(5, .alpha = 1, .beta = 0.75f, .k = 2), IN(IMAGE(2, 3, 5, 7))},
	{"lrn 5 of 40", LRN(5, .alpha = 1, .beta = 0.75f, .k = 1), IN(IMAGE(2, 40, 3, 5))},
	{"lrn 7 of 48", LRN(7, .alpha = 1, .beta = 0.75f, .k = 1), IN(IMAGE(2, 48, 3, 5))},
	{"lrn 9 of 17", LRN(9, .alpha = 1, .beta = 0.75f, .k = 2), IN(IMAGE(2, 17, 3, 3))},
	{"lrn 32", LRN(5, .alpha = 2, .beta = 0.75f, .k = 1), IN(IMAGE(1, 32, 4, 3))},
	{"lrn 20 frozen", LRN(3, .alpha = 1, .beta = 0.75f, .k = 2), IN(IMAGE(2, 20, 3, 3)),
	 .frozen = 1},

	{"sum of 2", .kind = MU_OP_SUM, IN(IMAGE(2, 3, 4, 5), IMAGE(2, 3, 4, 5))},
	{"sum of 3", .kind = MU_OP_SUM, IN(VECTOR(2, 9), VECTOR(2, 9), VECTOR(2, 9))},
	{"sum of 3, 16", .kind = MU_OP_SUM,
	 IN(IMAGE(2, 16, 3, 3), IMAGE(2, 16, 3, 3), IMAGE(2, 16, 3, 3)), .frozen = 2},
	{"sum in place", .kind = MU_OP_SUM,
	 IN(VECTOR(2, 9), VECTOR(2, 9)), .in_place = true, .ref_only = true},

	{"concat of 2", .kind = MU_OP_CONCAT, IN(IMAGE(2, 3, 4, 5), IMAGE(2, 2, 4, 5))},
	{"concat of 3", .kind = MU_OP_CONCAT,
	 IN(IMAGE(2, 1, 3, 4), IMAGE(2, 4, 3, 4), IMAGE(2, 3, 3, 4)), .frozen = 2},
	{"concat of 3, 16 and 32", .kind = MU_OP_CONCAT,
	 IN(IMAGE(2, 16, 3, 4), IMAGE(2, 32, 3, 4), IMAGE(2, 16, 3, 4))},
	{"concat of 16 and 3", .kind = MU_OP_CONCAT, IN(IMAGE(2, 16, 3, 4), IMAGE(2, 3, 3, 4))},
	{"concat of 8 and 8", .kind = MU_OP_CONCAT, IN(IMAGE(1, 8, 3, 4), IMAGE(1, 8, 3, 4))},
	{"concat of vectors", .kind = MU_OP_CONCAT, IN(VECTOR(3, 4), VECTOR(3, 1), VECTOR(3, 6))},

	{"split to 2", .kind = MU_OP_SPLIT, IN(IMAGE(2, 3, 4, 5)), .n_outputs = 2},
	{"split to 3", .kind = MU_OP_SPLIT, IN(VECTOR(2, 9)), .n_outputs = 3},
	{"split to 2 in place", .kind = MU_OP_SPLIT,
	 IN(IMAGE(2, 16, 3, 4)), .n_outputs = 2, .in_place = true},
	{"split to 3 in place", .kind = MU_OP_SPLIT,
	 IN(VECTOR(1, 5)), .n_outputs = 3, .in_place = true},
	{"split frozen", .kind = MU_OP_SPLIT, IN(IMAGE(2, 3, 2, 2)), .n_outputs = 2, .frozen = 1},

	{"softmax", .kind = MU_OP_SOFTMAX, IN(VECTOR(5, 10))},
	{"softmax 3 of 5 count", .kind = MU_OP_SOFTMAX, IN(VECTOR(5, 10)), .count = 3},
	{"softmax batch 1", .kind = MU_OP_SOFTMAX, IN(VECTOR(1, 2))},
	{"softmax 1000 classes", .kind = MU_OP_SOFTMAX, IN(VECTOR(3, 1000)), .count = 2},
	{"softmax smooth", .kind = MU_OP_SOFTMAX, IN(VECTOR(5, 7)), .count = 4, .smoothing = 0.3f},
	{"softmax ignore", .kind = MU_OP_SOFTMAX, IN(VECTOR(9, 3)), .use_ignore = true},
	{"softmax steps", .kind = MU_OP_SOFTMAX, IN(IMAGE(3, 5, 4, 3))},
	{"softmax steps, 16", .kind = MU_OP_SOFTMAX, IN(IMAGE(3, 16, 2, 5)), .count = 2},
	{"softmax steps, ignore", .kind = MU_OP_SOFTMAX, IN(IMAGE(3, 17, 6, 1)), .count = 2,
	 .smoothing = 0.1f, .use_ignore = true},
	{"softmax steps, 32", .kind = MU_OP_SOFTMAX, IN(IMAGE(2, 32, 3, 3)), .smoothing = 0.9f},
	{"softmax one step", .kind = MU_OP_SOFTMAX, IN(IMAGE(2, 3, 1, 1)), .use_ignore = true},
	{"softmax steps frozen", .kind = MU_OP_SOFTMAX, IN(IMAGE(2, 16, 2, 2)), .frozen = 1},
};
/* clang-format on */

const size_t op_n_cases = sizeof op_cases / sizeof *op_cases;
