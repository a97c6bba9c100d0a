/* SPDX-License-Identifier: Apache-2.0 */
/* Pad and crop: see struct mu_pad; mu_net_crop pads by negative numbers. */
#include "layer.h"

#include <limits.h>

#include "net/onnx/onnx.h"

static int shape(struct net_draft *d)
{
	const struct mu_pad *a = d->layer->attr;
	const int n = d->in->ndims - 2;
	char before[LAYER_SIZES], after[LAYER_SIZES], text[96];
	bool fits = true;

	for (int i = 0; i < n; i++) {
		const long size = (long)d->in->dims[2 + i];

		if (size + a->before[i] + a->after[i] > INT_MAX)
			return mu_layer_fail(d->net,
					     "has %d before and %d after an axis of %ld: at most "
					     "%d are computed in all",
					     a->before[i], a->after[i], size, INT_MAX);

		/* an element of the input is left */
		fits &= (long)a->before[i] + size >= 1 && (long)a->after[i] + size >= 1 &&
			(long)a->before[i] + a->after[i] + size >= 1;
		d->out.dims[2 + i] = (size_t)(size + a->before[i] + a->after[i]);
	}
	return fits ? 0
		    : mu_layer_fail(d->net,
				    "leaves nothing of %s, with %s before it and %s after it",
				    mu_shape_text(d->in, text, sizeof text),
				    mu_layer_sizes(a->before, n, before),
				    mu_layer_sizes(a->after, n, after));
}

/* Of all axes: those before space are not padded. */
static void onnx(struct onnx_layer *o)
{
	const struct mu_pad *a = o->layer->attr;
	const int n = o->in->ndims;
	long pads[2 * MU_MAX_DIMS] = {0};

	for (int i = 2; i < n; i++) {
		pads[i] = a->before[i - 2];
		pads[n + i] = a->after[i - 2];
	}
	mu_onnx_node(o, "Pad", mu_onnx_in(o, 0), mu_onnx_whole(o, pads, 2 * n),
		     mu_onnx_number(o, (double)a->value));
}

const struct mu_layer_kind mu_layer_pad = {
	.op = MU_OP_PAD,
	.attr_nbytes = sizeof(struct mu_pad),
	.traits = MU_LAYER_INPUT_UNUSED | MU_LAYER_OUTPUT_UNUSED | MU_LAYER_LENDS_OUTPUT |
		  MU_LAYER_IN_SPACE,
	.restored = 1u << MU_RECOMPUTE_ALL,
	.shape = shape,
	.onnx = onnx,
};

int mu_net_pad(struct mu_net *net, int in, const struct mu_pad *attr, const char *name)
{
	return mu_net_add_one(net, &mu_layer_pad, in, attr, name);
}

int mu_net_crop(struct mu_net *net, int in, const struct mu_crop *attr, const char *name)
{
	struct mu_pad pad = {.value = 0};

	if (!mu_net_can_read(net, in))
		return -1;
	for (int i = 0; i + 2 < net->tensors[in].shape.ndims && attr; i++) {
		const long size = (long)net->tensors[in].shape.dims[2 + i];
		const long rest = size - attr->start[i] - attr->size[i];

		if (attr->start[i] < 0 || attr->size[i] < 1 || rest < 0)
			return mu_net_fail(net,
					   "a crop of %d from %d on of an axis of %ld: it must lie "
					   "in the input",
					   attr->size[i], attr->start[i], size);
		pad.before[i] = -attr->start[i];
		pad.after[i] = (int)-rest;
	}
	return mu_net_add_one(net, &mu_layer_pad, in, attr ? &pad : NULL, name);
}
