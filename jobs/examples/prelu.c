/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model with a layer of your own: PReLU, a rectifier whose slope below zero is learnt, one per
 * channel (He et al., Delving Deep into Rectifiers, 2015, equations 1 and 8 to 11):
 *
 *	y = x          dx = dy             where x > 0
 *	y = slope x    dx = slope dy       elsewhere; d slope = sum of x dy over those
 *
 *	cc -O3 -shared -fPIC $(pkg-config --cflags muster) prelu.c -o prelu.so
 *	trainer --network ./prelu.so --data-dir DIR --lr 0.05
 *
 * What the three functions of a layer are given and must do: struct mu_layer_ops in
 * <muster/device.h>.
 */
#include <muster/net.h>

/* Elements of one channel of one sample. */
static size_t area(const struct mu_shape *s)
{
	return s->ndims == 4 ? s->dims[2] * s->dims[3] : 1;
}

static enum mu_status shape(struct mu_layer *layer)
{
	layer->output.shape = layer->inputs[0].shape;
	layer->n_params = 1;
	layer->params[0].suffix = "slope";
	layer->params[0].shape = (struct mu_shape){1, {layer->output.shape.dims[1]}};
	layer->params[0].initial = 0.25f; /* as the paper does */
	return MU_OK;
}

static enum mu_status forward(struct mu_layer *layer)
{
	const struct mu_shape *s = &layer->output.shape;
	const float *x = layer->inputs[0].data, *slope = layer->params[0].data;
	float *y = layer->output.data;
	size_t m = area(s), channels = s->dims[1];

	for (size_t p = 0; p < s->dims[0] * channels; p++)
		for (size_t i = p * m; i < (p + 1) * m; i++)
			y[i] = x[i] > 0 ? x[i] : slope[p % channels] * x[i];
	return MU_OK;
}

static enum mu_status backward(struct mu_layer *layer)
{
	const struct mu_shape *s = &layer->output.shape;
	const float *x = layer->inputs[0].data, *slope = layer->params[0].data;
	const float *dy = layer->output.grad;
	float *dx = layer->inputs[0].grad; /* NULL where the input is the data */
	float *dslope = layer->params[0].grad;
	size_t m = area(s), channels = s->dims[1];

	for (size_t c = 0; c < channels; c++)
		dslope[c] = 0;
	for (size_t p = 0; p < s->dims[0] * channels; p++) {
		double sum = 0;

		for (size_t i = p * m; i < (p + 1) * m; i++) {
			if (dx)
				dx[i] = x[i] > 0 ? dy[i] : slope[p % channels] * dy[i];
			sum += x[i] > 0 ? 0 : (double)x[i] * (double)dy[i];
		}
		dslope[p % channels] += (float)sum;
	}
	return MU_OK;
}

static const struct mu_layer_ops prelu = {
	.name = "prelu", .shape = shape, .forward = forward, .backward = backward};

static int add_prelu(struct mu_net *net, int x)
{
	return mu_net_custom(net, 1, &x, &(struct mu_custom){.ops = &prelu}, NULL);
}

static enum mu_status build(struct mu_net *net, const struct mu_net_config *config)
{
	const struct mu_pooling half = {.kernel = {2, 2}, .stride = {2, 2}};
	int x;

	x = mu_net_input(net);
	x = mu_net_convolution(net, x, &(struct mu_convolution){.filters = 16, .kernel = {5, 5}},
			       NULL);
	x = add_prelu(net, x);
	x = mu_net_pooling(net, x, &half, NULL);
	x = mu_net_convolution(net, x, &(struct mu_convolution){.filters = 24, .kernel = {5, 5}},
			       NULL);
	x = add_prelu(net, x);
	x = mu_net_pooling(net, x, &half, NULL);
	x = mu_net_fully_connected(net, x, &(struct mu_fully_connected){.units = 64}, NULL);
	x = add_prelu(net, x);
	x = mu_net_fully_connected(
		net, x, &(struct mu_fully_connected){.units = (int)config->classes}, NULL);
	mu_net_softmax(net, x, "softmax");
	return MU_OK;
}

static const struct mu_network prelu_net = {
	.name = "prelu-net",
	.help = "two convolutions, PReLU",
	.shape = MU_SAMPLE(1, 28, 28),
	.classes = 10,
	.build = build,
};

MU_NETWORK_EXPORT(prelu_net);
