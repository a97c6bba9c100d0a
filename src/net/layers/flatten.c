/* SPDX-License-Identifier: Apache-2.0 */
/* Flatten: (n, c, h, w) becomes (n, c h w), and so with other axes of space. Reshape: to
 * another shape of as many elements, in that order. */
#include "layer.h"
#include "net/onnx/onnx.h"

/* The attribute is the shape of a sample; ndims 0: flat. */
static int shape(struct net_draft *d)
{
	const struct mu_shape *to = d->layer->attr;
	char a[96], b[96];

	d->out = to->ndims > 0 ? *to : mu_layer_matrix(0, mu_shape_sample(d->in));
	d->out.dims[0] = 0;
	if (mu_tensor_shape_fits(&d->out) && mu_shape_sample(&d->out) == mu_shape_sample(d->in))
		return 0;
	return mu_layer_fail(d->net,
			     "makes %s of %s: a shape MU_SAMPLE(c), (c, h, w) or (c, d, h, w) of "
			     "as many elements is needed",
			     mu_shape_text(&d->out, a, sizeof a),
			     mu_shape_text(d->in, b, sizeof b));
}

static void onnx(struct onnx_layer *o)
{
	mu_onnx_reshape_to(o, mu_onnx_in(o, 0), o->out);
}

const struct mu_layer_kind mu_layer_flatten = {
	.op = MU_OP_FLATTEN,
	.attr_nbytes = sizeof(struct mu_shape),
	.traits = MU_LAYER_INPUT_UNUSED | MU_LAYER_OUTPUT_UNUSED | MU_LAYER_IS_RESHAPE,
	.shape = shape,
	.onnx = onnx,
};

int mu_net_flatten(struct mu_net *net, int in, const char *name)
{
	return mu_net_reshape(net, in, &(struct mu_shape){.ndims = 0}, name);
}

int mu_net_reshape(struct mu_net *net, int in, const struct mu_shape *sample, const char *name)
{
	return mu_net_add_one(net, &mu_layer_flatten, in, sample, name);
}
