/* SPDX-License-Identifier: Apache-2.0 */
/* Concatenation along channels. */
#include "layer.h"

const struct mu_layer_kind mu_layer_concat = {
	.op = MU_OP_CONCAT,
	.min_inputs = 2,
	.traits = MU_LAYER_INPUT_UNUSED | MU_LAYER_OUTPUT_UNUSED | MU_LAYER_STEPWISE |
		  MU_LAYER_LENDS_OUTPUT,
};
