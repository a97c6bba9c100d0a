/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inception with batch-norm. (Ioffe and Szegedy, Batch Normalization, 2015.) Two networks as MXNet
 * has them: the full one for 224x224, and a small one for 28x28, which the name inception-bn takes
 * too for images of height <= 28. Every convolution has a bias.
 */
#include <muster/net.h>

struct conv {
	int filters, kernel, stride, pad;
};

/* Convolution, batch-norm, relu: conv_<name><suffix>, bn_<name><suffix> and so on. */
static int conv(struct mu_net *net, int x, struct conv c, const char *name, const char *suffix)
{
	const struct mu_convolution attr = {
		.filters = c.filters,
		.kernel = {c.kernel, c.kernel},
		.stride = {c.stride, c.stride},
		.pad = {c.pad, c.pad},
	};
	const struct mu_batch_norm norm = {.eps = 1e-5f + 1e-10f, .momentum = 0.9f};
	char text[64];

	snprintf(text, sizeof text, "conv_%s%s", name, suffix);
	x = mu_net_convolution(net, x, &attr, text);
	snprintf(text, sizeof text, "bn_%s%s", name, suffix);
	x = mu_net_batch_norm(net, x, &norm, text);
	snprintf(text, sizeof text, "relu_%s%s", name, suffix);
	return mu_net_activation(net, x, MU_ACTIVATION_RELU, text);
}

/* 3x3; stride 1 with a border, or stride 2. */
static int pool(struct mu_net *net, int x, bool average, int stride, int pad)
{
	return mu_net_pooling(net, x,
			      &(struct mu_pooling){.average = average,
						   .kernel = {3, 3},
						   .stride = {stride, stride},
						   .pad = {pad, pad}},
			      NULL);
}

/* Average over 7x7, fully connected, softmax. */
static void finish(struct mu_net *net, int x, const struct mu_net_config *config)
{
	const struct mu_pooling last = {.average = true, .kernel = {7, 7}, .stride = {1, 1}};

	x = mu_net_pooling(net, x, &last, "global_pool");
	x = mu_net_flatten(net, x, NULL);
	x = mu_net_fully_connected(
		net, x, &(struct mu_fully_connected){.units = (int)config->classes}, NULL);
	mu_net_objective(net, x);
}

/* ---- the small one ---- */

static int simple(struct mu_net *net, int x, int n1, int n3, const char *name)
{
	int parts[2];

	parts[0] = conv(net, x, (struct conv){n1, 1, 1, 0}, name, "_1x1");
	parts[1] = conv(net, x, (struct conv){n3, 3, 1, 1}, name, "_3x3");
	return mu_net_concat(net, 2, parts, NULL);
}

static int down(struct mu_net *net, int x, int filters, const char *name)
{
	int parts[2];

	parts[0] = conv(net, x, (struct conv){filters, 3, 2, 1}, name, "_conv");
	parts[1] = pool(net, x, false, 2, 1);
	return mu_net_concat(net, 2, parts, NULL);
}

static enum mu_status build_small(struct mu_net *net, const struct mu_net_config *config)
{
	int x = mu_net_input(net);

	x = conv(net, x, (struct conv){96, 3, 1, 1}, "1", "");
	x = simple(net, x, 32, 32, "in3a");
	x = simple(net, x, 32, 48, "in3b");
	x = down(net, x, 80, "in3c");
	x = simple(net, x, 112, 48, "in4a");
	x = simple(net, x, 96, 64, "in4b");
	x = simple(net, x, 80, 80, "in4c");
	x = simple(net, x, 48, 96, "in4d");
	x = down(net, x, 96, "in4e");
	x = simple(net, x, 176, 160, "in5a");
	x = simple(net, x, 176, 160, "in5b");
	finish(net, x, config);
	return MU_OK;
}

/* ---- the full one ---- */

/* Four towers side by side: 1x1; 3x3; twice 3x3; a pooling. */
struct block {
	const char *name;
	int n1, n3_reduce, n3, nd_reduce, nd;
	bool max_pool;
	int projection;
};

