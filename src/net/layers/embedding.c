/* SPDX-License-Identifier: Apache-2.0 */
/* Embedding: see struct mu_embedding. */
#include "layer.h"

const struct mu_layer_kind mu_layer_embedding = {
	.op = MU_OP_EMBEDDING,
	.attr_nbytes = sizeof(struct mu_embedding),
	.ndims = 4,
	.traits = MU_LAYER_OUTPUT_UNUSED | MU_LAYER_STEPWISE | MU_LAYER_HAS_TABLE,
};
