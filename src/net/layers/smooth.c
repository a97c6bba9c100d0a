/* SPDX-License-Identifier: Apache-2.0 */
/* Smooth activations; mu_net_activation adds them. */
#include "layer.h"

const struct mu_layer_kind mu_layer_smooth = {
	.op = MU_OP_SMOOTH,
	.attr_nbytes = sizeof(struct mu_activation),
	.traits = MU_LAYER_OUTPUT_UNUSED | MU_LAYER_STEPWISE,
	.restored = 1u << MU_RECOMPUTE_ATTENTION | 1u << MU_RECOMPUTE_ALL,
	.shape = mu_layer_activation_shape,
	.title = mu_layer_activation_title,
	.onnx = mu_layer_activation_onnx,
};
