/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model of your own from ready layers: a small convolutional network with a shortcut.
 *
 *	cc -shared -fPIC $(pkg-config --cflags muster) mynet.c -o mynet.so
 *	mpirun -np 3 trainer --network ./mynet.so --kv-store dist_sync --data-dir DIR --lr 0.05
 *
 * All layers stand in <muster/net.h>, their settings in <muster/device.h>. The network has a
 * setting of its own, --width N: `trainer --help ./mynet.so` lists it, checkpoints record it.
 */
#include <muster/net.h>

struct settings {
	long width;
};

static const struct mu_option settings[] = {
	{MU_SETTING("width", INT, struct settings, width), .initial = "16", .min = 1, .max = 4096,
	 .record = MU_RECORD_SHAPES,
	 .help = "N  filters of the first convolutions; the last has 2 N"},
	{.name = NULL},
};

static int unit(struct mu_net *net, int x, int filters)
{
	const struct mu_convolution conv = {
		.filters = filters, .kernel = {3, 3}, .pad = {1, 1}, .no_bias = true};
	const struct mu_batch_norm norm = {.eps = 1e-5f, .momentum = 0.9f};

	x = mu_net_convolution(net, x, &conv, NULL);
	x = mu_net_batch_norm(net, x, &norm, NULL);
	return mu_net_activation(net, x, MU_ACTIVATION_RELU, NULL);
}

static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	const struct settings *own = config->settings;
	const int width = (int)own->width;
	const struct mu_pooling half = {.kernel = {2, 2}, .stride = {2, 2}};
	const struct mu_pooling all = {.average = true, .global = true};
	const struct mu_fully_connected scores = {.units = (int)config->classes};
	int x, y;

	x = mu_net_input(net);
	x = unit(net, x, width);
	x = mu_net_pooling(net, x, &half, NULL);
	y = unit(net, x, width);
	x = mu_net_sum(net, 2, (int[]){x, y}, NULL);
	x = mu_net_pooling(net, x, &half, NULL);
	x = unit(net, x, 2 * width);
	x = mu_net_pooling(net, x, &all, NULL);
	x = mu_net_fully_connected(net, x, &scores, "scores");
	mu_net_softmax(net, x, "softmax");
	return MU_OK;
}

static const struct mu_network mynet = {
	.name = "mynet",
	.help = "three convolutions and a shortcut",
	.shape = MU_SAMPLE(1, 28, 28),
	.classes = 10,
	.settings = settings,
	.settings_nbytes = sizeof(struct settings),
	.build = build,
};

MU_NETWORK_EXPORT(mynet);
