/* SPDX-License-Identifier: Apache-2.0 */
/* custom: code of all devices for layers defined by users (MU_OP_CUSTOM). */
#ifndef DEVICE_CUSTOM_H
#define DEVICE_CUSTOM_H

#include "device/op.h"

/* Call ops->shape and check the result. MU_ERR_ARGUMENT with the reason. */
enum mu_status mu_layer_shape(struct mu_layer *layer, const struct mu_layer_ops *ops);
/* Call the layer's shape for this batch, check the result against the operation's shapes, and set
 * workspace_nbytes. */
enum mu_status mu_custom_plan(struct mu_op *op);
/* The layer's view of the operation: its arrays are those of the tensors and parameters. Gradients
 * only if `grads`. */
void mu_custom_view(struct mu_layer *layer, const struct mu_op *op, bool grads);
/* Call the layer. An error always has a message. */
enum mu_status mu_custom_forward(const struct mu_op *op, struct mu_layer *layer);
enum mu_status mu_custom_backward(const struct mu_op *op, struct mu_layer *layer);

#endif
