/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that a device works on: its own, or the host's. */
#ifndef MUSTER_OP_MEMORY_H
#define MUSTER_OP_MEMORY_H

#include "device/op.h"

enum mu_status op_memory_new(struct mu_device *device, void **out, size_t nbytes);
void op_memory_free(struct mu_device *device, void *p);
/* Copy from it to the host's. Done when it returns, as is the next. */
enum mu_status op_memory_fetch(struct mu_device *device, void *to, const void *from, size_t nbytes);
/* Fill it with NaN. p may be NULL. */
enum mu_status op_memory_spoil(struct mu_device *device, void *p, size_t nbytes);

#endif
