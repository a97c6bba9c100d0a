/* SPDX-License-Identifier: Apache-2.0 */
/* Launch kernels, and set the streams of libraries. See cuda.h. */
#include "cuda.h"

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
