/* SPDX-License-Identifier: Apache-2.0 */
/* A perceptron with two hidden layers of 128 and 64 units. 109,386 parameters at (1, 28, 28) and 10
 * classes. Without hidden layers it is linear, or with softmax logistic, regression. */
#include <muster/net.h>

static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	int x;

	x = mu_net_input(net);
	x = mu_net_flatten(net, x, NULL);
	if (config->num_layers == 0) {
		x = mu_net_fully_connected(net, x, &(struct mu_fully_connected){.units = 128},
					   "fc1");
		x = mu_net_activation(net, x, MU_ACTIVATION_RELU, "relu1");
		x = mu_net_fully_connected(net, x, &(struct mu_fully_connected){.units = 64},
					   "fc2");
		x = mu_net_activation(net, x, MU_ACTIVATION_RELU, "relu2");
	}
	x = mu_net_fully_connected(
		net, x, &(struct mu_fully_connected){.units = (int)config->classes}, "fc3");
	mu_net_objective(net, x);
	return MU_OK;
}

const struct mu_network mu_network_mlp = {
	.name = "mlp",
	.help = "perceptron: fc 128, fc 64, relu; without hidden layers: linear",
	.traits = MU_NETWORK_LINEAR,
	.shape = MU_SAMPLE(1, 28, 28),
	.classes = 10,
	.objective = "softmax",
	/* MXNet 1.x, example/image-classification/train_mnist.py. */
	.training = {.lr = 0.05, .batch = 64},
	.build = build,
};
