/* SPDX-License-Identifier: Apache-2.0 */
/* Launch kernels and plans of cuDNN's, and set the streams of libraries. See cuda.h. */
#include "device/cuda/dnn/graph.h"

#include <string.h>

#include <muster/base.h>

enum { THREADS = 256, BLOCKS_PER_PROCESSOR = 16, EIGHT = 8 };

static enum mu_status launch(struct cuda_device *d, CUstream stream, enum cuda_kernel kernel,
			     size_t blocks, void *args)
{
	enum mu_status st = MU_OK;
	void *params[] = {args};

	CU(d, cuLaunchKernel, d->kernels[kernel], (unsigned)blocks, 1, 1, THREADS, 1, 1, 0, stream,
	   params, NULL);
out:
	return st;
}

enum mu_status mu_cuda_each_on(struct cuda_device *d, CUstream stream, enum cuda_kernel kernel,
			       size_t n, void *args)
{
	const size_t most = (size_t)d->processors * BLOCKS_PER_PROCESSOR;
	const size_t blocks = (n + THREADS - 1) / THREADS;

	return n > 0 ? launch(d, stream, kernel, blocks < most ? blocks : most, args) : MU_OK;
}

enum mu_status mu_cuda_each(struct cuda_device *d, enum cuda_kernel kernel, size_t n, void *args)
{
	return mu_cuda_each_on(d, d->work, kernel, n, args);
}

size_t mu_cuda_eights_of(size_t n)
{
	return (n + EIGHT - 1) / EIGHT;
}

enum mu_status mu_cuda_eights(struct cuda_device *d, enum cuda_kernel kernel, size_t n, void *args)
{
	return mu_cuda_each(d, kernel, mu_cuda_eights_of(n), args);
}

enum mu_status mu_cuda_rows(struct cuda_device *d, enum cuda_kernel kernel, size_t n, void *args)
{
	const size_t most = (size_t)d->processors * BLOCKS_PER_PROCESSOR;

	return n > 0 ? launch(d, d->work, kernel, n < most ? n : most, args) : MU_OK;
}

enum mu_status mu_cuda_warps(struct cuda_device *d, enum cuda_kernel kernel, size_t n, void *args)
{
	return mu_cuda_each(d, kernel, n * CUDA_WARP, args);
}

/* cuBLAS forgets its workspace when its stream changes. */
enum mu_status mu_cuda_set_streams(struct cuda_device *d)
{
	enum mu_status st = MU_OK;

	BLAS(d, cublasSetStream, d->blas, d->work);
	BLAS(d, cublasSetWorkspace, d->blas, (void *)(uintptr_t)d->blas_workspace, CUDA_BLAS_BYTES);
	DNN(d, cudnnSetStream, d->dnn, d->work);
out:
	return st;
}

/* The arrays, as cuDNN wants them: in a descriptor that does not change. */
static enum mu_status make_pack(struct cuda_device *d, struct dnn_plan *plan,
				const struct dnn_arrays *arrays)
{
	enum mu_status st = MU_OK;
	int64_t numbers[DNN_MOST_ARRAYS], n = 0;
	const void *used[DNN_MOST_ARRAYS];

	for (int64_t i = 0; i < DNN_MOST_ARRAYS; i++)
		if (arrays->of[i]) {
			numbers[n] = i + 1;
			used[n++] = arrays->of[i];
		}
	if (plan->pack)
		d->api.cudnnBackendDestroyDescriptor(plan->pack);
	plan->pack = NULL;
	DNN(d, cudnnBackendCreateDescriptor, CUDNN_BACKEND_VARIANT_PACK_DESCRIPTOR, &plan->pack);
	DNN(d, cudnnBackendSetAttribute, plan->pack, CUDNN_ATTR_VARIANT_PACK_UNIQUE_IDS,
	    CUDNN_TYPE_INT64, n, numbers);
	DNN(d, cudnnBackendSetAttribute, plan->pack, CUDNN_ATTR_VARIANT_PACK_DATA_POINTERS,
	    CUDNN_TYPE_VOID_PTR, n, used);
	DNN(d, cudnnBackendSetAttribute, plan->pack, CUDNN_ATTR_VARIANT_PACK_WORKSPACE,
	    CUDNN_TYPE_VOID_PTR, 1, &arrays->scratch);
	DNN(d, cudnnBackendFinalize, plan->pack);
	plan->arrays = *arrays;
out:
	return st;
}

enum mu_status mu_dnn_run(struct cuda_device *d, struct dnn_plan *plan,
			  const struct dnn_arrays *arrays)
{
	enum mu_status st = MU_OK;

	if (!plan->pack || memcmp(&plan->arrays, arrays, sizeof *arrays) != 0)
		MU_TRY(make_pack(d, plan, arrays));
	DNN(d, cudnnBackendExecute, d->dnn, plan->plan, plan->pack);
out:
	return st;
}
