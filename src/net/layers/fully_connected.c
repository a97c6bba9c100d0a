/* SPDX-License-Identifier: Apache-2.0 */
/* Fully connected layer: see struct mu_fully_connected. */
#include "layer.h"
#include "net/onnx/onnx.h"

static int shape(struct net_draft *d)
{
	const struct mu_fully_connected *a = d->layer->attr;
	const size_t units = (size_t)a->units;

	if (a->units < 1)
		return mu_layer_fail(d->net, "has %d units; at least 1 is needed", a->units);
	d->out = mu_layer_matrix(0, units);
	mu_net_add_param(d->net, "weight", mu_layer_matrix(units, mu_shape_sample(d->in)), 0);
	if (!a->no_bias)
		mu_net_add_param(d->net, "bias", mu_layer_vector(units), 0);
	return 0;
}

static double macs(const struct net_layer *l, const struct mu_shape *out)
{
	(void)out;
	return (double)mu_shape_n(&l->params[0].shape);
}

static void onnx(struct onnx_layer *o)
{
	const char *x = mu_onnx_in(o, 0), *weight, *bias;

	if (o->in->ndims > 2)
		x = mu_onnx_node(o, "Flatten", x);
	mu_onnx_weights(o, &weight, &bias);
	mu_onnx_int(o, "transB", 1);
	mu_onnx_node(o, "Gemm", x, weight, bias);
}

const struct mu_layer_kind mu_layer_fully_connected = {
	.op = MU_OP_FULLY_CONNECTED,
	.attr_nbytes = sizeof(struct mu_fully_connected),
	.traits = MU_LAYER_OUTPUT_UNUSED | MU_LAYER_ABSORBS_ACTIVATION | MU_LAYER_READS_ANY_SHAPE |
		  MU_LAYER_MAY_SHARE | MU_LAYER_TAKES_SCALE,
	.shape = shape,
	.macs = macs,
	.onnx = onnx,
};

int mu_net_fully_connected(struct mu_net *net, int in, const struct mu_fully_connected *attr,
			   const char *name)
{
	return mu_net_add_one(net, &mu_layer_fully_connected, in, attr, name);
}
