/* SPDX-License-Identifier: Apache-2.0 */
/* Functions for devices that have only the plain layout: layout pointers are always NULL. */
#ifndef DEVICE_PLAIN_H
#define DEVICE_PLAIN_H

#include "device/op.h"

enum mu_status mu_plain_copy_layout(struct mu_device *device, const void *layout, void **out);
void mu_plain_free_layout(struct mu_device *device, void *layout);
uint64_t mu_plain_hash_layout(struct mu_device *device, const void *layout);
/* No effect: such a device reads an operation's pointers when it runs it. */
enum mu_status mu_plain_bind(struct mu_device *device, struct mu_op *op);

#endif
