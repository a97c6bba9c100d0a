/* SPDX-License-Identifier: Apache-2.0 */
/* Flatten: (n, c, h, w) becomes (n, c h w), and so with other axes of space. */
#include "layer.h"

static int shape(struct net_draft *d)
{
	d->out = mu_layer_matrix(0, mu_shape_sample(d->in));
	return 0;
}

const struct mu_layer_kind mu_layer_flatten = {
	.op = MU_OP_FLATTEN,
	.traits = MU_LAYER_INPUT_UNUSED | MU_LAYER_OUTPUT_UNUSED | MU_LAYER_IS_RESHAPE,
	.shape = shape,
};

int mu_net_flatten(struct mu_net *net, int in, const char *name)
{
	return mu_net_add_one(net, &mu_layer_flatten, in, NULL, name);
}
