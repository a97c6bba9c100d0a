/* SPDX-License-Identifier: Apache-2.0 */
/* The GPU as a device: opening, closing, and its table. See cuda.h. */
#include "cuda.h"

#include <stdlib.h>

#include <muster/base.h>

#include "device/plain.h"

extern const struct mu_device_ops mu_device_cuda;

#define BY_own(row) &mu_cuda_##row
#define BY_ref(row) \
	&(const struct cuda_kind) \
	{ \
		.like = &mu_ref_##row, .host_forward = true, .host_backward = true, \
		.plan = mu_cuda_plan_by_ref, .forward = mu_cuda_forward_by_ref, \
		.backward = mu_cuda_backward_by_ref, .release = mu_cuda_release_by_ref \
	}
static const struct cuda_kind *const kinds[MU_OP_N] = {
#define KIND(OP, row, name, cpu, cuda) BY_##cuda(row),
#include "device/kinds.def"
#undef KIND
};

/* ---- kernels ---- */

#define NAME_OF(name) #name,
static const char *const kernel_names[] = {CUDA_KERNELS(NAME_OF)};

/* ---- life ---- */

static int count(char *why, size_t nbytes)
{
	enum mu_status st = MU_OK;
	struct cuda_api api = {.handles = {NULL}};
	CUresult result;
	int n = 0;

	snprintf(why, nbytes, "the driver knows no GPU");
	MU_TRY(mu_cuda_load_driver(&api));
	result = api.cuDeviceGetCount(&n);
	if (result != CUDA_SUCCESS)
		MU_FAIL(MU_ERR_DEVICE, "the driver says: %s", mu_cuda_text(&api, result));
out:
	if (st != MU_OK) {
		n = 0;
		snprintf(why, nbytes, "%s", mu_trace_message());
		mu_trace_clear();
	}
	mu_cuda_unload(&api);
	return n;
}

static enum mu_status open_context(struct cuda_device *d)
{
	enum mu_status st = MU_OK;
	size_t left = 0, all = 0;
	int n = 0;

	MU_TRY(mu_cuda_load_driver(&d->api));
	CU(d, cuDeviceGetCount, &n);
	if (d->index >= n)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"the driver knows %d GPU%s here, numbered from 0 on; nvidia-smi lists "
			"them, CUDA_VISIBLE_DEVICES may hide some",
			n, MU_S(n));
	CU(d, cuDeviceGet, &d->number, d->index);
	CU(d, cuDeviceGetName, d->name, (int)sizeof d->name, d->number);
	CU(d, cuDeviceGetAttribute, &d->processors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT,
	   d->number);
	MU_TRY(mu_cuda_load_libraries(&d->api));
	CU(d, cuDevicePrimaryCtxRetain, &d->context, d->number);
	MU_TRY(mu_cuda_enter(d));
	CU(d, cuMemGetInfo, &left, &all);
	d->taken = all - left;
out:
	return st;
}

static enum mu_status open_streams(struct cuda_device *d)
{
	enum mu_status st = MU_OK;

	CU(d, cuStreamCreate, &d->work, CU_STREAM_NON_BLOCKING);
	CU(d, cuStreamCreate, &d->copies, CU_STREAM_NON_BLOCKING);
	CU(d, cuStreamCreate, &d->inputs, CU_STREAM_NON_BLOCKING);
	CU(d, cuStreamCreate, &d->other, CU_STREAM_NON_BLOCKING);
	CU(d, cuEventCreate, &d->worked, CU_EVENT_DISABLE_TIMING);
	for (size_t i = 0; i < CUDA_MARKS; i++)
		CU(d, cuEventCreate, &d->marks[i], CU_EVENT_DISABLE_TIMING);
out:
	return st;
}

static enum mu_status open_libraries(struct cuda_device *d)
{
	enum mu_status st = MU_OK;

	CU(d, cuModuleLoadData, &d->module, mu_cuda_kernels);
	for (size_t i = 0; i < CUDA_N_KERNELS; i++)
		CU(d, cuModuleGetFunction, &d->kernels[i], d->module, kernel_names[i]);
	MU_TRY(mu_cuda_reserve(d, &d->blas_workspace, CUDA_BLAS_BYTES, "cuBLAS"));
	MU_TRY(mu_cuda_reserve(d, &d->ended, mu_cuda_ended_bytes(d), "batch-norms"));
	BLAS(d, cublasCreate, &d->blas);
	BLAS(d, cublasSetMathMode, d->blas, CUBLAS_PEDANTIC_MATH);
	DNN(d, cudnnCreate, &d->dnn);
	MU_TRY(mu_cuda_set_streams(d));
out:
	return st;
}

static enum mu_status open_cuda(struct mu_device *device)
{
	enum mu_status st = MU_OK;
	struct cuda_device *d = calloc(1, sizeof *d);
	char name[32];

	device->impl = d;
	if (!d)
		MU_FAIL(MU_ERR_MEMORY, "no memory for device gpu:%d", device->index);
	d->index = device->index;
	MU_TRY(open_context(d));
	MU_TRY(open_streams(d));
	MU_TRY(open_libraries(d));
	MU_TRY(mu_cuda_join(d));
out:
	if (st != MU_OK && d) {
		snprintf(name, sizeof name, "gpu:%d: ", d->index);
		mu_trace_replace(name, "");
		mu_trace_prefix("gpu:%d cannot be used: ", d->index);
	}
	return st;
}

