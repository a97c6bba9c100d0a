/* SPDX-License-Identifier: Apache-2.0 */
/* Fully connected layer: see struct mu_fully_connected. */
#include "layer.h"

static double macs(const struct net_layer *l, const struct mu_shape *out)
{
	(void)out;
	return (double)mu_shape_n(&l->params[0].shape);
}

const struct mu_layer_kind mu_layer_fully_connected = {
	.op = MU_OP_FULLY_CONNECTED,
	.attr_nbytes = sizeof(struct mu_fully_connected),
	.traits = MU_LAYER_OUTPUT_UNUSED | MU_LAYER_ABSORBS_ACTIVATION | MU_LAYER_READS_ANY_SHAPE |
		  MU_LAYER_MAY_SHARE,
	.macs = macs,
};
