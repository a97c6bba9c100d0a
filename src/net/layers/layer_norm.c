/* SPDX-License-Identifier: Apache-2.0 */
/* Layer normalisation: see struct mu_layer_norm. */
#include "layer.h"
#include "net/onnx/onnx.h"

static int shape(struct net_draft *d)
{
	const struct mu_layer_norm *a = d->layer->attr;

	if (!(a->eps > 0))
		return mu_layer_fail(d->net, "has eps %g; it must be above 0", (double)a->eps);
	mu_net_add_param(d->net, "gamma", mu_layer_vector(d->in->dims[1]), 0);
	if (!a->rms)
		mu_net_add_param(d->net, "beta", mu_layer_vector(d->in->dims[1]), 0);
	return 0;
}

/* At every position x / sqrt(mean of x^2 + eps) gamma. */
static void onnx_rms(struct onnx_layer *o)
{
	const struct mu_layer_norm *a = o->layer->attr;
	const size_t channels[MU_MAX_DIMS] = {o->in->dims[1], 1, 1, 1};
	const char *x = mu_onnx_in(o, 0);
	const float *gamma = mu_onnx_values(o, o->layer, 0);

	mu_onnx_node(o, "Mul", x, x);
	mu_onnx_mean(o, o->value, 1);
	mu_onnx_node(o, "Add", o->value, mu_onnx_number(o, (double)a->eps));
	mu_onnx_node(o, "Sqrt", o->value);
	mu_onnx_node(o, "Div", x, o->value);
	mu_onnx_node(o, "Mul", o->value,
		     mu_onnx_floats(o, "gamma", gamma, o->in->ndims - 1, channels));
}

/* ONNX normalises along the last axes: channels go there, and come back. */
static void onnx(struct onnx_layer *o)
{
	const struct mu_layer_norm *a = o->layer->attr;
	static const int last[MU_MAX_DIMS + 1][MU_MAX_DIMS] = {
		[4] = {0, 2, 3, 1}, [5] = {0, 2, 3, 4, 1}};
	static const int back[MU_MAX_DIMS + 1][MU_MAX_DIMS] = {
		[4] = {0, 3, 1, 2}, [5] = {0, 4, 1, 2, 3}};
	const int n = o->in->ndims;
	const char *x = mu_onnx_in(o, 0);

	if (a->rms) {
		onnx_rms(o);
		return;
	}
	if (n > 2)
		x = mu_onnx_transpose(o, x, n, last[n]);
	mu_onnx_int(o, "axis", -1);
	mu_onnx_float(o, "epsilon", a->eps);
	mu_onnx_node(o, "LayerNormalization", x, mu_onnx_param(o, 0), mu_onnx_param(o, 1));
	if (n > 2)
		mu_onnx_transpose(o, o->value, n, back[n]);
}

const struct mu_layer_kind mu_layer_layer_norm = {
	.op = MU_OP_LAYER_NORM,
	.attr_nbytes = sizeof(struct mu_layer_norm),
	.traits = MU_LAYER_OUTPUT_UNUSED | MU_LAYER_STEPWISE,
	.restored = 1u << MU_RECOMPUTE_ATTENTION | 1u << MU_RECOMPUTE_ALL,
	.shape = shape,
	.onnx = onnx,
};

int mu_net_layer_norm(struct mu_net *net, int in, const struct mu_layer_norm *attr,
		      const char *name)
{
	return mu_net_add_one(net, &mu_layer_layer_norm, in, attr, name);
}