/* Also for a device that was opened in part. */
static void close_cuda(struct mu_device *device)
{
	struct cuda_device *d = device->impl;

	mu_cuda_leave(d);
	if (d->context && d->api.cuCtxSetCurrent(d->context) == CUDA_SUCCESS) {
		if (d->work)
			d->api.cuStreamSynchronize(d->work);
		mu_cuda_free_fused_plans(d);
		if (d->dnn)
			d->api.cudnnDestroy(d->dnn);
		if (d->blas)
			d->api.cublasDestroy(d->blas);
		if (d->blas_workspace)
			d->api.cuMemFree(d->blas_workspace);
		if (d->ended)
			d->api.cuMemFree(d->ended);
		if (d->module)
			d->api.cuModuleUnload(d->module);
		for (size_t i = 0; i < CUDA_MARKS && d->marks[i]; i++)
			d->api.cuEventDestroy(d->marks[i]);
		if (d->worked)
			d->api.cuEventDestroy(d->worked);
		if (d->other)
			d->api.cuStreamDestroy(d->other);
		if (d->inputs)
			d->api.cuStreamDestroy(d->inputs);
		if (d->copies)
			d->api.cuStreamDestroy(d->copies);
		if (d->work)
			d->api.cuStreamDestroy(d->work);
		d->api.cuDevicePrimaryCtxRelease(d->number);
	}
	mu_cuda_unload(&d->api);
	free(d);
	device->impl = NULL;
}

static void describe(const struct mu_device *device, char *text, size_t nbytes)
{
	const struct cuda_device *d = device->impl;
	const size_t dnn = d->api.cudnnGetVersion();
	int driver = 0;

	d->api.cuDriverGetVersion(&driver);
	snprintf(text, nbytes, "gpu: %s, driver for CUDA %d.%d, cuDNN %zu.%zu.%zu", d->name,
		 driver / 1000, driver % 1000 / 10, dnn / 10000, dnn / 100 % 100, dnn % 100);
}

/* ---- operations ---- */

static enum mu_status plan(struct mu_device *device, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	struct cuda_device *d = device->impl;

	MU_TRY(mu_cuda_enter(d));
	d->device = device;
	if (op->kind == MU_OP_SOFTMAX)
		op->fusion.in_place = op->fusion.in_place && op->phase == MU_PHASE_TRAIN &&
				      mu_cuda_in_rows(op->inputs[0]);
	MU_TRY(mu_cuda_plan_view(d, op, kinds[op->kind]));
out:
	return st;
}

static enum mu_status forward(struct mu_device *device, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	struct mu_op *view;

	MU_TRY(mu_cuda_enter(device->impl));
	MU_TRY(mu_cuda_begin_view(device->impl, op, &view));
	MU_TRY(kinds[op->kind]->forward(device->impl, view));
out:
	return st;
}

static enum mu_status restore(struct mu_device *device, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	const struct cuda_kind *kind = kinds[op->kind];
	struct mu_op *view;

	MU_TRY(mu_cuda_enter(device->impl));
	MU_TRY(mu_cuda_begin_view(device->impl, op, &view));
	MU_TRY((kind->restore ? kind->restore : kind->forward)(device->impl, view));
out:
	return st;
}

static enum mu_status backward(struct mu_device *device, struct mu_op *op)
{
	enum mu_status st = MU_OK;
	struct mu_op *view;

	MU_TRY(mu_cuda_enter(device->impl));
	MU_TRY(mu_cuda_begin_view(device->impl, op, &view));
	MU_TRY(kinds[op->kind]->backward(device->impl, view));
	MU_TRY(mu_cuda_end_backward(device->impl, op));
out:
	return st;
}

static enum mu_status prepare(struct mu_device *device, struct mu_op *ops, size_t n)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_cuda_enter(device->impl));
	MU_TRY(mu_cuda_lay_weights(device->impl, device->dtype, ops, n, false));
out:
	return st;
}

static enum mu_status conclude(struct mu_device *device, struct mu_op *ops, size_t n)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_cuda_enter(device->impl));
	MU_TRY(mu_cuda_lay_weights(device->impl, device->dtype, ops, n, true));
out:
	return st;
}

/* Libraries unload their code from the current context. */
static void release(struct mu_device *device, struct mu_op *op)
{
	struct cuda_device *d = device->impl;

	if (d->context)
		(void)d->api.cuCtxSetCurrent(d->context);
	mu_cuda_release_view(device->impl, op, kinds[op->kind]);
}

/* Users' losses have waited for the GPU. */
static void set_loss(struct mu_device *device, struct mu_op *op)
{
	(void)device;
	if (kinds[op->kind]->set_loss)
		kinds[op->kind]->set_loss(mu_cuda_view(op));
}

/* All architectures of the kernels have both. */
static enum mu_status check_dtype(const struct mu_device *device, enum mu_dtype dtype)
{
	(void)device;
	(void)dtype;
	return MU_OK;
}

const struct mu_device_ops mu_device_cuda = {
	.name = "gpu",
	.help = "NVIDIA's GPUs, by cuDNN, cuBLAS and kernels of our own",
	.count = count,
	.memory = &mu_cuda_memory,
	.norms_add = true,
	.has_tf32 = true,
	.open = open_cuda,
	.close = close_cuda,
	.plan = plan,
	.lay_input = mu_cuda_lay_input,
	.bind = mu_plain_bind,
	.forward = forward,
	.backward = backward,
	.restore = restore,
	.prepare = prepare,
	.conclude = conclude,
	.set_loss = set_loss,
	.release = release,
	.from_plain = mu_cuda_from_plain,
	.to_plain = mu_cuda_to_plain,
	.copy_layout = mu_cuda_copy_layout,
	.free_layout = mu_cuda_free_layout,
	.hash_layout = mu_cuda_hash_layout,
	.check_dtype = check_dtype,
	.describe = describe,
	.energy = mu_cuda_energy,
	.identify = mu_cuda_identify,
	.measure = mu_cuda_measure,
};
