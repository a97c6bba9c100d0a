/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that a device works on, for the operations under test. */
#include "op_memory.h"

#include <string.h>

#include <muster/base.h>

enum mu_status op_memory_new(struct mu_device *device, void **out, size_t nbytes)
{
	const struct mu_device_memory *memory = device->ops->memory;

	return memory ? memory->alloc(device, out, nbytes, "test memory")
		      : mu_alloc(out, nbytes, "test memory");
}

void op_memory_free(struct mu_device *device, void *p)
{
	if (device->ops->memory)
		device->ops->memory->free(device, p);
	else
		mu_free(p);
}

/* Until all that the device was given is done. */
static enum mu_status finish(struct mu_device *device)
{
	enum mu_status st = MU_OK;
	uint64_t mark;
	bool reached;

	MU_TRY(device->ops->memory->mark(device, &mark));
	MU_TRY(device->ops->memory->reach(device, mark, true, &reached));
out:
	return st;
}

enum mu_status op_memory_fetch(struct mu_device *device, void *to, const void *from, size_t nbytes)
{
	enum mu_status st = MU_OK;

	if (device->ops->memory) {
		MU_TRY(device->ops->memory->download(device, to, from, nbytes));
		MU_TRY(finish(device));
	} else {
		memcpy(to, from, nbytes);
	}
out:
	return st;
}

enum mu_status op_memory_spoil(struct mu_device *device, void *p, size_t nbytes)
{
	enum mu_status st = MU_OK;
	void *nans = NULL;

	if (!p || nbytes == 0)
		goto out;
	if (!device->ops->memory) {
		memset(p, 0xff, nbytes);
		goto out;
	}
	MU_TRY(mu_alloc(&nans, nbytes, "test memory"));
	memset(nans, 0xff, nbytes);
	MU_TRY(device->ops->memory->upload(device, p, nans, nbytes));
	MU_TRY(finish(device));
out:
	mu_free(nans);
	return st;
}
