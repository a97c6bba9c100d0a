/* SPDX-License-Identifier: Apache-2.0 */
/*
 * GoogLeNet without normalisation, dropout and side outputs, as MXNet has it. 6,998,552 parameters
 * at 1000 classes. (Szegedy et al., Going Deeper with Convolutions, 2014.)
 */
#include <muster/net.h>

struct conv {
	int filters, kernel, stride, pad;
};

static int conv(struct mu_net *net, int x, struct conv c, const char *name, const char *suffix)
{
	const struct mu_convolution attr = {
		.filters = c.filters,
		.kernel = {c.kernel, c.kernel},
		.stride = {c.stride, c.stride},
		.pad = {c.pad, c.pad},
	};
	char text[64];

	snprintf(text, sizeof text, "conv_%s%s", name, suffix);
	x = mu_net_convolution(net, x, &attr, text);
	snprintf(text, sizeof text, "relu_%s%s", name, suffix);
	return mu_net_activation(net, x, MU_ACTIVATION_RELU, text);
}

/* Four towers: 1x1; 3x3; 5x5; maximum pooling. */
struct block {
	const char *name;
	int n1, n3_reduce, n3, n5_reduce, n5, projection;
	bool pool; /* a pooling with stride 2 after it */
};

static int inception(struct mu_net *net, int in, const struct block *b)
{
	const struct mu_pooling pool = {.kernel = {3, 3}, .stride = {1, 1}, .pad = {1, 1}};
	int parts[4], x;

	parts[0] = conv(net, in, (struct conv){b->n1, 1, 1, 0}, b->name, "_1x1");
	x = conv(net, in, (struct conv){b->n3_reduce, 1, 1, 0}, b->name, "_3x3_reduce");
	parts[1] = conv(net, x, (struct conv){b->n3, 3, 1, 1}, b->name, "_3x3");
	x = conv(net, in, (struct conv){b->n5_reduce, 1, 1, 0}, b->name, "_5x5_reduce");
	parts[2] = conv(net, x, (struct conv){b->n5, 5, 1, 2}, b->name, "_5x5");
	x = mu_net_pooling(net, in, &pool, NULL);
	parts[3] = conv(net, x, (struct conv){b->projection, 1, 1, 0}, b->name, "_proj");
	return mu_net_concat(net, 4, parts, NULL);
}

static const struct block blocks[] = {
	{"in3a", 64, 96, 128, 16, 32, 32, false},     {"in3b", 128, 128, 192, 32, 96, 64, true},
	{"in4a", 192, 96, 208, 16, 48, 64, false},    {"in4b", 160, 112, 224, 24, 64, 64, false},
	{"in4c", 128, 128, 256, 24, 64, 64, false},   {"in4d", 112, 144, 288, 32, 64, 64, false},
	{"in4e", 256, 160, 320, 32, 128, 128, true},  {"in5a", 256, 160, 320, 32, 128, 128, false},
	{"in5b", 384, 192, 384, 48, 128, 128, false},
};

static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	const struct mu_pooling pool = {.kernel = {3, 3}, .stride = {2, 2}};
	int x;

	x = mu_net_input(net);
	x = conv(net, x, (struct conv){64, 7, 2, 3}, "conv1", "");
	x = mu_net_pooling(net, x, &pool, NULL);
	x = conv(net, x, (struct conv){64, 1, 1, 0}, "conv2", "");
	x = conv(net, x, (struct conv){192, 3, 1, 1}, "conv3", "");
	x = mu_net_pooling(net, x, &pool, NULL);
	for (size_t i = 0; i < sizeof blocks / sizeof *blocks; i++) {
		x = inception(net, x, &blocks[i]);
		if (blocks[i].pool)
			x = mu_net_pooling(net, x, &pool, NULL);
	}
	x = mu_net_pooling(net, x, &(struct mu_pooling){.average = true, .global = true}, NULL);
	x = mu_net_flatten(net, x, NULL);
	x = mu_net_fully_connected(
		net, x, &(struct mu_fully_connected){.units = (int)config->classes}, NULL);
	mu_net_objective(net, x);
	return MU_OK;
}

const struct mu_network mu_network_googlenet = {
	.name = "googlenet",
	.help = "GoogLeNet: nine inception blocks",
	.shape = MU_SAMPLE(3, 224, 224),
	.classes = 1000,
	.objective = "softmax",
	/* Caffe's bvlc_googlenet, quick_solver. */
	.training = {.lr = 0.01, .batch = 32},
	.build = build,
};
