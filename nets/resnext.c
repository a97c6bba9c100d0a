/* SPDX-License-Identifier: Apache-2.0 */
/*
 * ResNeXt: residual units whose middle convolution works in 32 groups. (Xie et al., Aggregated
 * Residual Transformations for Deep Neural Networks, 2017.) As MXNet builds it: a normalisation of
 * the input, the unit's inner width is half its output, the stride is in the grouped convolution.
 */
#include "resnet.h"

static const int depths[] = {50, 101, 152};
static const int units[][4] = {{3, 4, 6, 3}, {3, 4, 23, 3}, {3, 8, 36, 3}};

struct conv {
	int filters, kernel, stride, groups;
};

static int conv_norm(struct mu_net *net, int x, struct conv c, const char *conv, const char *norm)
{
	const struct mu_convolution attr = {
		.filters = c.filters,
		.kernel = {c.kernel, c.kernel},
		.stride = {c.stride, c.stride},
		.pad = {c.kernel / 2, c.kernel / 2},
		.groups = c.groups,
		.no_bias = true,
	};

	x = mu_net_convolution(net, x, &attr, conv);
	return mu_net_batch_norm(net, x, &(struct mu_batch_norm){.eps = 2e-5f, .momentum = 0.9f},
				 norm);
}

static int relu(struct mu_net *net, int x, const char *name)
{
	return mu_net_activation(net, x, MU_ACTIVATION_RELU, name);
}

static int unit(struct mu_net *net, int in, int filters, int stride, bool project)
{
	int x, both[2];

	x = conv_norm(net, in, (struct conv){filters / 2, 1, 1, 1}, "conv1", "bn1");
	x = relu(net, x, "relu1");
	x = conv_norm(net, x, (struct conv){filters / 2, 3, stride, 32}, "conv2", "bn2");
	x = relu(net, x, "relu2");
	both[0] = conv_norm(net, x, (struct conv){filters, 1, 1, 1}, "conv3", "bn3");
	both[1] = project ? conv_norm(net, in, (struct conv){filters, 1, stride, 1}, "sc", "sc_bn")
			  : in;
	x = mu_net_sum(net, 2, both, "plus");
	return relu(net, x, "relu");
}

static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	enum mu_status st = MU_OK;
	const struct mu_batch_norm input_norm = {.eps = 2e-5f, .momentum = 0.9f, .fix_gamma = true};
	const struct mu_pooling stem_pool = {.kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}};
	size_t depth;
	int x;

	MU_TRY(mu_net_find_depth(config, depths, sizeof depths / sizeof *depths, &depth));
	mu_net_set_depth(net, depths[depth]);
	mu_net_group(net, "stem");
	x = mu_net_input(net);
	x = mu_net_batch_norm(net, x, &input_norm, "bn_data");
	x = conv_norm(net, x, (struct conv){64, 7, 2, 1}, "conv0", "bn0");
	x = relu(net, x, "relu0");
	x = mu_net_pooling(net, x, &stem_pool, "pool0");
	for (int s = 0; s < 4; s++)
		for (int u = 0; u < units[depth][s]; u++) {
			mu_net_group(net, "stage%d", s + 1);
			mu_net_prefix(net, "stage%d_unit%d_", s + 1, u + 1);
			x = unit(net, x, 256 << s, u == 0 && s > 0 ? 2 : 1, u == 0);
		}
	mu_net_prefix(net, "%s", "");
	mu_resnet_head(net, x, config);
out:
	return st;
}

const struct mu_network mu_network_resnext = {
	.name = "resnext",
	.help = "residual units with 32 groups; 50, 101 or 152 layers",
	.shape = MU_SAMPLE(3, 224, 224),
	.classes = 1000,
	.objective = "softmax",
	/* He et al. 2016: 0.1 for 256 images, in proportion (Goyal et al. 2017) to a batch that
	 * fits in memory. Small images: MXNet 1.x, train_cifar10.py. */
	.training = {.lr = 0.0125, .batch = 32},
	.training_small = {.lr = 0.05, .batch = 128, .pad = 4},
	.traits = MU_NETWORK_DEPTHS,
	.build = build,
};
