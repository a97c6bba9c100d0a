/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of layers, as plans see them. */
#include "graph.h"

const struct net_traits *mu_net_traits(enum mu_op_kind kind)
{
	static const struct net_traits unknown, kinds[MU_OP_N] = {
		[MU_OP_CONVOLUTION] = {.output_unused = true},
		[MU_OP_FULLY_CONNECTED] = {.output_unused = true},
		[MU_OP_ACTIVATION] = {.input_unused = true, .stepwise = true},
		[MU_OP_POOLING] = {.input_unused = true, .output_unused = true},
		[MU_OP_FLATTEN] = {.input_unused = true, .output_unused = true},
		[MU_OP_DROPOUT] = {.input_unused = true, .output_unused = true,
				   .stepwise = true},
		[MU_OP_BATCH_NORM] = {.output_unused = true},
		[MU_OP_SUM] = {.input_unused = true, .output_unused = true,
			       .stepwise = true},
		[MU_OP_CONCAT] = {.input_unused = true, .output_unused = true,
				  .stepwise = true},
		[MU_OP_SPLIT] = {.input_unused = true, .output_unused = true,
				 .stepwise = true},
		[MU_OP_SOFTMAX] = {.input_unused = true, .stepwise = true},
		[MU_OP_LRN] = {.output_unused = true, .stepwise = true},
		[MU_OP_EMBEDDING] = {.output_unused = true, .stepwise = true},
		[MU_OP_LSTM] = {},
		[MU_OP_LAYER_NORM] = {.output_unused = true, .stepwise = true},
		[MU_OP_SMOOTH] = {.output_unused = true, .stepwise = true},
		[MU_OP_ATTENTION] = {}, /* a fused one reads its output */
		[MU_OP_POSITIONS] = {.input_unused = true,
				     .output_unused = true},
		[MU_OP_STEP] = {.input_unused = true, .output_unused = true},
		[MU_OP_CUSTOM] = {},
	};

	return (unsigned)kind < MU_OP_N ? &kinds[kind] : &unknown;
}
