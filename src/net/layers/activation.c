/* SPDX-License-Identifier: Apache-2.0 */
/* Activations; the smooth ones are a kind of their own, since their gradient needs the input. */
#include "layer.h"
#include "net/onnx/onnx.h"

const char *mu_layer_activation_title(const void *attr)
{
	switch (((const struct mu_activation *)attr)->kind) {
	case MU_ACTIVATION_RELU: return "relu";
	case MU_ACTIVATION_TANH: return "tanh";
	case MU_ACTIVATION_SIGMOID: return "sigmoid";
	case MU_ACTIVATION_GELU: return "gelu";
	case MU_ACTIVATION_GELU_TANH: return "gelu tanh";
	case MU_ACTIVATION_SILU: return "silu";
	case MU_ACTIVATION_LEAKY_RELU: return "leaky relu";
	case MU_ACTIVATION_ELU: return "elu";
	case MU_ACTIVATION_SOFTPLUS: return "softplus";
	case MU_ACTIVATION_SCALED_TANH: return "scaled tanh";
	default: break;
	}
	return "?";
}

int mu_layer_activation_shape(struct net_draft *d)
{
	static const float defaults[MU_ACTIVATION_N] = {
		[MU_ACTIVATION_LEAKY_RELU] = 0.01f,
		[MU_ACTIVATION_ELU] = 1,
		[MU_ACTIVATION_SOFTPLUS] = 1,
		[MU_ACTIVATION_SCALED_TANH] = 1,
	};
	struct mu_activation *a = d->layer->attr;

	if ((unsigned)a->kind >= MU_ACTIVATION_N)
		return mu_layer_fail(d->net, "has no kind %d", (int)a->kind);
	if (a->parameter == 0)
		a->parameter = defaults[a->kind];
	if (!(a->parameter >= 0) || (defaults[a->kind] == 0 && a->parameter != 0))
		return mu_layer_fail(d->net, "has the parameter %g; %s", (double)a->parameter,
				     defaults[a->kind] == 0 ? "this activation has none"
							    : "it must be above 0");
	return 0;
}

/* Of the kind GELU, written out: x / 2 (1 + y). */
static void gelu(struct onnx_layer *o, const char *x, const char *y)
{
	mu_onnx_node(o, "Add", y, mu_onnx_number(o, 1));
	mu_onnx_node(o, "Mul", o->value, x);
	mu_onnx_node(o, "Mul", o->value, mu_onnx_number(o, 0.5));
}

static void gelu_tanh(struct onnx_layer *o, const char *x)
{
	const double root = 0.79788456080286536; /* sqrt(2 / pi) */

	mu_onnx_node(o, "Mul", x, x);
	mu_onnx_node(o, "Mul", o->value, mu_onnx_number(o, 0.044715 * root));
	mu_onnx_node(o, "Add", o->value, mu_onnx_number(o, root));
	mu_onnx_node(o, "Mul", o->value, x);
	mu_onnx_node(o, "Tanh", o->value);
	gelu(o, x, o->value);
}

void mu_layer_activation_onnx(struct onnx_layer *o)
{
	const struct mu_activation *a = o->layer->attr;
	const char *x = mu_onnx_in(o, 0);

	switch (a->kind) {
	case MU_ACTIVATION_RELU: mu_onnx_node(o, "Relu", x); break;
	case MU_ACTIVATION_TANH:
	case MU_ACTIVATION_SCALED_TANH: mu_onnx_node(o, "Tanh", x); break;
	case MU_ACTIVATION_SIGMOID: mu_onnx_node(o, "Sigmoid", x); break;
	case MU_ACTIVATION_GELU:
		mu_onnx_node(o, "Mul", x, mu_onnx_number(o, 0.70710678118654752));
		mu_onnx_node(o, "Erf", o->value);
		gelu(o, x, o->value);
		break;
	case MU_ACTIVATION_GELU_TANH: gelu_tanh(o, x); break;
	case MU_ACTIVATION_SILU:
		mu_onnx_node(o, "Sigmoid", x);
		mu_onnx_node(o, "Mul", o->value, x);
		break;
	case MU_ACTIVATION_LEAKY_RELU:
		mu_onnx_float(o, "alpha", a->parameter);
		mu_onnx_node(o, "LeakyRelu", x);
		break;
	case MU_ACTIVATION_ELU:
		mu_onnx_float(o, "alpha", a->parameter);
		mu_onnx_node(o, "Elu", x);
		break;
	case MU_ACTIVATION_SOFTPLUS:
		mu_onnx_node(o, "Mul", x, mu_onnx_number(o, (double)a->parameter));
		mu_onnx_node(o, "Softplus", o->value);
		mu_onnx_node(o, "Div", o->value, mu_onnx_number(o, (double)a->parameter));
		break;
	case MU_ACTIVATION_N: break;
	}
	if (a->kind == MU_ACTIVATION_SCALED_TANH)
		mu_onnx_node(o, "Mul", o->value, mu_onnx_number(o, (double)a->parameter));
}

const struct mu_layer_kind mu_layer_activation = {
	.op = MU_OP_ACTIVATION,
	.attr_nbytes = sizeof(struct mu_activation),
	.traits = MU_LAYER_INPUT_UNUSED | MU_LAYER_STEPWISE | MU_LAYER_OVERWRITES_GRAD |
		  MU_LAYER_IS_ACTIVATION,
	.shape = mu_layer_activation_shape,
	.title = mu_layer_activation_title,
	.onnx = mu_layer_activation_onnx,
};

int mu_net_activation(struct mu_net *net, int in, enum mu_activation_kind kind, const char *name)
{
	return mu_net_activation_of(net, in, &(struct mu_activation){kind, 0}, name);
}

int mu_net_activation_of(struct mu_net *net, int in, const struct mu_activation *attr,
			 const char *name)
{
	const bool smooth = attr && mu_activation_is_smooth(attr->kind);

	return mu_net_add_one(net, smooth ? &mu_layer_smooth : &mu_layer_activation, in, attr,
			      name);
}
