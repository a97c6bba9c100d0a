/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Recorded work, as CUDA graphs. A recording uses a stream of its own, because stores and other
 * threads wait for the work stream, and make it wait, at any time: it must not be in capture mode
 * then.
 */
#include "device/cuda/cuda.h"

#include <muster/base.h>

static enum mu_status exchange_streams(struct cuda_device *d)
{
	const CUstream work = d->work;

	d->work = d->other;
	d->other = work;
	return mu_cuda_set_streams(d);
}

/* Relaxed capture: other threads use their devices, and libraries may allocate memory. */
enum mu_status mu_cuda_record_begin(struct mu_device *device)
{
	enum mu_status st = MU_OK;
	struct cuda_device *d = device->impl;
	CUresult result;

	MU_TRY(mu_cuda_enter(d));
	MU_TRY(exchange_streams(d));
	result = d->api.cuStreamBeginCapture(d->work, CU_STREAM_CAPTURE_MODE_RELAXED);
	if (result == CUDA_SUCCESS)
		goto out;
	MU_TRY(exchange_streams(d));
	MU_FAIL(MU_ERR_DEVICE, "gpu:%d: cuStreamBeginCapture: %s", d->index,
		mu_cuda_text(&d->api, result));
out:
	return st;
}

/* Errors during the capture appear here as well: then there is no graph, or it cannot be
 * instantiated. */
enum mu_status mu_cuda_record_end(struct mu_device *device, void **recording)
{
	enum mu_status st = MU_OK;
	struct cuda_device *d = device->impl;
	CUgraph graph = NULL;
	CUgraphExec run = NULL;
	CUresult result;

	*recording = NULL;
	MU_TRY(mu_cuda_enter(d));
	result = d->api.cuStreamEndCapture(d->work, &graph);
	MU_TRY(exchange_streams(d));
	if (result != CUDA_SUCCESS || !graph)
		MU_FAIL(MU_ERR_DEVICE, "gpu:%d: cuStreamEndCapture: %s", d->index,
			mu_cuda_text(&d->api, result));
	CU(d, cuGraphInstantiate, &run, graph, 0);
	*recording = run;
out:
	if (graph)
		d->api.cuGraphDestroy(graph);
	return st;
}

enum mu_status mu_cuda_replay(struct mu_device *device, void *recording)
{
	enum mu_status st = MU_OK;
	struct cuda_device *d = device->impl;

	MU_TRY(mu_cuda_enter(d));
	CU(d, cuGraphLaunch, recording, d->work);
out:
	return st;
}

/* The graph may be running. */
void mu_cuda_free_recording(struct mu_device *device, void *recording)
{
	struct cuda_device *d = device->impl;

	if (!recording || d->api.cuCtxSetCurrent(d->context) != CUDA_SUCCESS)
		return;
	d->api.cuStreamSynchronize(d->work);
	d->api.cuGraphExecDestroy(recording);
}
