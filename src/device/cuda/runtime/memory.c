/* SPDX-License-Identifier: Apache-2.0 */
/* GPU memory, copies, marks, and mirrors of host arrays. */
#include "device/cuda/cuda.h"

#include <stdlib.h>
#include <string.h>

#include <muster/base.h>

static struct cuda_device *of(struct mu_device *device)
{
	return device->impl;
}

enum mu_status mu_cuda_enter(struct cuda_device *d)
{
	enum mu_status st = MU_OK;

	CU(d, cuCtxSetCurrent, d->context);
out:
	return st;
}

static enum mu_status enter(struct mu_device *device)
{
	return mu_cuda_enter(of(device));
}

static void *stream(struct mu_device *device)
{
	return of(device)->work;
}

/* ---- memory ---- */

/* The GPU has too little memory: how much is missing, and who uses it. */
static enum mu_status report_full(const struct cuda_device *d, size_t nbytes, const char *what)
{
	enum mu_status st = MU_OK;
	size_t left = 0, all = 0;
	char others[128] = "";

	CU(d, cuMemGetInfo, &left, &all);
	if (d->taken > all / 16) /* an empty GPU has some, too */
		snprintf(others, sizeof others,
			 ", %.3f MB were in use before this process (nvidia-smi lists processes)",
			 (double)d->taken / 1e6);
	MU_FAIL(MU_ERR_MEMORY,
		"gpu:%d: no memory for %.3f MB of %s, %.3f MB are missing: %.3f of its %.3f MB are "
		"free%s; a smaller batch size needs less",
		d->index, (double)nbytes / 1e6, what,
		nbytes > left ? (double)(nbytes - left) / 1e6 : 0, (double)left / 1e6,
		(double)all / 1e6, others);
out:
	return st;
}

enum mu_status mu_cuda_reserve(struct cuda_device *d, CUdeviceptr *out, size_t nbytes,
			       const char *what)
{
	enum mu_status st = MU_OK;
	CUresult result;

	*out = 0;
	MU_TRY(mu_cuda_enter(d));
	result = d->api.cuMemAlloc(out, nbytes > 0 ? nbytes : 1);
	if (result == CUDA_ERROR_OUT_OF_MEMORY)
		MU_TRY(report_full(d, nbytes, what));
	if (result != CUDA_SUCCESS)
		MU_TRY(mu_cuda_failed(d, "cuMemAlloc", result));
	if (nbytes > 0)
		CU(d, cuMemsetD8Async, *out, 0, nbytes, d->work);
out:
	return st;
}

static enum mu_status alloc(struct mu_device *device, void **out, size_t nbytes, const char *what)
{
	enum mu_status st = MU_OK;
	CUdeviceptr data = 0;

	st = mu_cuda_reserve(of(device), &data, nbytes, what);
	*out = (void *)(uintptr_t)data;
	return st;
}

/* If memory cannot be freed the driver is at fault: the program continues to its end. */
static void free_data(struct cuda_device *d, CUdeviceptr data)
{
	if (data && d->api.cuCtxSetCurrent(d->context) == CUDA_SUCCESS)
		d->api.cuMemFree(data);
}

static void free_memory(struct mu_device *device, void *p)
{
	free_data(of(device), cuda_pointer(p));
}

static enum mu_status alloc_host(struct mu_device *device, void **out, size_t nbytes,
				 const char *what)
{
	enum mu_status st = MU_OK;
	struct cuda_device *d = of(device);
	CUresult result;

	*out = NULL;
	MU_TRY(mu_cuda_enter(d));
	result = d->api.cuMemHostAlloc(out, nbytes > 0 ? nbytes : 1, CU_MEMHOSTALLOC_PORTABLE);
	if (result != CUDA_SUCCESS) {
		*out = NULL;
		MU_FAIL(result == CUDA_ERROR_OUT_OF_MEMORY ? MU_ERR_MEMORY : MU_ERR_DEVICE,
			"gpu:%d: no %.3f MB of the host's memory for %s: %s", d->index,
			(double)nbytes / 1e6, what, mu_cuda_text(&d->api, result));
	}
	memset(*out, 0, nbytes);
out:
	return st;
}

static void free_host(struct mu_device *device, void *p)
{
	struct cuda_device *d = of(device);

	if (p && d->api.cuCtxSetCurrent(d->context) == CUDA_SUCCESS)
		d->api.cuMemFreeHost(p);
}

/* ---- copies ---- */

enum mu_status mu_cuda_copy(struct cuda_device *d, void *to, const void *from, size_t nbytes)
{
	enum mu_status st = MU_OK;

	if (nbytes > 0 && to != from)
		CU(d, cuMemcpyAsync, cuda_pointer(to), cuda_pointer(from), nbytes, d->work);
out:
	return st;
}

static enum mu_status upload(struct mu_device *device, void *to, const void *from, size_t nbytes)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_cuda_enter(of(device)));
	MU_TRY(mu_cuda_copy(of(device), to, from, nbytes));
out:
	return st;
}

/* Copies submitted from now on wait for the work submitted so far. */
static enum mu_status order_copies(struct cuda_device *d)
{
	enum mu_status st = MU_OK;

	CU(d, cuEventRecord, d->worked, d->work);
	CU(d, cuStreamWaitEvent, d->copies, d->worked, 0);
out:
	return st;
}

