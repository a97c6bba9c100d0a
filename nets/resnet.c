/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Residual networks, version 2: normalisation and activation before the convolutions. (He et al.,
 * Identity Mappings in Deep Residual Networks, 2016.) As MXNet builds them: a normalisation of the
 * input, and the shortcut's convolution reads what the unit's first activation gives.
 */
#include "resnet.h"

static int norm_relu(struct mu_net *net, int x, const char *norm, const char *relu)
{
	x = mu_net_batch_norm(net, x, &(struct mu_batch_norm){.eps = 2e-5f, .momentum = 0.9f},
			      norm);
	return mu_net_activation(net, x, MU_ACTIVATION_RELU, relu);
}

static int conv(struct mu_net *net, int x, int filters, int kernel, int stride, const char *name)
{
	const struct mu_convolution attr = {
		.filters = filters,
		.kernel = {kernel, kernel},
		.stride = {stride, stride},
		.pad = {kernel / 2, kernel / 2},
		.no_bias = true,
	};

	return mu_net_convolution(net, x, &attr, name);
}

static int basic(struct mu_net *net, int x, int filters, int stride)
{
	x = conv(net, x, filters, 3, stride, "conv1");
	x = norm_relu(net, x, "bn2", "relu2");
	return conv(net, x, filters, 3, 1, "conv2");
}

static int bottleneck(struct mu_net *net, int x, int filters, int stride)
{
	x = conv(net, x, filters / 4, 1, 1, "conv1");
	x = norm_relu(net, x, "bn2", "relu2");
	x = conv(net, x, filters / 4, 3, stride, "conv2");
	x = norm_relu(net, x, "bn3", "relu3");
	return conv(net, x, filters, 1, 1, "conv3");
}

static int stage(struct mu_net *net, int x, const struct resnet *r, int s)
{
	mu_net_group(net, "stage%d", s + 1);
	for (int u = 0; u < r->units[s]; u++) {
		int stride = u == 0 && s > 0 ? 2 : 1, a, both[2];

		mu_net_prefix(net, "stage%d_unit%d_", s + 1, u + 1);
		a = norm_relu(net, x, "bn1", "relu1");
		both[0] = r->bottleneck ? bottleneck(net, a, r->filters[s], stride)
					: basic(net, a, r->filters[s], stride);
		both[1] = u == 0 ? conv(net, a, r->filters[s], 1, stride, "sc") : x;
		x = mu_net_sum(net, 2, both, "plus");
	}
	mu_net_prefix(net, "%s", "");
	return x;
}

static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	enum mu_status st = MU_OK;
	const struct mu_batch_norm input_norm = {.eps = 2e-5f, .momentum = 0.9f, .fix_gamma = true};
	const struct mu_pooling stem_pool = {.kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}};
	struct resnet r;
	int x;

	MU_TRY(mu_resnet_choose(net, config, &r));
	mu_net_group(net, "stem");
	x = mu_net_input(net);
	x = mu_net_batch_norm(net, x, &input_norm, "bn_data");
	if (r.small) {
		x = conv(net, x, r.stem, 3, 1, "conv0");
	} else {
		x = conv(net, x, r.stem, 7, 2, "conv0");
		x = norm_relu(net, x, "bn0", "relu0");
		x = mu_net_pooling(net, x, &stem_pool, "pool0");
	}
	for (int s = 0; s < r.n_stages; s++)
		x = stage(net, x, &r, s);
	mu_net_group(net, "head");
	x = norm_relu(net, x, "bn1", "relu1");
	mu_resnet_head(net, x, config);
out:
	return st;
}

const struct mu_network mu_network_resnet = {
	.name = "resnet",
	.help = "residual network, pre-activation; 20, 56, 110, ... for small images, 18 to 269",
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
