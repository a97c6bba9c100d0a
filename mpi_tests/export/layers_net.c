/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Model files for test_export.sh: the layers that no network of nets/ has, of pictures (c, 12, 12)
 * or, compiled with -DVOLUMES, of volumes (c, 6, 6, 6); with -DOWN a layer that ONNX has not.
 */
#include <string.h>

#include <muster/base.h>
#include <muster/net.h>

#ifdef VOLUMES
#define SAMPLE MU_SAMPLE(2, 6, 6, 6)
#else
#define SAMPLE MU_SAMPLE(2, 12, 12)
#endif

static enum mu_status shape(struct mu_layer *layer)
{
	layer->output.shape = layer->inputs[0].shape;
	return MU_OK;
}

static enum mu_status forward(struct mu_layer *layer)
{
	memcpy(layer->output.data, layer->inputs[0].data,
	       mu_shape_n(&layer->output.shape) * sizeof(float));
	return MU_OK;
}

static enum mu_status backward(struct mu_layer *layer)
{
	if (layer->inputs[0].grad)
		memcpy(layer->inputs[0].grad, layer->output.grad,
		       mu_shape_n(&layer->output.shape) * sizeof(float));
	return MU_OK;
}

static const struct mu_layer_ops own = {
	.name = "mine", .shape = shape, .forward = forward, .backward = backward};

static int convolution(struct mu_net *net, int x, int filters, int kernel, int pad)
{
	const struct mu_convolution attr = {
		.filters = filters, .kernel = {kernel, kernel, kernel},
					    .pad = {pad, pad, pad}};

	return mu_net_convolution(net, x, &attr, NULL);
}

/* Each kind of activation that networks seldom have, with a parameter. */
static int activations(struct mu_net *net, int x)
{
	x = mu_net_activation_of(net, x, &(struct mu_activation){MU_ACTIVATION_LEAKY_RELU, 0.2f},
				 NULL);
	x = mu_net_activation_of(net, x, &(struct mu_activation){MU_ACTIVATION_ELU, 0.7f}, NULL);
	x = mu_net_activation_of(net, x, &(struct mu_activation){MU_ACTIVATION_SOFTPLUS, 1.5f},
				 NULL);
	x = mu_net_activation_of(net, x, &(struct mu_activation){MU_ACTIVATION_SCALED_TANH, 1.7f},
				 NULL);
	x = mu_net_activation(net, x, MU_ACTIVATION_GELU, NULL);
	x = mu_net_activation(net, x, MU_ACTIVATION_SILU, NULL);
	return mu_net_activation(net, x, MU_ACTIVATION_SIGMOID, NULL);
}

/* Beside them, so that their output, which varies little, is not all that norms make larger. */
static int beside(struct mu_net *net, int x)
{
	const int both[2] = {x, activations(net, x)};

	return mu_net_sum(net, 2, both, NULL);
}

/* Norms, means whose windows reach beyond the padding, and other sizes. */
static int space(struct mu_net *net, int x, bool flat)
{
	const struct mu_deconvolution up = {.filters = 8, .kernel = {3, 3, 3},
					    .stride = {2, 2, 2}, .pad = {1, 1, 1},
					    .extra = {1, 1, 1}, .groups = 2};
	const struct mu_pooling mean = {.average = true, .ceil = true, .kernel = {3, 3, 3},
					.stride = {2, 2, 2}, .pad = {1, 1, 1}};
	const struct mu_pooling most = {.ceil = true, .kernel = {3, 3, 3}, .stride = {2, 2, 2}};

	x = mu_net_group_norm(net, x, &(struct mu_group_norm){1e-2f, 2}, NULL);
	x = mu_net_pooling(net, x, &mean, NULL);
	x = mu_net_deconvolution(net, x, &up, NULL);
	x = mu_net_group_norm(net, x, &(struct mu_group_norm){2e-2f, 0}, NULL);
	x = mu_net_pooling(net, x, &most, NULL);
	x = mu_net_upsampling(net, x, &(struct mu_upsampling){.scale = {2, 3, 2}}, NULL);
	x = mu_net_upsampling(net, x, &(struct mu_upsampling){.size = {11, 13, 9}}, NULL);
	x = mu_net_upsampling(net, x, &(struct mu_upsampling){.linear = true, .size = {7, 20, 5}},
			      NULL);
	x = mu_net_upsampling(net, x, &(struct mu_upsampling){.linear = true, .align_corners = true,
							      .size = {9, 9, 9}},
			      NULL);
	if (flat)
		x = mu_net_lrn(net, x, &(struct mu_lrn){3, 0.5f, 0.75f, 2}, NULL);
	x = mu_net_pad(net, x, &(struct mu_pad){{1, 2, 0}, {-2, 1, 1}, 0.25f}, NULL);
	return mu_net_crop(net, x, &(struct mu_crop){{1, 1, 1}, {6, 8, 7}}, NULL);
}

/* Layers that normalise channels, share weights, choose and join. */
static int channels(struct mu_net *net, int x)
{
	const struct mu_batch_norm norm = {.eps = 0.05f, .momentum = 0.5f},
				   fixed = {.eps = 0.05f, .momentum = 0.5f, .fix_gamma = true};
	int both[2], y;

	both[0] = mu_net_batch_norm(net, convolution(net, x, 6, 3, 1), &norm, NULL);
	both[1] = mu_net_batch_norm(net, mu_net_activation(net, x, MU_ACTIVATION_TANH, NULL),
				    &fixed, NULL);
	x = mu_net_concat(net, 2, both, NULL);
	x = mu_net_layer_norm(net, x, &(struct mu_layer_norm){.eps = 0.1f}, NULL);
	x = mu_net_layer_norm(net, x, &(struct mu_layer_norm){.eps = 0.1f, .rms = true}, NULL);
	y = convolution(net, x, 4, 1, 0);
	x = mu_net_product(net, y, mu_net_dropout(net, convolution(net, x, 4, 1, 0), 0.1f, NULL),
			   NULL);
	return mu_net_sum(net, 2, (const int[]){x, y}, NULL);
}

static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	const bool flat = config->shape.ndims == 4;
	const struct mu_fully_connected hidden = {.units = 24}, last = {
		.units = (int)config->classes, .no_bias = true};
	const struct mu_batch_norm norm = {.eps = 0.05f, .momentum = 0.5f};
	int x = mu_net_input(net);

#ifdef OWN
	x = mu_net_custom(net, 1, &x, &(struct mu_custom){.ops = &own}, NULL);
#else
	(void)own;
#endif
	x = convolution(net, x, 8, 3, 1);
	x = beside(net, x);
	x = space(net, x, flat);
	x = channels(net, x);
	if (flat)
		x = mu_net_mean(net, x, 2, NULL);
	x = mu_net_flatten(net, x, NULL);
	x = mu_net_fully_connected(net, x, &hidden, NULL);
	x = mu_net_batch_norm(net, x, &norm, NULL);
	x = mu_net_layer_norm(net, x, &(struct mu_layer_norm){.eps = 0.1f}, NULL);
	x = mu_net_reshape(net, x, &(struct mu_shape)MU_SAMPLE(4, 3, 2), NULL);
	x = mu_net_flatten(net, x, NULL);
	mu_net_objective(net, mu_net_fully_connected(net, x, &last, NULL));
	return MU_OK;
}

static const struct mu_network network = {
	.name = "layers",
	.help = "layers that no network of Muster's has",
	.shape = SAMPLE,
	.classes = 5,
	.objective = "softmax",
	.build = build,
};
MU_NETWORK_EXPORT(network);
