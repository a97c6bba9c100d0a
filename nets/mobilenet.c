/* SPDX-License-Identifier: Apache-2.0 */
/*
 * MobileNet: pairs of a depthwise 3x3 and a pointwise 1x1 convolution. The number in the name
 * multiplies all widths. (Howard et al., MobileNets, 2017.) As MXNet has it: no biases, gammas
 * fixed to 1.
 */
#include <muster/net.h>

struct conv {
	int filters, kernel, stride, groups;
};

/* name "conv_2_dw" gives conv_2_dw_conv2d, conv_2_dw_batchnorm, conv_2_dw_relu. */
static int conv(struct mu_net *net, int x, struct conv c, int number, const char *suffix)
{
	const struct mu_convolution attr = {
		.filters = c.filters,
		.kernel = {c.kernel, c.kernel},
		.stride = {c.stride, c.stride},
		.pad = {c.kernel / 2, c.kernel / 2},
		.groups = c.groups,
		.no_bias = true,
	};
	const struct mu_batch_norm norm = {.eps = 1e-3f, .momentum = 0.9f, .fix_gamma = true};

	mu_net_prefix(net, "conv_%d%s_", number, suffix);
	x = mu_net_convolution(net, x, &attr, "conv2d");
	x = mu_net_batch_norm(net, x, &norm, "batchnorm");
	x = mu_net_activation(net, x, MU_ACTIVATION_RELU, "relu");
	mu_net_prefix(net, "%s", "");
	return x;
}

static const struct {
	int filters, stride; /* of a pair: pointwise filters, depthwise stride */
} pairs[] = {
	{64, 1},  {128, 2}, {128, 1}, {256, 2}, {256, 1},  {512, 2},  {512, 1},
	{512, 1}, {512, 1}, {512, 1}, {512, 1}, {1024, 2}, {1024, 1},
};

/* width in quarters */
static void build_wide(struct mu_net *net, const struct mu_net_config *config, int quarters)
{
	int x = mu_net_input(net), filters = 32 * quarters / 4;

	x = conv(net, x, (struct conv){filters, 3, 2, 1}, 1, "");
	for (int i = 0; i < (int)(sizeof pairs / sizeof *pairs); i++) {
		x = conv(net, x, (struct conv){filters, 3, pairs[i].stride, filters}, i + 2, "_dw");
		filters = pairs[i].filters * quarters / 4;
		x = conv(net, x, (struct conv){filters, 1, 1, 1}, i + 2, "");
	}
	x = mu_net_pooling(net, x, &(struct mu_pooling){.average = true, .global = true},
			   "global_pool");
	x = mu_net_flatten(net, x, NULL);
	x = mu_net_fully_connected(
		net, x, &(struct mu_fully_connected){.units = (int)config->classes}, "fc");
	mu_net_objective(net, x);
}

static enum mu_status build_100(struct mu_net *net, const struct mu_net_config *config)
{
	build_wide(net, config, 4);
	return MU_OK;
}

static enum mu_status build_075(struct mu_net *net, const struct mu_net_config *config)
{
	build_wide(net, config, 3);
	return MU_OK;
}

static enum mu_status build_050(struct mu_net *net, const struct mu_net_config *config)
{
	build_wide(net, config, 2);
	return MU_OK;
}

static enum mu_status build_025(struct mu_net *net, const struct mu_net_config *config)
{
	build_wide(net, config, 1);
	return MU_OK;
}

/* Torchvision's 0.045 for 256 images, in proportion. */
#define TRAINING {.lr = 0.0056, .batch = 32}

const struct mu_network mu_network_mobilenet = {
	.name = "mobilenet",
	.help = "MobileNet: depthwise and pointwise convolutions",
	.shape = MU_SAMPLE(3, 224, 224),
	.classes = 1000,
	.objective = "softmax",
	.training = TRAINING,
	.build = build_100,
};

const struct mu_network mu_network_mobilenet_075 = {
	.name = "mobilenet-0.75",
	.help = "MobileNet, three quarters of the width",
	.shape = MU_SAMPLE(3, 224, 224),
	.classes = 1000,
	.objective = "softmax",
	.training = TRAINING,
	.build = build_075,
};

const struct mu_network mu_network_mobilenet_050 = {
	.name = "mobilenet-0.5",
	.help = "MobileNet, half the width",
	.shape = MU_SAMPLE(3, 224, 224),
	.classes = 1000,
	.objective = "softmax",
	.training = TRAINING,
	.build = build_050,
};

const struct mu_network mu_network_mobilenet_025 = {
	.name = "mobilenet-0.25",
	.help = "MobileNet, a quarter of the width",
	.shape = MU_SAMPLE(3, 224, 224),
	.classes = 1000,
	.objective = "softmax",
	.training = TRAINING,
	.build = build_025,
};
