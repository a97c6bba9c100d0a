/* SPDX-License-Identifier: Apache-2.0 */
/* Split: plan/rewrite.c adds it, so that every tensor has one reader. */
#include "layer.h"
#include "net/onnx/onnx.h"

const struct mu_layer_kind mu_layer_split = {
	.op = MU_OP_SPLIT,
	.traits = MU_LAYER_INPUT_UNUSED | MU_LAYER_OUTPUT_UNUSED | MU_LAYER_STEPWISE |
		  MU_LAYER_IS_PASSAGE,
	.onnx = mu_onnx_pass,
};
