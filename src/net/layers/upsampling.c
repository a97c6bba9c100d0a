/* SPDX-License-Identifier: Apache-2.0 */
/* Upsampling: see struct mu_upsampling. */
#include "layer.h"
#include "net/onnx/onnx.h"

static int shape(struct net_draft *d)
{
	struct mu_upsampling *a = d->layer->attr;
	const int n = d->in->ndims - 2;
	char scale[LAYER_SIZES], size[LAYER_SIZES];
	bool fits = a->linear || !a->align_corners;

	for (int i = 0; i < n; i++) {
		fits &= a->scale[i] >= 0 && a->size[i] >= 0;
		fits &= a->scale[i] == 0 || a->size[i] == 0;
		d->out.dims[2 + i] = a->size[i] ? (size_t)a->size[i]
						: d->in->dims[2 + i] *
							  (size_t)(a->scale[i] ? a->scale[i] : 1);
	}
	return fits ? 0
		    : mu_layer_fail(d->net,
				    "has scale %s, size %s%s; an axis has a scale or a size, not "
				    "below 0, and corners are aligned in linear upsampling only",
				    mu_layer_sizes(a->scale, n, scale),
				    mu_layer_sizes(a->size, n, size),
				    a->align_corners ? ", corners aligned" : "");
}

/* Nearest along one axis, by the numbers of the elements: ONNX rounds places itself. */
static const char *pick(struct onnx_layer *o, const char *x, int axis)
{
	const size_t n = o->in->dims[axis], m = o->out->dims[axis];
	long *from = mu_onnx_keep(o->onnx, m * sizeof *from);

	if (!from)
		return x;
	for (size_t i = 0; i < m; i++)
		from[i] = (long)(i * n / m);
	mu_onnx_int(o, "axis", axis);
	return mu_onnx_node(o, "Gather", x, mu_onnx_whole(o, from, (int)m));
}

/* Sizes begin with those of the batch and channels, which stay. */
static void onnx(struct onnx_layer *o)
{
	const struct mu_upsampling *a = o->layer->attr;
	long sizes[MU_MAX_DIMS];
	const char *shape;

	mu_onnx_pass(o);
	for (int i = 2; i < o->in->ndims && !a->linear; i++)
		if (o->in->dims[i] != o->out->dims[i])
			pick(o, o->value, i);
	for (int i = 2; i < o->in->ndims; i++)
		sizes[i - 2] = (long)o->out->dims[i];
	if (!a->linear)
		return;
	mu_onnx_int(o, "end", 2);
	shape = mu_onnx_node(o, "Shape", mu_onnx_in(o, 0));
	mu_onnx_int(o, "axis", 0);
	shape = mu_onnx_node(o, "Concat", shape, mu_onnx_whole(o, sizes, o->in->ndims - 2));
	mu_onnx_text(o, "mode", "linear");
	mu_onnx_text(o, "coordinate_transformation_mode",
		     a->align_corners ? "align_corners" : "half_pixel");
	mu_onnx_node(o, "Resize", mu_onnx_in(o, 0), "", "", shape);
}

const struct mu_layer_kind mu_layer_upsampling = {
	.op = MU_OP_UPSAMPLING,
	.attr_nbytes = sizeof(struct mu_upsampling),
	.traits = MU_LAYER_INPUT_UNUSED | MU_LAYER_OUTPUT_UNUSED | MU_LAYER_LENDS_OUTPUT |
		  MU_LAYER_IN_SPACE,
	.restored = 1u << MU_RECOMPUTE_ALL,
	.shape = shape,
	.onnx = onnx,
};

int mu_net_upsampling(struct mu_net *net, int in, const struct mu_upsampling *attr,
		      const char *name)
{
	return mu_net_add_one(net, &mu_layer_upsampling, in, attr, name);
}