static int wide(struct mu_net *net, int in, const struct block *b)
{
	int parts[4], x;

	parts[0] = conv(net, in, (struct conv){b->n1, 1, 1, 0}, b->name, "_1x1");
	x = conv(net, in, (struct conv){b->n3_reduce, 1, 1, 0}, b->name, "_3x3_reduce");
	parts[1] = conv(net, x, (struct conv){b->n3, 3, 1, 1}, b->name, "_3x3");
	x = conv(net, in, (struct conv){b->nd_reduce, 1, 1, 0}, b->name, "_double_3x3_reduce");
	x = conv(net, x, (struct conv){b->nd, 3, 1, 1}, b->name, "_double_3x3_0");
	parts[2] = conv(net, x, (struct conv){b->nd, 3, 1, 1}, b->name, "_double_3x3_1");
	x = pool(net, in, !b->max_pool, 1, 1);
	parts[3] = conv(net, x, (struct conv){b->projection, 1, 1, 0}, b->name, "_proj");
	return mu_net_concat(net, 4, parts, NULL);
}

/* The same with stride 2, without the first tower and the projection. */
static int halve(struct mu_net *net, int in, const struct block *b)
{
	int parts[3], x;

	x = conv(net, in, (struct conv){b->n3_reduce, 1, 1, 0}, b->name, "_3x3_reduce");
	parts[0] = conv(net, x, (struct conv){b->n3, 3, 2, 1}, b->name, "_3x3");
	x = conv(net, in, (struct conv){b->nd_reduce, 1, 1, 0}, b->name, "_double_3x3_reduce");
	x = conv(net, x, (struct conv){b->nd, 3, 1, 1}, b->name, "_double_3x3_0");
	parts[1] = conv(net, x, (struct conv){b->nd, 3, 2, 1}, b->name, "_double_3x3_1");
	parts[2] = pool(net, in, false, 2, 1);
	return mu_net_concat(net, 3, parts, NULL);
}

static const struct block blocks[] = {
	{"3a", 64, 64, 64, 64, 96, false, 32},       {"3b", 64, 64, 96, 64, 96, false, 64},
	{"3c", 0, 128, 160, 64, 96, true, 0},        {"4a", 224, 64, 96, 96, 128, false, 128},
	{"4b", 192, 96, 128, 96, 128, false, 128},   {"4c", 160, 128, 160, 128, 160, false, 128},
	{"4d", 96, 128, 192, 160, 192, false, 128},  {"4e", 0, 128, 192, 192, 256, true, 0},
	{"5a", 352, 192, 320, 160, 224, false, 128}, {"5b", 352, 192, 320, 192, 224, true, 128},
};

static enum mu_status build_full(struct mu_net *net, const struct mu_net_config *config)
{
	int x = mu_net_input(net);

	x = conv(net, x, (struct conv){64, 7, 2, 3}, "1", "");
	x = pool(net, x, false, 2, 0);
	x = conv(net, x, (struct conv){64, 1, 1, 0}, "2_red", "");
	x = conv(net, x, (struct conv){192, 3, 1, 1}, "2", "");
	x = pool(net, x, false, 2, 0);
	for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++)
		x = blocks[i].n1 > 0 ? wide(net, x, &blocks[i]) : halve(net, x, &blocks[i]);
	finish(net, x, config);
	return MU_OK;
}

static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	const size_t height = mu_sample_picture(&config->shape).h;
	bool small = height <= 28;

	mu_net_note(net, "inception-bn: the network for %s, by height %zu",
		    small ? "28x28" : "224x224", height);
	return small ? build_small(net, config) : build_full(net, config);
}

const struct mu_network mu_network_inception_bn = {
	.name = "inception-bn",
	.help = "Inception with batch-norm; the small one at height <= 28",
	.shape = MU_SAMPLE(3, 224, 224),
	.classes = 1000,
	.objective = "softmax",
	/* MXNet 1.x, example/image-classification: 0.05 for 144 images, in proportion. */
	.training = {.lr = 0.01, .batch = 32},
	.build = build,
};

const struct mu_network mu_network_inception_bn_small = {
	.name = "inception-bn-28-small",
	.help = "Inception with batch-norm for 28x28",
	.shape = MU_SAMPLE(3, 28, 28),
	.classes = 10,
	.objective = "softmax",
	/* MXNet 1.x, example/image-classification/train_cifar10.py. */
	.training = {.lr = 0.05, .batch = 128, .pad = 4},
	.build = build_small,
};
