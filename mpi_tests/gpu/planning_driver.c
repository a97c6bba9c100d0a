/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What cuDNN needs of a driver of CUDA to plan kernels that it compiles itself, where there is no
 * GPU: one that takes every kernel. All its functions fail that need a GPU.
 */
#include <stdint.h>

CUresult cuInit(unsigned flags)
{
	(void)flags;
	return CUDA_ERROR_NO_DEVICE;
}

CUresult cuDeviceGetCount(int *count)
{
	*count = 0;
	return CUDA_ERROR_NO_DEVICE;
}

CUresult cuDriverGetVersion(int *version)
{
	*version = CUDA_VERSION;
	return CUDA_SUCCESS;
}

CUresult cuGetErrorString(CUresult error, const char **text)
{
	(void)error;
	*text = "there is no GPU";
	return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *options,
			   void **values, unsigned n, CUlibraryOption *library_options,
			   void **library_values, unsigned n_library)
{
	(void)options, (void)values, (void)n;
	(void)library_options, (void)library_values, (void)n_library;
	*library = (CUlibrary)(uintptr_t)16;
	return code ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLibraryUnload(CUlibrary library)
{
	(void)library;
	return CUDA_SUCCESS;
}

CUresult cuLibraryGetKernel(CUkernel *kernel, CUlibrary library, const char *name)
{
	*kernel = (CUkernel)(uintptr_t)32;
	return library && name ? CUDA_SUCCESS : CUDA_ERROR_NOT_FOUND;
}

/* What cuDNN looks for and does not call. cuda.h has other names for some. */
int planning_fails(void);

int planning_fails(void)
{
	return CUDA_ERROR_NO_DEVICE;
}

#define MISSING(f) __asm__(".globl " #f "\n.set " #f ", planning_fails\n");
/* clang-format off */
MISSING(cuCtxGetCurrent) MISSING(cuCtxGetLimit) MISSING(cuCtxPopCurrent) MISSING(cuCtxPushCurrent)
MISSING(cuDeviceGet) MISSING(cuGetErrorName) MISSING(cuKernelGetAttribute)
MISSING(cuKernelSetAttribute) MISSING(cuLaunchCooperativeKernel) MISSING(cuLaunchKernel)
MISSING(cuLaunchKernelEx) MISSING(cuLibraryLoadFromFile) MISSING(cuLinkAddData)
MISSING(cuLinkComplete) MISSING(cuLinkCreate) MISSING(cuLinkDestroy)
MISSING(cuOccupancyMaxPotentialClusterSize) MISSING(cuStreamGetCtx)
	/* clang-format on */
