/* SPDX-License-Identifier: Apache-2.0 */
/* @np 1 */
/*
 * Layers that a network's author may not ask for: the error names the layer, its input and what it
 * needs, on every device, since the net says so and not the device.
 */
#include <muster/base.h>

#include "../lib/check.h"
#include "net/plan.h"

static int pool(struct mu_net *net, int x, const struct mu_pooling *attr)
{
	return mu_net_pooling(net, x, attr, "pool1");
}

/* Inputs of (2, 5, 4). config->num_layers is the case. */
static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	const struct mu_pooling overhang = {
		.average = true, .kernel = {1, 1}, .stride = {3, 3}, .ceil = true};
	const struct mu_pooling wide = {.kernel = {2, 2}, .pad = {2, 1}};
	const struct mu_pooling large = {.kernel = {3, 7}, .pad = {1, 1}};
	int x = mu_net_input(net);

	switch (config->num_layers) {
	case 1: x = pool(net, x, &overhang); break;
	case 2: x = pool(net, x, &wide); break;
	case 3: x = pool(net, x, &large); break;
	case 4: x = pool(net, x, NULL); break;
	case 5: x = mu_net_convolution(net, x, NULL, NULL); break;
	case 6: x = mu_net_fully_connected(net, x, NULL, NULL); break;
	case 7: x = mu_net_batch_norm(net, x, NULL, NULL); break;
	case 8: x = mu_net_lrn(net, x, NULL, NULL); break;
	case 9: x = mu_net_embedding(net, x, NULL, NULL); break;
	case 10: x = mu_net_lstm(net, x, NULL, NULL); break;
	case 11:
		x = mu_net_lstm(net, mu_net_flatten(net, x, NULL), &(struct mu_lstm){4}, NULL);
		break;
	default: break;
	}
	x = mu_net_fully_connected(
		net, x, &(struct mu_fully_connected){.units = (int)config->classes}, NULL);
	mu_net_softmax(net, x, "softmax");
	return MU_OK;
}

static const struct mu_network network = {
	.name = "wrong", .traits = MU_NETWORK_DEPTHS, .build = build};

static void check_case(long number, enum mu_status expected, const char *words)
{
	struct mu_net_config config = {.network = "wrong",
				       .shape = MU_SAMPLE(2, 5, 4),
				       .classes = 3,
				       .num_layers = number};
	struct mu_net *net = NULL;

	CHECK(mu_net_new_from(&net, &network, &config) == expected);
	CHECK_HAS(mu_trace_message(), words);
	mu_trace_clear();
	mu_net_free(net);
}

int main(void)
{
	check_case(0, MU_OK, "");
	check_case(1, MU_ERR_USAGE,
		   "pooling pool1 has windows of 1 x 1 with nothing but padding in them");
	check_case(2, MU_ERR_USAGE, "pool1 has windows of 2 x 2 with nothing but padding in them");
	check_case(3, MU_ERR_USAGE, "has an input of 5 x 4, and its window of 3 x 7");
	for (long layer = 4; layer <= 10; layer++)
		check_case(layer, MU_ERR_USAGE, "attr");
	check_case(11, MU_ERR_USAGE, "lstm0 needs an input (n, c, steps, 1), not (n, 40)");
	return check_failures() ? 1 : 0;
}
