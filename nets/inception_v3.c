/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inception v3 for 299x299. (Szegedy et al., Rethinking the Inception Architecture for Computer
 * Vision, 2015.) As MXNet has it: no biases, gammas fixed to 1, no side output. 23,834,568
 * parameters at 1000 classes.
 */
#include <muster/net.h>

struct conv {
	int filters, kernel[2], stride, pad[2];
};

/* Square convolutions of stride 1: 1x1, 3x3 with border 1, 5x5 with border 2. */
#define SQUARE(n, k) ((struct conv){(n), {(k), (k)}, 1, {(k) / 2, (k) / 2}})
/* 1x7, 7x1 and the like, with borders that keep the size. */
#define FLAT(n, kh, kw) ((struct conv){(n), {(kh), (kw)}, 1, {(kh) / 2, (kw) / 2}})
/* 3x3 without a border; the stride is 1 or 2. */
#define VALID(n, s) ((struct conv){(n), {3, 3}, (s), {0, 0}})

/* Convolution, batch-norm, relu under the present prefix: <name>_conv2d and so on. */
static int conv(struct mu_net *net, int x, struct conv c, const char *name)
{
	const struct mu_convolution attr = {
		.filters = c.filters,
		.kernel = {c.kernel[0], c.kernel[1]},
		.stride = {c.stride, c.stride},
		.pad = {c.pad[0], c.pad[1]},
		.no_bias = true,
	};
	const struct mu_batch_norm norm = {.eps = 1e-3f, .momentum = 0.9f, .fix_gamma = true};
	char text[64];

	snprintf(text, sizeof text, "%s_conv2d", name);
	x = mu_net_convolution(net, x, &attr, text);
	snprintf(text, sizeof text, "%s_batchnorm", name);
	x = mu_net_batch_norm(net, x, &norm, text);
	snprintf(text, sizeof text, "%s_relu", name);
	return mu_net_activation(net, x, MU_ACTIVATION_RELU, text);
}

static int same_pool(struct mu_net *net, int x, bool average)
{
	const struct mu_pooling attr = {
		.average = average, .kernel = {3, 3}, .stride = {1, 1}, .pad = {1, 1}};

	return mu_net_pooling(net, x, &attr, NULL);
}

static int half_pool(struct mu_net *net, int x)
{
	return mu_net_pooling(net, x, &(struct mu_pooling){.kernel = {3, 3}, .stride = {2, 2}},
			      NULL);
}

/* 1x1; 5x5; twice 3x3; pooling. */
static int block_a(struct mu_net *net, int in, int projection)
{
	int parts[4], x;

	parts[0] = conv(net, in, SQUARE(64, 1), "conv");
	x = conv(net, in, SQUARE(48, 1), "tower_conv");
	parts[1] = conv(net, x, SQUARE(64, 5), "tower_conv_1");
	x = conv(net, in, SQUARE(64, 1), "tower_1_conv");
	x = conv(net, x, SQUARE(96, 3), "tower_1_conv_1");
	parts[2] = conv(net, x, SQUARE(96, 3), "tower_1_conv_2");
	x = same_pool(net, in, true);
	parts[3] = conv(net, x, SQUARE(projection, 1), "tower_2_conv");
	return mu_net_concat(net, 4, parts, NULL);
}

/* 35x35 to 17x17 */
static int block_b(struct mu_net *net, int in)
{
	int parts[3], x;

	parts[0] = conv(net, in, VALID(384, 2), "conv");
	x = conv(net, in, SQUARE(64, 1), "tower_conv");
	x = conv(net, x, SQUARE(96, 3), "tower_conv_1");
	parts[1] = conv(net, x, VALID(96, 2), "tower_conv_2");
	parts[2] = half_pool(net, in);
	return mu_net_concat(net, 3, parts, NULL);
}

/* 1x1; a 7x7 cut into 1x7 and 7x1; two of these; pooling. n: width inside. */
static int block_c(struct mu_net *net, int in, int n)
{
	int parts[4], x;

	parts[0] = conv(net, in, SQUARE(192, 1), "conv");
	x = conv(net, in, SQUARE(n, 1), "tower_conv");
	x = conv(net, x, FLAT(n, 1, 7), "tower_conv_1");
	parts[1] = conv(net, x, FLAT(192, 7, 1), "tower_conv_2");
	x = conv(net, in, SQUARE(n, 1), "tower_1_conv");
	x = conv(net, x, FLAT(n, 7, 1), "tower_1_conv_1");
	x = conv(net, x, FLAT(n, 1, 7), "tower_1_conv_2");
	x = conv(net, x, FLAT(n, 7, 1), "tower_1_conv_3");
	parts[2] = conv(net, x, FLAT(192, 1, 7), "tower_1_conv_4");
	x = same_pool(net, in, true);
	parts[3] = conv(net, x, SQUARE(192, 1), "tower_2_conv");
	return mu_net_concat(net, 4, parts, NULL);
}

