/* SPDX-License-Identifier: Apache-2.0 */
/*
 * AlexNet without groups, with local response normalisation before the pooling, as MXNet 1.9 has
 * it. 50,844,008 parameters at (3, 224, 224) and 1000 classes. (Krizhevsky et al., ImageNet
 * Classification with Deep Convolutional Neural Networks, 2012.)
 */
#include <muster/net.h>

static int conv(struct mu_net *net, int x, const struct mu_convolution *attr, const char *number)
{
	char name[16];

	snprintf(name, sizeof name, "conv%s", number);
	x = mu_net_convolution(net, x, attr, name);
	snprintf(name, sizeof name, "relu%s", number);
	return mu_net_activation(net, x, MU_ACTIVATION_RELU, name);
}

static int dense(struct mu_net *net, int x, const char *name)
{
	x = mu_net_fully_connected(net, x, &(struct mu_fully_connected){.units = 4096}, name);
	x = mu_net_activation(net, x, MU_ACTIVATION_RELU, NULL);
	return mu_net_dropout(net, x, 0.5f, NULL);
}

static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	const struct mu_convolution conv1 = {.filters = 96, .kernel = {11, 11}, .stride = {4, 4}};
	const struct mu_convolution conv2 = {.filters = 256, .kernel = {5, 5}, .pad = {2, 2}};
	const struct mu_convolution conv3 = {.filters = 384, .kernel = {3, 3}, .pad = {1, 1}};
	const struct mu_convolution conv5 = {.filters = 256, .kernel = {3, 3}, .pad = {1, 1}};
	const struct mu_lrn lrn = {.size = 5, .alpha = 1e-4f, .beta = 0.75f, .k = 2};
	const struct mu_pooling pool = {.kernel = {3, 3}, .stride = {2, 2}};
	int x;

	x = mu_net_input(net);
	x = conv(net, x, &conv1, "1");
	x = mu_net_lrn(net, x, &lrn, NULL);
	x = mu_net_pooling(net, x, &pool, NULL);

	x = conv(net, x, &conv2, "2");
	x = mu_net_lrn(net, x, &lrn, NULL);
	x = mu_net_pooling(net, x, &pool, NULL);

	x = conv(net, x, &conv3, "3");
	x = conv(net, x, &conv3, "4");
	x = conv(net, x, &conv5, "5");
	x = mu_net_pooling(net, x, &pool, NULL);

	x = mu_net_flatten(net, x, NULL);
	x = dense(net, x, "fc1");
	x = dense(net, x, "fc2");
	x = mu_net_fully_connected(
		net, x, &(struct mu_fully_connected){.units = (int)config->classes}, "fc3");
	mu_net_objective(net, x);
	return MU_OK;
}

const struct mu_network mu_network_alexnet = {
	.name = "alexnet",
	.help = "AlexNet: five convolutions, three fully connected layers, LRN",
	.shape = MU_SAMPLE(3, 224, 224),
	.classes = 1000,
	.objective = "softmax",
	/* Krizhevsky et al. 2012. */
	.training = {.lr = 0.01, .batch = 128},
	.initializer = "normal",
	.build = build,
};
