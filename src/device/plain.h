/* SPDX-License-Identifier: Apache-2.0 */
/* Layouts of a device that has the plain one only: none is ever made, and NULL stands for it. */
#ifndef DEVICE_PLAIN_H
#define DEVICE_PLAIN_H

#include <muster/device.h>

enum mu_status mu_plain_copy_layout(struct mu_device *device, const void *layout, void **out);
void mu_plain_free_layout(struct mu_device *device, void *layout);
uint64_t mu_plain_hash_layout(struct mu_device *device, const void *layout);
/* Nothing is bound: such a device looks at an operation's pointers when it runs it. */
enum mu_status mu_plain_bind(struct mu_device *device, struct mu_op *op);

#endif
