/* SPDX-License-Identifier: Apache-2.0 */
/*
 * VGG: 3x3 convolutions in five groups with a maximum pooling after each, then three fully
 * connected layers; vgg-bn has a batch-norm after every convolution. (Simonyan and Zisserman, Very
 * Deep Convolutional Networks for Large-Scale Image Recognition, 2014.)
 */
#include <muster/net.h>

static const int depths[] = {11, 13, 16, 19};
static const int groups[][5] = {{1, 1, 2, 2, 2}, {2, 2, 2, 2, 2}, {2, 2, 3, 3, 3}, {2, 2, 4, 4, 4}};
static const int filters[5] = {64, 128, 256, 512, 512};

/* Layer number i of group g. */
static int conv(struct mu_net *net, int x, int g, int i, bool norm)
{
	const struct mu_convolution attr = {.filters = filters[g], .kernel = {3, 3}, .pad = {1, 1}};
	char name[32];

	snprintf(name, sizeof name, "conv%d_%d", g + 1, i + 1);
	x = mu_net_convolution(net, x, &attr, name);
	if (norm) {
		const struct mu_batch_norm bn = {.eps = 1e-3f, .momentum = 0.9f, .fix_gamma = true};

		snprintf(name, sizeof name, "bn%d_%d", g + 1, i + 1);
		x = mu_net_batch_norm(net, x, &bn, name);
	}
	snprintf(name, sizeof name, "relu%d_%d", g + 1, i + 1);
	return mu_net_activation(net, x, MU_ACTIVATION_RELU, name);
}

static int dense(struct mu_net *net, int x, const char *name)
{
	x = mu_net_fully_connected(net, x, &(struct mu_fully_connected){.units = 4096}, name);
	x = mu_net_activation(net, x, MU_ACTIVATION_RELU, NULL);
	return mu_net_dropout(net, x, 0.5f, NULL);
}

static enum mu_status build_with(struct mu_net *net, const struct mu_net_config *config, bool norm)
{
	enum mu_status st = MU_OK;
	const struct mu_pooling pool = {.kernel = {2, 2}, .stride = {2, 2}};
	size_t depth;
	int x;

	MU_TRY(mu_net_find_depth(config, depths, sizeof depths / sizeof *depths, &depth));
	mu_net_set_depth(net, depths[depth]);
	x = mu_net_input(net);
	for (int g = 0; g < 5; g++) {
		for (int i = 0; i < groups[depth][g]; i++)
			x = conv(net, x, g, i, norm);
		x = mu_net_pooling(net, x, &pool, NULL);
	}
	x = mu_net_flatten(net, x, NULL);
	x = dense(net, x, "fc6");
	x = dense(net, x, "fc7");
	x = mu_net_fully_connected(
		net, x, &(struct mu_fully_connected){.units = (int)config->classes}, "fc8");
	mu_net_objective(net, x);
out:
	return st;
}

static enum mu_status build_plain(struct mu_net *net, const struct mu_net_config *config)
{
	return build_with(net, config, false);
}

static enum mu_status build_norm(struct mu_net *net, const struct mu_net_config *config)
{
	return build_with(net, config, true);
}

const struct mu_network mu_network_vgg = {
	.name = "vgg",
	.help = "VGG of 11, 13, 16 or 19 layers",
	.shape = MU_SAMPLE(3, 224, 224),
	.classes = 1000,
	.objective = "softmax",
	/* Simonyan and Zisserman 2014: 0.01 for 256 images, in proportion. */
	.training = {.lr = 0.00125, .batch = 32},
	.initializer = "xavier",
	.traits = MU_NETWORK_DEPTHS,
	.build = build_plain,
};

const struct mu_network mu_network_vgg_bn = {
	.name = "vgg-bn",
	.help = "VGG with batch-norm",
	.shape = MU_SAMPLE(3, 224, 224),
	.classes = 1000,
	.objective = "softmax",
	/* As vgg, whose learning rate is lower than batch-norm needs. */
	.training = {.lr = 0.00125, .batch = 32},
	.initializer = "xavier",
	.traits = MU_NETWORK_DEPTHS,
	.build = build_norm,
};
