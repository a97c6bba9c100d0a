/* SPDX-License-Identifier: Apache-2.0 */
/* Products of matrices, by cuBLAS. */
#include "device/cuda/cuda.h"

#include <limits.h>

#include <muster/base.h>

cublasMath_t mu_cuda_blas_math(const struct mu_device *device, bool is_float32)
{
	if (!is_float32)
		return CUBLAS_DEFAULT_MATH;
	return device->allow_tf32 ? CUBLAS_TF32_TENSOR_OP_MATH : CUBLAS_PEDANTIC_MATH;
}

/* In float32, but operands are rounded to the device's type, or to one with more bits, as tensor
 * cores do. */
static enum mu_status multiply_fast(struct cuda_device *d, const struct cuda_product *p, int a_row,
				    int b_row)
{
	enum mu_status st = MU_OK;
	const float one = 1;
	const cublasComputeType_t compute = d->device->dtype == MU_FLOAT16
						    ? CUBLAS_COMPUTE_32F_FAST_16F
						    : CUBLAS_COMPUTE_32F_FAST_16BF;

	BLAS(d, cublasSetMathMode, d->blas, CUBLAS_DEFAULT_MATH);
	BLAS(d, cublasGemmEx, d->blas, p->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
	     p->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, (int)p->columns, (int)p->rows,
	     (int)p->inner, &one, p->b, CUDA_R_32F, b_row, p->a, CUDA_R_32F, a_row, &p->keep, p->c,
	     CUDA_R_32F, (int)p->columns, compute, CUBLAS_GEMM_DEFAULT);
out:
	return st;
}

/* cuBLAS is column-major, these arrays are row-major: cuBLAS sees every matrix transposed, and C =
 * A B becomes C' = B' A'. */
enum mu_status mu_cuda_multiply(struct cuda_device *d, const struct cuda_product *p)
{
	enum mu_status st = MU_OK;
	const float one = 1;
	const size_t a_row = p->transpose_a ? p->rows : p->inner;
	const size_t b_row = p->transpose_b ? p->inner : p->columns;

	if (p->rows > INT_MAX || p->columns > INT_MAX || p->inner > INT_MAX)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"gpu:%d: a product of (%zu, %zu) and (%zu, %zu) is too large", d->index,
			p->rows, p->inner, p->inner, p->columns);
	if (d->device->dtype != MU_FLOAT32)
		return multiply_fast(d, p, (int)a_row, (int)b_row);
	BLAS(d, cublasSetMathMode, d->blas, mu_cuda_blas_math(d->device, true));
	BLAS(d, cublasSgemm, d->blas, p->transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N,
	     p->transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, (int)p->columns, (int)p->rows,
	     (int)p->inner, &one, p->b, (int)b_row, p->a, (int)a_row, &p->keep, p->c,
	     (int)p->columns);
out:
	return st;
}

static cudaDataType of_type(int type)
{
	return type == CUDA_FLOAT32 ? CUDA_R_32F : type == CUDA_FLOAT16 ? CUDA_R_16F : CUDA_R_16BF;
}

enum mu_status mu_cuda_multiply_many(struct cuda_device *d, const struct cuda_products *p)
{
	enum mu_status st = MU_OK;
	const bool is_float32 = p->type == CUDA_FLOAT32;
	const cudaDataType type = of_type(p->type);
	const cublasComputeType_t compute = !is_float32             ? CUBLAS_COMPUTE_32F
					    : d->device->allow_tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32
								    : CUBLAS_COMPUTE_32F_PEDANTIC;

	if (p->rows > INT_MAX || p->columns > INT_MAX || p->inner > INT_MAX || p->count > INT_MAX)
		MU_FAIL(MU_ERR_UNSUPPORTED,
			"gpu:%d: %zu products of (%zu, %zu) and (%zu, %zu) are too large", d->index,
			p->count, p->rows, p->inner, p->inner, p->columns);
	BLAS(d, cublasSetMathMode, d->blas, mu_cuda_blas_math(d->device, is_float32));
	BLAS(d, cublasGemmStridedBatchedEx, d->blas, p->b.transpose ? CUBLAS_OP_T : CUBLAS_OP_N,
	     p->a.transpose ? CUBLAS_OP_T : CUBLAS_OP_N, (int)p->columns, (int)p->rows,
	     (int)p->inner, &p->factor, p->b.data, type, (int)p->b.row, (long long)p->b.step,
	     p->a.data, type, (int)p->a.row, (long long)p->a.step, &p->keep, p->c.data,
	     of_type(p->c_type), (int)p->c.row, (long long)p->c.step, (int)p->count, compute,
	     CUBLAS_GEMM_DEFAULT);
out:
	return st;
}
