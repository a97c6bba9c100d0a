/* SPDX-License-Identifier: Apache-2.0 */
/* Flatten: (n, c, h, w) becomes (n, c h w). */
#include "layer.h"

const struct mu_layer_kind mu_layer_flatten = {
	.op = MU_OP_FLATTEN,
	.traits = MU_LAYER_INPUT_UNUSED | MU_LAYER_OUTPUT_UNUSED | MU_LAYER_IS_RESHAPE,
};
