/* SPDX-License-Identifier: Apache-2.0 */
/* Activations; the smooth ones are a kind of their own, since their gradient needs the input. */
#include "layer.h"

const char *mu_layer_activation_title(const void *attr)
{
	switch (((const struct mu_activation *)attr)->kind) {
	case MU_ACTIVATION_RELU: return "relu";
	case MU_ACTIVATION_TANH: return "tanh";
	case MU_ACTIVATION_SIGMOID: return "sigmoid";
	case MU_ACTIVATION_GELU: return "gelu";
	case MU_ACTIVATION_GELU_TANH: return "gelu tanh";
	case MU_ACTIVATION_SILU: return "silu";
	}
	return "?";
}

int mu_layer_activation_shape(struct net_draft *d)
{
	const struct mu_activation *a = d->layer->attr;

	if ((unsigned)a->kind > MU_ACTIVATION_SILU)
		return mu_layer_fail(d->net, "is of kind %d, which there is not", (int)a->kind);
	return 0;
}

const struct mu_layer_kind mu_layer_activation = {
	.op = MU_OP_ACTIVATION,
	.attr_nbytes = sizeof(struct mu_activation),
	.traits = MU_LAYER_INPUT_UNUSED | MU_LAYER_STEPWISE | MU_LAYER_OVERWRITES_GRAD |
		  MU_LAYER_IS_ACTIVATION,
	.shape = mu_layer_activation_shape,
	.title = mu_layer_activation_title,
};

int mu_net_activation(struct mu_net *net, int in, enum mu_activation_kind kind, const char *name)
{
	const struct mu_activation a = {kind};

	return mu_net_add_one(
		net, mu_activation_is_smooth(kind) ? &mu_layer_smooth : &mu_layer_activation, in,
		&a, name);
}
