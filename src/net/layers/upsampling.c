/* SPDX-License-Identifier: Apache-2.0 */
/* Upsampling: see struct mu_upsampling. */
#include "layer.h"

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

const struct mu_layer_kind mu_layer_upsampling = {
	.op = MU_OP_UPSAMPLING,
	.attr_nbytes = sizeof(struct mu_upsampling),
	.traits = MU_LAYER_INPUT_UNUSED | MU_LAYER_OUTPUT_UNUSED | MU_LAYER_LENDS_OUTPUT |
		  MU_LAYER_IN_SPACE,
	.restored = 1u << MU_RECOMPUTE_ALL,
	.shape = shape,
};

int mu_net_upsampling(struct mu_net *net, int in, const struct mu_upsampling *attr,
		      const char *name)
{
	return mu_net_add_one(net, &mu_layer_upsampling, in, attr, name);
}
