/* SPDX-License-Identifier: Apache-2.0 */
/* custom: what all devices share in running a layer of the user's own (MU_OP_CUSTOM). */
#ifndef DEVICE_CUSTOM_H
#define DEVICE_CUSTOM_H

#include <muster/device.h>

/* Ask the layer for its shapes at this batch, check them against the operation's, and set
 * workspace_nbytes. */
enum mu_status mu_custom_plan(struct mu_op *op);
/* The operation as the layer sees it, its arrays those of the tensors and parameters as they are.
 * Gradients only if `grads`. */
void mu_custom_view(struct mu_layer *layer, const struct mu_op *op, bool grads);
/* Call the layer. A failure always leaves a message. */
enum mu_status mu_custom_forward(const struct mu_op *op, struct mu_layer *layer);
enum mu_status mu_custom_backward(const struct mu_op *op, struct mu_layer *layer);

#endif
