/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax cross-entropy. */
#include "layer.h"

static int shape(struct net_draft *d)
{
	const size_t classes = d->net->config.classes;
	char form[96];

	snprintf(form, sizeof form, "(n, %zu) or (n, %zu, h, w)", classes, classes);
	if ((d->in->ndims != 2 && d->in->ndims != 4) || d->in->dims[1] != classes)
		return mu_layer_needs(d->net, form, d->in);
	return 0;
}

const struct mu_layer_kind mu_layer_softmax = {
	.op = MU_OP_SOFTMAX,
	.traits = MU_LAYER_INPUT_UNUSED | MU_LAYER_STEPWISE | MU_LAYER_IS_LOSS,
	.shape = shape,
};

void mu_net_softmax(struct mu_net *net, int in, const char *name)
{
	mu_net_add_one(net, &mu_layer_softmax, in, NULL, name);
}
