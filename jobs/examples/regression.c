/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model that predicts a number, with the mean squared error as its loss: here the digit in a
 * picture. --predict FILE.csv writes the numbers.
 *
 *	cc -shared -fPIC $(pkg-config --cflags muster) regression.c -o regression.so
 *	mpirun -np 3 trainer --network ./regression.so --kv-store dist_sync --data-dir DIR --lr 0.02
 *
 * The other losses of this kind: enum mu_element_form in <muster/device.h>.
 */
#include <muster/net.h>

#ifndef FORM
#define FORM MU_ELEMENT_SQUARED
#endif

static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	const struct mu_fully_connected hidden = {.units = 64}, value = {.units = 1};
	int x;

	(void)config;
	x = mu_net_input(net);
	x = mu_net_fully_connected(net, x, &hidden, NULL);
	x = mu_net_activation(net, x, MU_ACTIVATION_TANH, NULL);
	x = mu_net_fully_connected(net, x, &value, "value");
	mu_net_element_loss(net, x, &(struct mu_element_loss){.form = FORM}, "loss");
	return MU_OK;
}

static const struct mu_network regression = {
	.name = "regression",
	.help = "a number for each picture",
	.shape = MU_SAMPLE(1, 28, 28),
	.classes = 10,
	.build = build,
};

MU_NETWORK_EXPORT(regression);
