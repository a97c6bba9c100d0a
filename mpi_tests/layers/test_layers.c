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

/* Layers that change the axes of space. */
static int build_space(struct mu_net *net, int x, long number)
{
	const struct mu_deconvolution extra = {.filters = 2, .kernel = {2, 2}, .extra = {0, 1}};
	const struct mu_deconvolution gone = {.filters = 2, .kernel = {1, 1}, .pad = {3, 0}};
	const struct mu_upsampling both = {.scale = {2, 2}, .size = {0, 8}};
	const struct mu_crop outside = {{0, 2}, {5, 3}};
	const struct mu_pad nothing = {.before = {-2, 0}, .after = {-3, 0}};
	const struct mu_pad endless = {.before = {2147483000, 0}, .after = {643, 0}};
	const struct mu_group_norm thirds = {1e-5f, 3};
	const struct mu_activation negative = {MU_ACTIVATION_ELU, -1};
	const struct mu_activation relu = {MU_ACTIVATION_RELU, 1};
	const struct mu_shape other = MU_SAMPLE(2, 5, 3);

	switch (number) {
	case 12: return mu_net_deconvolution(net, x, &extra, NULL);
	case 13: return mu_net_deconvolution(net, x, &gone, NULL);
	case 14: return mu_net_upsampling(net, x, &both, NULL);
	case 15: return mu_net_crop(net, x, &outside, NULL);
	case 16: return mu_net_pad(net, x, &nothing, NULL);
	case 17: return mu_net_group_norm(net, x, &thirds, NULL);
	case 18: return mu_net_activation_of(net, x, &negative, NULL);
	case 19: return mu_net_activation_of(net, x, &relu, NULL);
	case 20: return mu_net_reshape(net, x, &other, NULL);
	case 21: return mu_net_mean(net, x, 4, NULL);
	case 22: return pool(net, mu_net_flatten(net, x, NULL), &(struct mu_pooling){.ceil = true});
	case 23: return mu_net_mean(net, x, 3, NULL);
	case 24: return mu_net_pad(net, x, &endless, NULL);
	case 25: return mu_net_mean(net, x, MU_AXIS_CHANNELS | 3, "mean");
	case 26: return mu_net_mean(net, x, MU_AXIS_CHANNELS | 4, NULL);
	default: return x;
	}
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
	default: x = build_space(net, x, config->num_layers); break;
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
	check_case(12, MU_ERR_USAGE,
		   "deconvolution0 has kernel 2 x 2, stride 1 x 1, padding 0 x 0, extra 0 x 1; "
		   "kernel, stride and dilation must");
	check_case(13, MU_ERR_USAGE, "leaves no output: less padding is needed");
	check_case(14, MU_ERR_USAGE,
		   "upsampling0 has scale 2 x 2, size 0 x 8; an axis has a scale");
	check_case(15, MU_ERR_USAGE, "a crop of 3 from 2 on of an axis of 4");
	check_case(16, MU_ERR_USAGE, "pad0 leaves nothing of (n, 2, 5, 4)");
	check_case(17, MU_ERR_USAGE,
		   "groupnorm0 has 2 channels, which cannot be cut into 3 groups");
	check_case(18, MU_ERR_USAGE, "has the parameter -1; it must be above 0");
	check_case(19, MU_ERR_USAGE, "activation0 has the parameter 1; this activation has none");
	check_case(20, MU_ERR_USAGE,
		   "flatten0 makes (n, 2, 5, 3) of (n, 2, 5, 4)");
	check_case(21, MU_ERR_USAGE, "a mean over axes 0x4 of a tensor with 2 axes of space");
	check_case(22, MU_ERR_USAGE,
		   "pool1 needs an input (n, c, h, w) or (n, c, d, h, w), not (n, 40)");
	check_case(23, MU_OK, "");
	check_case(24, MU_ERR_USAGE, "pad0 has 2147483000 before and 643 after an axis of 5");
	check_case(25, MU_OK, "");
	check_case(26, MU_ERR_USAGE,
		   "a mean over axes 0xc of a tensor with 2 axes of space (bit i: axis i of space; "
		   "0x8, MU_AXIS_CHANNELS: the channels)");
	return check_failures() ? 1 : 0;
}
