/* SPDX-License-Identifier: Apache-2.0 */
/* Batch normalisation: see struct mu_batch_norm. */
#include "layer.h"

const struct mu_layer_kind mu_layer_batch_norm = {
	.op = MU_OP_BATCH_NORM,
	.attr_nbytes = sizeof(struct mu_batch_norm),
	.traits = MU_LAYER_OUTPUT_UNUSED | MU_LAYER_LENDS_OUTPUT | MU_LAYER_ABSORBS_RELU |
		  MU_LAYER_ABSORBS_ADDEND | MU_LAYER_WANTS_SUMS,
	.restored = 1u << MU_RECOMPUTE_AUTO | 1u << MU_RECOMPUTE_ATTENTION | 1u << MU_RECOMPUTE_ALL,
};
