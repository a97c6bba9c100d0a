/* SPDX-License-Identifier: Apache-2.0 */
/* A layer with two inputs, settings, parameters and a workspace, and a network of two of them:
 * y = tanh(scale weight a b + offset), weight and offset per channel. */
#include "custom_gate.h"

#include <math.h>

#include <muster/base.h>
#include <muster/device.h>

struct gate {
	float scale;
};

static enum mu_status gate_shape(struct mu_layer *layer)
{
	enum mu_status st = MU_OK;
	const struct mu_shape *a = &layer->inputs[0].shape;

	if (layer->n_inputs != 2 || !mu_shape_equal(a, &layer->inputs[1].shape))
		MU_FAIL(MU_ERR_ARGUMENT, "%s needs two inputs of one shape", layer->name);
	layer->output.shape = *a;
	layer->n_params = 2;
	layer->params[0].suffix = "weight";
	layer->params[0].shape = (struct mu_shape){2, {a->dims[1], 1}};
	layer->params[1].suffix = "offset";
	layer->params[1].shape = (struct mu_shape){1, {a->dims[1]}};
	layer->params[1].initial = 0.5f;
	layer->workspace_nbytes = mu_shape_n(a) * sizeof(float);
out:
	return st;
}

static size_t channel(const struct mu_shape *s, size_t i)
{
	return i / (s->dims[2] * s->dims[3]) % s->dims[1];
}

/* The workspace keeps scale a b. */
static enum mu_status gate_forward(struct mu_layer *layer)
{
	const struct gate *gate = layer->attr;
	const struct mu_shape *s = &layer->output.shape;
	float *kept = layer->workspace;

	for (size_t i = 0; i < mu_shape_n(s); i++) {
		size_t c = channel(s, i);

		kept[i] = gate->scale * layer->inputs[0].data[i] * layer->inputs[1].data[i];
		layer->output.data[i] =
			tanhf(layer->params[0].data[c] * kept[i] + layer->params[1].data[c]);
	}
	return MU_OK;
}

static enum mu_status gate_backward(struct mu_layer *layer)
{
	const struct gate *gate = layer->attr;
	const struct mu_shape *s = &layer->output.shape;
	const float *kept = layer->workspace;

	for (size_t c = 0; c < s->dims[1]; c++)
		layer->params[0].grad[c] = layer->params[1].grad[c] = 0;
	for (size_t i = 0; i < mu_shape_n(s); i++) {
		size_t c = channel(s, i);
		float y = layer->output.data[i], dz = (1 - y * y) * layer->output.grad[i];

		layer->params[0].grad[c] += dz * kept[i];
		layer->params[1].grad[c] += dz;
		for (int k = 0; k < 2; k++)
			if (layer->inputs[k].grad)
				layer->inputs[k].grad[i] = dz * gate->scale *
							   layer->params[0].data[c] *
							   layer->inputs[1 - k].data[i];
	}
	return MU_OK;
}

static const struct mu_layer_ops gate_ops = {
	.name = "gate", .shape = gate_shape, .forward = gate_forward, .backward = gate_backward};

static int add_gate(struct mu_net *net, int a, int b, float scale)
{
	struct gate gate = {scale};

	return mu_net_custom(
		net, 2, (int[]){a, b},
		&(struct mu_custom){.ops = &gate_ops, .attr = &gate, .attr_nbytes = sizeof gate},
		NULL);
}

/* The first gate reads data, which has no gradient; the second one layouts of the device. */
static enum mu_status build_gates(struct mu_net *net, const struct mu_net_config *config)
{
	const struct mu_convolution wide = {.filters = 16, .kernel = {3, 3}, .pad = {1, 1}};
	const struct mu_convolution flat = {.filters = 16, .kernel = {1, 1}};
	const struct mu_pooling mean = {.average = true, .global = true};
	int x, a, b;

	x = mu_net_input(net);
	x = add_gate(net, x, x, 2);
	a = mu_net_convolution(net, x, &wide, NULL);
	b = mu_net_convolution(net, a, &flat, NULL);
	b = mu_net_activation(net, b, MU_ACTIVATION_TANH, NULL);
	x = add_gate(net, a, b, 1.5f);
	x = mu_net_pooling(net, x, &mean, NULL);
	x = mu_net_fully_connected(
		net, x, &(struct mu_fully_connected){.units = (int)config->classes}, NULL);
	mu_net_softmax(net, x, "softmax");
	return MU_OK;
}

const struct mu_network custom_gates = {
	.name = "gates", .shape = MU_SAMPLE(3, 6, 6), .classes = 5, .build = build_gates};
