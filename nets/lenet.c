/* SPDX-License-Identifier: Apache-2.0 */
/*
 * LeNet with tanh, as MXNet's example trains it: two convolutions, each followed by a maximum
 * pooling, then two fully connected layers. 431,080 parameters at (1, 28, 28) and 10 classes.
 * (LeCun et al., 1998, in its Caffe sizes.)
 *
 * This is also the example to copy for a network of your own: one function that calls one layer
 * after the other, one const table, one line in nets/table.c.
 */
#include <muster/net.h>

static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	const struct mu_convolution conv1 = {.filters = 20, .kernel = {5, 5}};
	const struct mu_convolution conv2 = {.filters = 50, .kernel = {5, 5}};
	const struct mu_pooling pool = {.kernel = {2, 2}, .stride = {2, 2}};
	int x;

	x = mu_net_input(net);
	x = mu_net_convolution(net, x, &conv1, NULL);
	x = mu_net_activation(net, x, MU_ACTIVATION_TANH, NULL);
	x = mu_net_pooling(net, x, &pool, NULL);

	x = mu_net_convolution(net, x, &conv2, NULL);
	x = mu_net_activation(net, x, MU_ACTIVATION_TANH, NULL);
	x = mu_net_pooling(net, x, &pool, NULL);

	x = mu_net_flatten(net, x, NULL);
	x = mu_net_fully_connected(net, x, &(struct mu_fully_connected){.units = 500}, NULL);
	x = mu_net_activation(net, x, MU_ACTIVATION_TANH, NULL);
	x = mu_net_fully_connected(
		net, x, &(struct mu_fully_connected){.units = (int)config->classes}, NULL);
	mu_net_objective(net, x);
	return MU_OK;
}

const struct mu_network mu_network_lenet = {
	.name = "lenet",
	.help = "LeNet: conv 20, conv 50, fc 500, tanh",
	.shape = MU_SAMPLE(1, 28, 28),
	.classes = 10,
	.objective = "softmax",
	/* MXNet 1.x, example/image-classification/train_mnist.py. */
	.training = {.lr = 0.05, .batch = 64},
	.build = build,
};
