/* SPDX-License-Identifier: Apache-2.0 */
/* Softmax cross-entropy. */
#include "layer.h"

const struct mu_layer_kind mu_layer_softmax = {
	.op = MU_OP_SOFTMAX,
	.traits = MU_LAYER_INPUT_UNUSED | MU_LAYER_STEPWISE | MU_LAYER_IS_LOSS,
};