/* 17x17 to 8x8 */
static int block_d(struct mu_net *net, int in)
{
	int parts[3], x;

	x = conv(net, in, SQUARE(192, 1), "tower_conv");
	parts[0] = conv(net, x, VALID(320, 2), "tower_conv_1");
	x = conv(net, in, SQUARE(192, 1), "tower_1_conv");
	x = conv(net, x, FLAT(192, 1, 7), "tower_1_conv_1");
	x = conv(net, x, FLAT(192, 7, 1), "tower_1_conv_2");
	parts[1] = conv(net, x, VALID(192, 2), "tower_1_conv_3");
	parts[2] = half_pool(net, in);
	return mu_net_concat(net, 3, parts, NULL);
}

/* 1x1; 1x3 beside 3x1; the same after a 3x3; pooling. */
static int block_e(struct mu_net *net, int in, bool average)
{
	int parts[6], x;

	parts[0] = conv(net, in, SQUARE(320, 1), "conv");
	x = conv(net, in, SQUARE(384, 1), "tower_conv");
	parts[1] = conv(net, x, FLAT(384, 1, 3), "tower_mixed_conv");
	parts[2] = conv(net, x, FLAT(384, 3, 1), "tower_mixed_conv_1");
	x = conv(net, in, SQUARE(448, 1), "tower_1_conv");
	x = conv(net, x, SQUARE(384, 3), "tower_1_conv_1");
	parts[3] = conv(net, x, FLAT(384, 1, 3), "tower_1_mixed_conv");
	parts[4] = conv(net, x, FLAT(384, 3, 1), "tower_1_mixed_conv_1");
	x = same_pool(net, in, average);
	parts[5] = conv(net, x, SQUARE(192, 1), "tower_2_conv");
	return mu_net_concat(net, 6, parts, NULL);
}

static int stem(struct mu_net *net, int x)
{
	x = conv(net, x, VALID(32, 2), "conv");
	x = conv(net, x, VALID(32, 1), "conv_1");
	x = conv(net, x, SQUARE(64, 3), "conv_2");
	x = half_pool(net, x);
	x = conv(net, x, SQUARE(80, 1), "conv_3");
	x = conv(net, x, VALID(192, 1), "conv_4");
	return half_pool(net, x);
}

static const int projections[3] = {32, 64, 64}, widths[4] = {128, 160, 160, 192};

static int body(struct mu_net *net, int x)
{
	for (int i = 0; i < 3; i++) {
		mu_net_prefix(net, i ? "mixed_%d_" : "mixed_", i);
		x = block_a(net, x, projections[i]);
	}
	mu_net_prefix(net, "mixed_3_");
	x = block_b(net, x);
	for (int i = 0; i < 4; i++) {
		mu_net_prefix(net, "mixed_%d_", 4 + i);
		x = block_c(net, x, widths[i]);
	}
	mu_net_prefix(net, "mixed_8_");
	x = block_d(net, x);
	mu_net_prefix(net, "mixed_9_");
	x = block_e(net, x, true);
	mu_net_prefix(net, "mixed_10_");
	x = block_e(net, x, false);
	mu_net_prefix(net, "%s", "");
	return x;
}

static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	const struct mu_pooling last = {.average = true, .kernel = {8, 8}, .stride = {1, 1}};
	int x;

	x = mu_net_input(net);
	x = stem(net, x);
	x = body(net, x);
	x = mu_net_pooling(net, x, &last, "global_pool");
	x = mu_net_flatten(net, x, NULL);
	x = mu_net_fully_connected(
		net, x, &(struct mu_fully_connected){.units = (int)config->classes}, "fc1");
	mu_net_objective(net, x);
	return MU_OK;
}

const struct mu_network mu_network_inception_v3 = {
	.name = "inception-v3",
	.help = "Inception v3 for 299x299",
	.shape = MU_SAMPLE(3, 299, 299),
	.classes = 1000,
	.objective = "softmax",
	/* Goyal et al. 2017 for networks with batch-norm: 0.1 for 256 images, in proportion. */
	.training = {.lr = 0.0125, .batch = 32},
	.build = build,
};
