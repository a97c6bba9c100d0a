/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layers defined by users. All arrays of ref are plain, so the layer works on the tensors directly.
 */
#include "device/custom.h"
#include "ref.h"

static enum mu_status forward(struct mu_op *op)
{
	struct mu_layer layer;

	mu_custom_view(&layer, op, false);
	return mu_custom_forward(op, &layer);
}

static enum mu_status backward(struct mu_op *op)
{
	struct mu_layer layer;

	mu_custom_view(&layer, op, true);
	return mu_custom_backward(op, &layer);
}

const struct mu_ref_kind mu_ref_custom = {
	.n_inputs = -1,
	.n_outputs = 1,
	.max_params = MU_MAX_PARAMS,
	.plan = mu_custom_plan,
	.forward = forward,
	.try_backward = backward,
};
