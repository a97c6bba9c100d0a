/* SPDX-License-Identifier: Apache-2.0 */
/* Devices with one layout: see plain.h. */
#include "plain.h"

#include <assert.h>

#include <muster/base.h>

enum mu_status mu_plain_copy_layout(struct mu_device *device, const void *layout, void **out)
{
	(void)device;
	(void)layout;
	assert(!layout);
	*out = NULL;
	return MU_OK;
}

void mu_plain_free_layout(struct mu_device *device, void *layout)
{
	(void)device;
	(void)layout;
}

uint64_t mu_plain_hash_layout(struct mu_device *device, const void *layout)
{
	(void)device;
	(void)layout;
	return 0;
}

enum mu_status mu_plain_bind(struct mu_device *device, struct mu_op *op)
{
	(void)device;
	(void)op;
	return MU_OK;
}
