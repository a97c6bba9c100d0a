/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Transfer of samples to the GPU: a stream of its own, and an event that the work stream waits for.
 */
#include "device/cuda/cuda.h"

#include <string.h>

#include <muster/base.h>

/* The copy stream does not wait for the work stream, which zeroes the memory. */
enum mu_status mu_cuda_feed_open(struct mu_device *device, struct mu_feed *feed, size_t nbytes,
				 const char *what)
{
	enum mu_status st = MU_OK;
	struct cuda_device *d = device->impl;
	CUevent sent;

	*feed = (struct mu_feed){.host = NULL};
	MU_TRY(mu_cuda_enter(d));
	CU(d, cuEventCreate, &sent, CU_EVENT_DISABLE_TIMING);
	feed->impl = sent;
	MU_TRY(mu_cuda_memory.alloc_host(device, &feed->host, nbytes, what));
	MU_TRY(mu_cuda_memory.alloc(device, &feed->data, nbytes, what));
	MU_TRY(mu_cuda_finish(d));
out:
	if (st != MU_OK)
		mu_cuda_feed_close(device, feed);
	return st;
}

/* A copy that no forward has waited for may be in progress. */
void mu_cuda_feed_close(struct mu_device *device, struct mu_feed *feed)
{
	struct cuda_device *d = device->impl;

	if (!feed->impl || d->api.cuCtxSetCurrent(d->context) != CUDA_SUCCESS)
		return;
	d->api.cuStreamSynchronize(d->inputs);
	d->api.cuEventDestroy(feed->impl);
	mu_cuda_memory.free(device, feed->data);
	mu_cuda_memory.free_host(device, feed->host);
	*feed = (struct mu_feed){.host = NULL};
}

enum mu_status mu_cuda_feed_send(struct mu_device *device, struct mu_feed *feed, size_t from,
				 size_t to)
{
	enum mu_status st = MU_OK;
	struct cuda_device *d = device->impl;

	MU_TRY(mu_cuda_enter(d));
	CU(d, cuMemcpyAsync, cuda_pointer(feed->data) + from, cuda_pointer(feed->host) + from,
	   to - from, d->inputs);
	CU(d, cuEventRecord, feed->impl, d->inputs);
out:
	return st;
}

enum mu_status mu_cuda_feed_take(struct mu_device *device, struct mu_feed *feed)
{
	enum mu_status st = MU_OK;
	struct cuda_device *d = device->impl;

	MU_TRY(mu_cuda_enter(d));
	CU(d, cuStreamWaitEvent, d->work, feed->impl, 0);
out:
	return st;
}

static enum mu_status unpack(struct cuda_device *d, const struct mu_tensor *out,
			     const void *bytes, const struct mu_pixels *pixels)
{
	struct cuda_unpack args = {
		.from = bytes,
		.to = out->data,
		.to_type = mu_cuda_type(out),
		.to_last = out->layout != NULL,
		.channels = out->shape.dims[1],
		.area = mu_shape_positions(&out->shape),
		.n = mu_shape_n(&out->shape) / (out->layout ? out->shape.dims[1] : 1),
	};

	memcpy(args.mean, pixels->mean, sizeof args.mean);
	memcpy(args.std, pixels->std, sizeof args.std);
	return mu_cuda_each(d, CUDA_unpack, args.n, &args);
}

enum mu_status mu_cuda_lay(struct mu_device *device, const struct mu_tensor *out, const void *plain,
			   const struct mu_pixels *pixels)
{
	enum mu_status st = MU_OK;
	struct cuda_device *d = device->impl;
	const struct cuda_array from = {(void *)(uintptr_t)plain, NULL};
	const struct cuda_array to = {out->data, out->layout};

	MU_TRY(mu_cuda_enter(d));
	if (pixels)
		MU_TRY(unpack(d, out, plain, pixels));
	else if (out->layout)
		MU_TRY(mu_cuda_convert(d, &out->shape, &from, &to));
	else
		MU_TRY(mu_cuda_copy(d, out->data, plain, mu_cuda_bytes(out)));
out:
	return st;
}
