/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout: see struct mu_dropout. */
#include "layer.h"
#include "net/onnx/onnx.h"

static int shape(struct net_draft *d)
{
	const float p = ((const struct mu_dropout *)d->layer->attr)->p;

	if (!(p >= 0 && p < 1))
		return mu_layer_fail(d->net, "has probability %g, which is not in [0, 1)",
				     (double)p);
	return 0;
}

const struct mu_layer_kind mu_layer_dropout = {
	.op = MU_OP_DROPOUT,
	.attr_nbytes = sizeof(struct mu_dropout),
	.traits = MU_LAYER_INPUT_UNUSED | MU_LAYER_OUTPUT_UNUSED | MU_LAYER_STEPWISE,
	.restored = 1u << MU_RECOMPUTE_ALL,
	.shape = shape,
	.onnx = mu_onnx_pass,
};

int mu_net_dropout(struct mu_net *net, int in, float p, const char *name)
{
	return mu_net_add_one(net, &mu_layer_dropout, in, &(struct mu_dropout){p}, name);
}
