/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model with two outputs, each with a loss and a target of its own: a class, 0 or 1, by the
 * cross-entropy, and a value by its squared error times --value-weight; the loss is their sum.
 * Targets are two columns, in this order. The log has class-accuracy, value-mse and more, as of a
 * loss that is alone. --predict writes the probabilities of both classes and the value.
 *
 *	cc -O3 -shared -fPIC $(pkg-config --cflags muster) two_heads.c -o two_heads.so
 *	trainer --network ./two_heads.so --data-train t.csv --label-columns class,value
 */
#include <muster/net.h>

struct settings {
	double weight;
};

static const struct mu_option settings[] = {
	{MU_SETTING("value-weight", REAL, struct settings, weight), .initial = "1", .min = 0,
	 .max = 1e6, .record = MU_RECORD_TRAINING, .help = "W  factor of the value's loss"},
	{.name = NULL},
};

static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	const struct settings *own = config->settings;
	const struct mu_fully_connected hidden = {.units = 16}, class = {.units = 2},
					value = {.units = 1};
	struct mu_head heads[2] = {
		{.name = "class", .loss = "softmax", .weight = 1},
		{.name = "value", .loss = "mse", .weight = own->weight},
	};
	int x = mu_net_input(net);

	x = mu_net_fully_connected(net, x, &hidden, NULL);
	x = mu_net_activation(net, x, MU_ACTIVATION_TANH, NULL);
	heads[0].in = mu_net_fully_connected(net, x, &class, "class");
	heads[1].in = mu_net_fully_connected(net, x, &value, "value");
	mu_net_losses(net, 2, heads);
	return MU_OK;
}

static const struct mu_network two_heads = {
	.name = "two-heads",
	.help = "a class and a value of each sample",
	.shape = MU_SAMPLE(2),
	.classes = 2,
	.settings = settings,
	.settings_nbytes = sizeof(struct settings),
	.build = build,
};

MU_NETWORK_EXPORT(two_heads);