static enum mu_status download(struct mu_device *device, void *to, const void *from, size_t nbytes)
{
	enum mu_status st = MU_OK;
	struct cuda_device *d = of(device);

	if (nbytes == 0)
		goto out;
	MU_TRY(mu_cuda_enter(d));
	MU_TRY(order_copies(d));
	CU(d, cuMemcpyAsync, cuda_pointer(to), cuda_pointer(from), nbytes, d->copies);
out:
	return st;
}

enum mu_status mu_cuda_finish(struct cuda_device *d)
{
	enum mu_status st = MU_OK;

	CU(d, cuStreamSynchronize, d->work);
	CU(d, cuStreamSynchronize, d->copies);
out:
	return st;
}

static enum mu_status mark(struct mu_device *device, uint64_t *mark)
{
	enum mu_status st = MU_OK;
	struct cuda_device *d = of(device);

	MU_TRY(mu_cuda_enter(d));
	MU_TRY(order_copies(d));
	CU(d, cuEventRecord, d->marks[d->n_marks % CUDA_MARKS], d->copies);
	*mark = d->n_marks++;
out:
	return st;
}

/* An event reused for a later mark covers that mark, and so all before it. */
static enum mu_status reach(struct mu_device *device, uint64_t mark, bool wait, bool *reached)
{
	enum mu_status st = MU_OK;
	struct cuda_device *d = of(device);
	CUevent event = d->marks[mark % CUDA_MARKS];
	CUresult result;

	*reached = false;
	MU_TRY(mu_cuda_enter(d));
	if (wait)
		CU(d, cuEventSynchronize, event);
	result = d->api.cuEventQuery(event);
	if (result != CUDA_SUCCESS && result != CUDA_ERROR_NOT_READY)
		MU_TRY(mu_cuda_failed(d, "cuEventQuery", result));
	*reached = result == CUDA_SUCCESS;
out:
	return st;
}

/* ---- gradients of a scaled loss ---- */

static enum mu_status scale(struct mu_device *device, float *x, size_t n, float factor,
			    uint32_t *found)
{
	enum mu_status st = MU_OK;
	struct cuda_scale args = {.x = x, .factor = factor, .found = found, .n = n};

	MU_TRY(mu_cuda_enter(of(device)));
	MU_TRY(mu_cuda_eights(of(device), CUDA_scale, n, &args));
out:
	return st;
}

/* ---- mirrors of host arrays ---- */

/* The host's array is pinned, so that copies are fast and asynchronous. */
static enum mu_status new_mirror(struct cuda_device *d, float *host, size_t n,
				 struct cuda_mirror **out)
{
	enum mu_status st = MU_OK;
	struct cuda_mirror *m = calloc(1, sizeof *m);

	*out = NULL;
	if (!m)
		MU_FAIL(MU_ERR_MEMORY, "gpu:%d: no memory to note an array", d->index);
	MU_TRY(mu_cuda_reserve(d, &m->data, n * sizeof *host, "weights or gradients"));
	m->host = host;
	m->nbytes = n * sizeof *host;
	m->pinned = mu_cuda_pin(d, host, m->nbytes);
	m->next = d->mirrors;
	d->mirrors = m;
	*out = m;
out:
	if (st != MU_OK && m) {
		free_data(d, m->data);
		free(m);
	}
	return st;
}

static enum mu_status mirror(struct mu_device *device, float **out, float *host, size_t n)
{
	enum mu_status st = MU_OK;
	struct cuda_device *d = of(device);
	struct cuda_mirror *m = d->mirrors;

	*out = NULL;
	while (m && m->host != host)
		m = m->next;
	if (!m)
		MU_TRY(new_mirror(d, host, n, &m));
	m->users++;
	*out = (float *)(uintptr_t)m->data;
out:
	return st;
}

/* Copies to or from the mirror may be in progress, with memory that is freed next. */
static void unmirror(struct mu_device *device, float *data)
{
	struct cuda_device *d = of(device);
	struct cuda_mirror **link = &d->mirrors, *m;

	while (*link && (*link)->data != cuda_pointer(data))
		link = &(*link)->next;
	m = *link;
	if (!m || --m->users > 0 || d->api.cuCtxSetCurrent(d->context) != CUDA_SUCCESS)
		return;
	d->api.cuStreamSynchronize(d->work);
	d->api.cuStreamSynchronize(d->copies);
	if (m->pinned)
		mu_cuda_unpin(d, m->host, m->nbytes);
	*link = m->next;
	free_data(d, m->data);
	free(m);
}

const struct mu_device_memory mu_cuda_memory = {
	.alloc = alloc,
	.free = free_memory,
	.alloc_host = alloc_host,
	.free_host = free_host,
	.upload = upload,
	.download = download,
	.feed_open = mu_cuda_feed_open,
	.feed_close = mu_cuda_feed_close,
	.feed_send = mu_cuda_feed_send,
	.feed_take = mu_cuda_feed_take,
	.lay = mu_cuda_lay,
	.can_record = mu_cuda_can_record,
	.record_begin = mu_cuda_record_begin,
	.record_end = mu_cuda_record_end,
	.replay = mu_cuda_replay,
	.free_recording = mu_cuda_free_recording,
	.mark = mark,
	.reach = reach,
	.scale = scale,
	.mirror = mirror,
	.unmirror = unmirror,
	.enter = enter,
	.stream = stream,
	.update = mu_cuda_update,
	.sum = mu_cuda_add,
};
