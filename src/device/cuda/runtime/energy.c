/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The energy of a GPU, by NVML, which comes with the driver: since its driver was loaded, of the
 * whole GPU (of all parts of one that is divided). GPUs before Volta have no such counter.
 */
#include "config.h"

#include "device/cuda/cuda.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

/* NVML's header is not part of every toolkit: its manual's declarations, 0 is success. */
typedef int nvml_init(void);
typedef int nvml_find(const char *bus, void **gpu);
typedef int nvml_energy(void *gpu, unsigned long long *millijoules);

enum { BUS_BYTES = 32 };

static void *symbol(void *library, const char *name)
{
	return library ? dlsym(library, name) : NULL;
}

/* The driver's number of the GPU on its bus: "0000:3b:00.0". */
static bool find_bus(struct cuda_device *d, char bus[BUS_BYTES])
{
	*bus = '\0';
	return d->api.cuDeviceGetPCIBusId(bus, BUS_BYTES, d->number) == CUDA_SUCCESS && *bus;
}

static void open_nvml(struct cuda_device *d)
{
	void *library = dlopen("libnvidia-ml.so.1", RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
	void *init = symbol(library, "nvmlInit_v2"),
	     *find = symbol(library, "nvmlDeviceGetHandleByPciBusId_v2"),
	     *read = symbol(library, "nvmlDeviceGetTotalEnergyConsumption");
	char bus[BUS_BYTES];
	nvml_init *call_init;
	nvml_find *call_find;

	d->energy.tried = true;
	if (!init || !find || !read || !find_bus(d, bus))
		return;
	memcpy(&call_init, &init, sizeof init); /* POSIX: functions fit into void * */
	memcpy(&call_find, &find, sizeof find);
	if (call_init() == 0 && call_find(bus, &d->energy.gpu) == 0)
		memcpy(&d->energy.read, &read, sizeof read);
}

bool mu_cuda_energy(struct mu_device *device, double *joules)
{
	struct cuda_device *d = device->impl;
	unsigned long long millijoules = 0;

	if (!d->energy.tried)
		open_nvml(d);
	errno = ENOTSUP;
	if (!d->energy.read || d->energy.read(d->energy.gpu, &millijoules) != 0)
		return false;
	*joules = 1e-3 * (double)millijoules;
	return true;
}

void mu_cuda_identify(struct mu_device *device, char *text, size_t nbytes)
{
	char bus[BUS_BYTES];
	double joules;

	*text = '\0';
	if (mu_cuda_energy(device, &joules) && find_bus(device->impl, bus))
		snprintf(text, nbytes, "%s", bus);
}
