/* SPDX-License-Identifier: Apache-2.0 */
/* Shapes, names of operations, and finding a device by its name. */
#include <muster/device.h>

#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include <muster/base.h>

size_t mu_shape_n(const struct mu_shape *shape)
{
	size_t n = 1;

	for (int i = 0; i < shape->ndims; i++)
		n *= shape->dims[i];
	return n;
}

const char *mu_shape_text(const struct mu_shape *shape, char *text, size_t nbytes)
{
	char whole[2 + MU_MAX_DIMS * 22 + 2] = "(";
	size_t at = 1;

	for (int i = 0; i < shape->ndims; i++)
		at += (size_t)snprintf(whole + at, sizeof whole - at, "%s%zu", i ? ", " : "",
				       shape->dims[i]);
	snprintf(text, nbytes, "%s)", whole);
	return text;
}

bool mu_shape_equal(const struct mu_shape *a, const struct mu_shape *b)
{
	if (a->ndims != b->ndims)
		return false;
	for (int i = 0; i < a->ndims; i++)
		if (a->dims[i] != b->dims[i])
			return false;
	return true;
}

const char *mu_op_kind_name(enum mu_op_kind kind)
{
	static const char *const names[MU_OP_N] = {
		[MU_OP_CONVOLUTION] = "convolution", [MU_OP_FULLY_CONNECTED] = "fullyconnected",
		[MU_OP_ACTIVATION] = "activation",   [MU_OP_POOLING] = "pooling",
		[MU_OP_FLATTEN] = "flatten",         [MU_OP_DROPOUT] = "dropout",
		[MU_OP_BATCH_NORM] = "batchnorm",    [MU_OP_SUM] = "sum",
		[MU_OP_CONCAT] = "concat",           [MU_OP_SPLIT] = "split",
		[MU_OP_SOFTMAX] = "softmax",         [MU_OP_LRN] = "lrn",
		[MU_OP_EMBEDDING] = "embedding",     [MU_OP_LSTM] = "lstm",
		[MU_OP_CUSTOM] = "custom",
	};

	return (unsigned)kind < MU_OP_N ? names[kind] : "unknown";
}

float mu_batch_loss_scale(const struct mu_batch *batch)
{
	return batch->loss_scale > 0 ? batch->loss_scale : 1;
}

static const char *const algorithm_names[] = {
	[MU_CONVOLUTION_AUTO] = "auto",
	[MU_CONVOLUTION_DIRECT] = "direct",
	[MU_CONVOLUTION_WINOGRAD] = "winograd",
	[MU_CONVOLUTION_GEMM] = "gemm",
};

const char *mu_convolution_algorithm_name(enum mu_convolution_algorithm algorithm)
{
	return algorithm_names[algorithm];
}

enum mu_status mu_convolution_algorithm_find(enum mu_convolution_algorithm *out, const char *name)
{
	enum mu_status st = MU_OK;

	for (int a = MU_CONVOLUTION_AUTO; a < MU_CONVOLUTION_ALGORITHMS; a++) {
		*out = (enum mu_convolution_algorithm)a;
		if (strcmp(algorithm_names[a], name) == 0)
			goto out;
	}
	MU_FAIL(MU_ERR_USAGE,
		"unknown algorithm of convolutions \"%s\"; known ones: auto, direct, winograd, "
		"gemm",
		name);
out:
	return st;
}

void mu_convolution_ask(const struct mu_device *device, const char *layer,
			enum mu_convolution_algorithm out[MU_CONVOLUTION_PHASES])
{
	for (int phase = 0; phase < MU_CONVOLUTION_PHASES; phase++)
		out[phase] = device->algorithm;
	for (size_t i = 0; i < device->n_choices; i++)
		if (strcmp(device->choices[i].layer, layer) == 0)
			memcpy(out, device->choices[i].algorithms,
			       sizeof device->choices[i].algorithms);
}

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

/* Cut "cpu:1" into its kind and its index. */
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
		MU_FAIL(MU_ERR_USAGE, "device \"%s\": behind the colon stands a number, as in %s:0",
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
