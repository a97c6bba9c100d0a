/* SPDX-License-Identifier: Apache-2.0 */
/* Find a device by its name, open and close it. */
#include "device/op.h"

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <muster/base.h>

/* "cpu, ref" */
static void list_devices(char *text, size_t nbytes)
{
	size_t at = 0;

	text[0] = '\0';
	for (size_t i = 0; mu_device_table[i] && at < nbytes; i++)
		at += (size_t)snprintf(text + at, nbytes - at, "%s%s", i ? ", " : "",
				       mu_device_table[i]->name);
}

static const struct mu_device_ops *find_kind(const char *name, size_t length)
{
	for (size_t i = 0; mu_device_table[i]; i++) {
		const char *known = mu_device_table[i]->name;

		if (strlen(known) == length && strncmp(known, name, length) == 0)
			return mu_device_table[i];
	}
	return NULL;
}

/* Split "cpu:1" into kind and index. */
enum mu_status mu_device_find(struct mu_device *device, const char *name)
{
	enum mu_status st = MU_OK;
	size_t length = name ? strcspn(name, ":") : 0;
	const char *digits = name ? name + length : "";
	char list[128];
	long index;

	*device = (struct mu_device){.ops = name ? find_kind(name, length) : mu_device_table[0]};
	if (!device->ops) {
		list_devices(list, sizeof list);
		MU_FAIL(MU_ERR_USAGE, "unknown device \"%s\"; this build has: %s", name, list);
	}
	if (*digits == '\0')
		goto out;
	digits++;
	index = strtol(digits, NULL, 10);
	if (*digits == '\0' || digits[strspn(digits, "0123456789")] != '\0' || index > INT_MAX)
		MU_FAIL(MU_ERR_USAGE, "device \"%s\": a number must follow the colon, as in %s:0",
			name, device->ops->name);
	device->index = (int)index;
out:
	return st;
}

enum mu_status mu_device_open(struct mu_device *device, const char *name, int n_threads)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_device_find(device, name));
	device->n_threads = n_threads;
	if (n_threads < 1)
		MU_FAIL(MU_ERR_ARGUMENT, "device %s: %d threads; at least 1 is needed",
			device->ops->name, n_threads);
	MU_TRY(device->ops->open(device));
out:
	if (st != MU_OK) {
		if (device->impl)
			device->ops->close(device);
		*device = (struct mu_device){.ops = NULL};
	}
	return st;
}

enum mu_status mu_device_set_dtype(struct mu_device *device, enum mu_dtype dtype)
{
	enum mu_status st = MU_OK;

	if (dtype != MU_FLOAT32 && !device->ops->check_dtype)
		MU_FAIL(MU_ERR_UNSUPPORTED, "device %s has no %s", device->ops->name,
			mu_dtype_name(dtype));
	if (dtype != MU_FLOAT32)
		MU_TRY(device->ops->check_dtype(device, dtype));
	device->dtype = dtype;
out:
	return st;
}

bool mu_device_is_here(const struct mu_device_ops *ops, char *why, size_t nbytes)
{
	return !ops->count || ops->count(why, nbytes) > 0;
}

void mu_device_close(struct mu_device *device)
{
	if (device->ops)
		device->ops->close(device);
	*device = (struct mu_device){.ops = NULL};
}
