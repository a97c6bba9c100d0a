/* SPDX-License-Identifier: Apache-2.0 */
/* Element-wise sum. With MU_RECOMPUTE_ALL a residual network keeps its sums alone. */
#include "layer.h"

const struct mu_layer_kind mu_layer_sum = {
	.op = MU_OP_SUM,
	.min_inputs = 2,
	.traits = MU_LAYER_INPUT_UNUSED | MU_LAYER_OUTPUT_UNUSED | MU_LAYER_STEPWISE |
		  MU_LAYER_ABSORBS_ACTIVATION | MU_LAYER_IS_ADDITION,
	.restored = 1u << MU_RECOMPUTE_AUTO | 1u << MU_RECOMPUTE_ATTENTION,
};
