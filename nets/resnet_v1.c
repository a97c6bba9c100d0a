/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Residual networks, version 1: activation after the sum, a normalised 1x1 convolution as the first
 * shortcut of every stage. (He et al., Deep Residual Learning for Image Recognition, 2015.) As
 * MXNet builds them: a bottleneck takes its stride in the first 1x1 convolution, and the stem for
 * small images has no activation.
 */
#include "resnet.h"

struct conv {
	int filters, kernel, stride;
};

static int conv_norm(struct mu_net *net, int x, struct conv c, const char *conv, const char *norm)
{
	const struct mu_convolution attr = {
		.filters = c.filters,
		.kernel = {c.kernel, c.kernel},
		.stride = {c.stride, c.stride},
		.pad = {c.kernel / 2, c.kernel / 2},
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

static int basic(struct mu_net *net, int x, int filters, int stride)
{
	x = conv_norm(net, x, (struct conv){filters, 3, stride}, "conv1", "bn1");
	x = relu(net, x, "relu1");
	return conv_norm(net, x, (struct conv){filters, 3, 1}, "conv2", "bn2");
}

static int bottleneck(struct mu_net *net, int x, int filters, int stride)
{
	x = conv_norm(net, x, (struct conv){filters / 4, 1, stride}, "conv1", "bn1");
	x = relu(net, x, "relu1");
	x = conv_norm(net, x, (struct conv){filters / 4, 3, 1}, "conv2", "bn2");
	x = relu(net, x, "relu2");
	return conv_norm(net, x, (struct conv){filters, 1, 1}, "conv3", "bn3");
}

static int stage(struct mu_net *net, int x, const struct resnet *r, int s)
{
	mu_net_group(net, "stage%d", s + 1);
	for (int u = 0; u < r->units[s]; u++) {
		int stride = u == 0 && s > 0 ? 2 : 1, f = r->filters[s], both[2];

		mu_net_prefix(net, "stage%d_unit%d_", s + 1, u + 1);
		both[0] = r->bottleneck ? bottleneck(net, x, f, stride) : basic(net, x, f, stride);
		both[1] =
			u > 0 ? x : conv_norm(net, x, (struct conv){f, 1, stride}, "conv1sc", "sc");
		x = mu_net_sum(net, 2, both, "plus");
		x = relu(net, x, "relu");
	}
	mu_net_prefix(net, "%s", "");
	return x;
}

static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	enum mu_status st = MU_OK;
	const struct mu_pooling stem_pool = {.kernel = {3, 3}, .stride = {2, 2}, .pad = {1, 1}};
	struct resnet r;
	int x;

	MU_TRY(mu_resnet_choose(net, config, &r));
	mu_net_group(net, "stem");
	x = mu_net_input(net);
	if (r.small) {
		x = conv_norm(net, x, (struct conv){r.stem, 3, 1}, "conv0", "bn0");
	} else {
		x = conv_norm(net, x, (struct conv){r.stem, 7, 2}, "conv0", "bn0");
		x = relu(net, x, "relu0");
		x = mu_net_pooling(net, x, &stem_pool, "pool0");
	}
	for (int s = 0; s < r.n_stages; s++)
		x = stage(net, x, &r, s);
	mu_resnet_head(net, x, config);
out:
	return st;
}

const struct mu_network mu_network_resnet_v1 = {
	.name = "resnet-v1",
	.help = "residual network, version 1; depths as resnet",
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
