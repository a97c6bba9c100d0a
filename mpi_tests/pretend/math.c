/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pretended cuBLAS and cuDNN, of gpu.c's GPUs: products and convolutions by their plain
 * formulas, in double precision, each when its stream comes to it (convolution.c); LSTM is in
 * rnn.c, cuDNN's graphs are in graph.c. Who passes what the real ones do not take (workspace of
 * another size, tensors of two layouts, types without tensor cores) is told.
 */
#include <stdint.h>
#include <string.h>

#include "pretend.h"

/* The stream of a handle of either library; handles are numbers of devices from 1 on. */
enum { MAX_HANDLES = 8 };
static CUstream streams[MAX_HANDLES];
static cublasMath_t modes[MAX_HANDLES];

CUstream pretend_stream(const void *handle)
{
	return streams[(uintptr_t)handle - 1];
}

/* ---- cuBLAS ---- */

cublasStatus_t cublasCreate(cublasHandle_t *h)
{
	*h = (cublasHandle_t)(uintptr_t)(1 + pretend_device());
	return 0;
}
cublasStatus_t cublasDestroy(cublasHandle_t h)
{
	(void)h;
	return 0;
}
cublasStatus_t cublasGetProperty(libraryPropertyType which, int *v)
{
	NEED(which == MAJOR_VERSION);
	*v = (int)pretend_setting("PRETEND_CUDNN_FOR", 13000) / 1000;
	return 0;
}
cublasStatus_t cublasSetStream(cublasHandle_t h, cudaStream_t s)
{
	streams[(uintptr_t)h - 1] = (CUstream)s;
	return 0;
}
cublasStatus_t cublasSetWorkspace(cublasHandle_t h, void *p, size_t n)
{
	(void)h;
	(void)p;
	(void)n;
	return 0;
}
cublasStatus_t cublasSetMathMode(cublasHandle_t h, cublasMath_t m)
{
	modes[(uintptr_t)h - 1] = m;
	return 0;
}
const char *cublasGetStatusString(cublasStatus_t s)
{
	(void)s;
	return "pretended";
}

struct gemm {
	const void *a, *b;
	void *c;
	float alpha, beta;
	int ta, tb, m, n, k, lda, ldb, ldc;
	int type;     /* that factors are rounded to */
	int tf32;     /* or to this one */
	int stored;   /* in memory */
	int stored_c; /* the result */
	int count;    /* products, these many elements apart: */
	long long step_a, step_b, step_c;
};

static double rounded(const struct gemm *g, float v)
{
	float one;

	if (g->tf32)
		return pretend_tf32(v);
	set_number(&one, g->type, 0, v);
	return (double)number_at(&one, g->type, 0);
}

static double product_at(const struct gemm *g, int batch, int i, int j)
{
	const size_t a = (size_t)(batch * g->step_a), b = (size_t)(batch * g->step_b);
	double sum = 0;

	for (int l = 0; l < g->k; l++)
		sum += rounded(g, number_at(g->a, g->stored,
					    a + (g->ta ? (size_t)i * g->lda + l
						       : (size_t)l * g->lda + i))) *
		       rounded(g, number_at(g->b, g->stored,
					    b + (g->tb ? (size_t)l * g->ldb + j
						       : (size_t)j * g->ldb + l)));
	return sum;
}

static void run_one_gemm(const struct gemm *g, int batch)
{
	for (int j = 0; j < g->n; j++)
		for (int i = 0; i < g->m; i++) {
			const size_t at = (size_t)(batch * g->step_c) + (size_t)j * g->ldc + i;
			const double kept = g->beta != 0 ? number_at(g->c, g->stored_c, at) : 0;

			set_number(g->c, g->stored_c, at,
				   (float)(g->alpha * product_at(g, batch, i, j) +
					   g->beta * kept));
		}
}

static int run_gemm(struct pretend_work *w)
{
	struct gemm g;

	memcpy(&g, w->args, sizeof g);
	for (int batch = 0; batch < g.count; batch++)
		run_one_gemm(&g, batch);
	return 1;
}

static struct pretend_cost cost_of_gemm(const struct gemm *g)
{
	const double m = g->m, n = g->n, k = g->k, size = g->stored == CUDA_FLOAT32 ? 4 : 2;
	const double result = m * n * (g->stored_c == CUDA_FLOAT32 ? 4 : 2);

	return (struct pretend_cost){.name = g->tf32 ? "cuBLAS, TF32" : "cuBLAS",
				     .read = g->count * ((m * k + k * n) * size +
							 (g->beta != 0 ? result : 0)),
				     .written = g->count * result,
				     .operations = g->count * 2 * m * n * k,
				     .half = g->type != CUDA_FLOAT32 || g->stored != CUDA_FLOAT32,
				     .known = 1};
}

static int type_of(cudaDataType type)
{
	return type == CUDA_R_16F    ? CUDA_FLOAT16
	       : type == CUDA_R_16BF ? CUDA_BFLOAT16
				     : CUDA_FLOAT32;
}

/* Also by the handle's mode, where the call leaves it open. */
static int is_tf32(cublasHandle_t h, cudaDataType type, cublasComputeType_t compute)
{
	const int allowed = modes[(uintptr_t)h - 1] == CUBLAS_TF32_TENSOR_OP_MATH;

	NEED(compute != CUBLAS_COMPUTE_32F_FAST_TF32 || allowed);
	return type == CUDA_R_32F && (compute == CUBLAS_COMPUTE_32F_FAST_TF32 ||
				      (compute == CUBLAS_COMPUTE_32F && allowed));
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t h, cublasOperation_t ta,
					  cublasOperation_t tb, int m, int n, int k,
					  const void *alpha, const void *a, cudaDataType at,
					  int lda, long long step_a, const void *b, cudaDataType bt,
					  int ldb, long long step_b, const void *beta, void *c,
					  cudaDataType ct, int ldc, long long step_c, int count,
					  cublasComputeType_t compute, cublasGemmAlgo_t algorithm)
{
	struct gemm g = {.a = a,
			 .b = b,
			 .c = c,
			 .alpha = *(const float *)alpha,
			 .beta = *(const float *)beta,
			 .ta = ta != CUBLAS_OP_N,
			 .tb = tb != CUBLAS_OP_N,
			 .m = m,
			 .n = n,
			 .k = k,
			 .lda = lda,
			 .ldb = ldb,
			 .ldc = ldc,
			 .type = compute == CUBLAS_COMPUTE_32F_FAST_16F    ? CUDA_FLOAT16
				 : compute == CUBLAS_COMPUTE_32F_FAST_16BF ? CUDA_BFLOAT16
									   : CUDA_FLOAT32,
			 .tf32 = is_tf32(h, at, compute),
			 .stored = type_of(at),
			 .stored_c = type_of(ct),
			 .count = count,
			 .step_a = step_a,
			 .step_b = step_b,
			 .step_c = step_c};
	struct pretend_work w = {.run = run_gemm};

	(void)algorithm;
	NEED(bt == at && (ct == at || ct == CUDA_R_32F));
	NEED(at == CUDA_R_32F || compute == CUBLAS_COMPUTE_32F);
	NEED(m > 0 && n > 0 && k > 0 && count > 0);
	NEED(lda >= (g.ta ? k : m) && ldb >= (g.tb ? n : k) && ldc >= m);
	NEED(count == 1 || step_c >= (long long)(n - 1) * ldc + m);
	if (pretend_launch())
		return CUBLAS_STATUS_EXECUTION_FAILED;
	memcpy(w.args, &g, sizeof g);
	w.cost = cost_of_gemm(&g);
	pretend_put(pretend_stream(h), w);
	return 0;
}
cublasStatus_t cublasGemmEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m,
			    int n, int k, const void *alpha, const void *a, cudaDataType at,
			    int lda, const void *b, cudaDataType bt, int ldb, const void *beta,
			    void *c, cudaDataType ct, int ldc, cublasComputeType_t compute,
			    cublasGemmAlgo_t algorithm)
{
	NEED(ct == at);
	return cublasGemmStridedBatchedEx(h, ta, tb, m, n, k, alpha, a, at, lda, 0, b, bt, ldb, 0,
					  beta, c, ct, ldc, 0, 1, compute, algorithm);
}
cublasStatus_t cublasSgemm(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m,
			   int n, int k, const float *alpha, const float *a, int lda,
			   const float *b, int ldb, const float *beta, float *c, int ldc)
{
	return cublasGemmEx(h, ta, tb, m, n, k, alpha, a, CUDA_R_32F, lda, b, CUDA_R_32F, ldb, beta,
			    c, CUDA_R_32F, ldc, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
}

/* ---- cuDNN: descriptors ---- */

struct cudnnFilterStruct {
	struct cudnnTensorStruct like;
};

cudnnStatus_t cudnnCreate(cudnnHandle_t *h)
{
	*h = (cudnnHandle_t)(uintptr_t)(1 + pretend_device());
	return 0;
}
cudnnStatus_t cudnnDestroy(cudnnHandle_t h)
{
	(void)h;
	return 0;
}
cudnnStatus_t cudnnSetStream(cudnnHandle_t h, cudaStream_t s)
{
	/* Another one is cuBLAS's, which is of this device. */
	NEED(!pretend_stream(h) || pretend_stream(h) == (CUstream)s);
	streams[(uintptr_t)h - 1] = (CUstream)s;
	return 0;
}
const char *cudnnGetErrorString(cudnnStatus_t s)
{
	(void)s;
	return "pretended";
}
size_t cudnnGetVersion(void)
{
	return (size_t)pretend_setting("PRETEND_CUDNN", 91900);
}
size_t cudnnGetCudartVersion(void)
{
	return (size_t)pretend_setting("PRETEND_CUDNN_FOR", 13000);
}

#define DESCRIPTOR(name, type) \
	cudnnStatus_t cudnnCreate##name(type *out) \
	{ \
		*out = calloc(1, sizeof **out); \
		return 0; \
	} \
	cudnnStatus_t cudnnDestroy##name(type d) \
	{ \
		free(d); \
		return 0; \
	}
DESCRIPTOR(TensorDescriptor, cudnnTensorDescriptor_t)
DESCRIPTOR(FilterDescriptor, cudnnFilterDescriptor_t)
DESCRIPTOR(ConvolutionDescriptor, cudnnConvolutionDescriptor_t)

/* N, C, H, W, depth of (n, c, space...) */
static struct cudnnTensorStruct tensor_like(cudnnTensorFormat_t format, cudnnDataType_t type,
					    int n, const int *dims)
{
	return (struct cudnnTensorStruct){
		format,
		type,
		{dims[0], dims[1], dims[n - 2], dims[n - 1], n == 5 ? dims[2] : 1},
		.n_dims = n};
}
cudnnStatus_t cudnnSetTensorNdDescriptorEx(cudnnTensorDescriptor_t d, cudnnTensorFormat_t format,
					   cudnnDataType_t type, int n, const int *dims)
{
	NEED(n == 4 || n == 5);
	*d = tensor_like(format, type, n, dims);
	return 0;
}
cudnnStatus_t cudnnSetTensorNdDescriptor(cudnnTensorDescriptor_t d, cudnnDataType_t type, int n,
					 const int *dims, const int *strides)
{
	NEED(n == 3 && dims[0] > 0 && dims[1] > 0 && dims[2] > 0);
	*d = (struct cudnnTensorStruct){.type = type, .n_dims = n};
	memcpy(d->n, dims, 3 * sizeof *dims);
	memcpy(d->strides, strides, 3 * sizeof *strides);
	return 0;
}
cudnnStatus_t cudnnGetTensorNdDescriptor(const cudnnTensorDescriptor_t d, int wanted,
					 cudnnDataType_t *type, int *n, int *dims, int *strides)
{
	NEED(wanted == 3 && d->n_dims == 3);
	*type = d->type;
	*n = d->n_dims;
	memcpy(dims, d->n, 3 * sizeof *dims);
	memcpy(strides, d->strides, 3 * sizeof *strides);
	return 0;
}
cudnnStatus_t cudnnSetFilterNdDescriptor(cudnnFilterDescriptor_t d, cudnnDataType_t type,
					 cudnnTensorFormat_t format, int n, const int *dims)
{
	NEED(n == 4 || n == 5);
	d->like = tensor_like(format, type, n, dims);
	return 0;
}
cudnnStatus_t cudnnSetConvolutionNdDescriptor(cudnnConvolutionDescriptor_t d, int n, const int *pad,
					      const int *stride, const int *dilation,
					      cudnnConvolutionMode_t mode, cudnnDataType_t compute)
{
	const int h = n - 2, w = n - 1;

	NEED(mode == CUDNN_CROSS_CORRELATION && compute == CUDNN_DATA_FLOAT && (n == 2 || n == 3));
	*d = (struct cudnnConvolutionStruct){{pad[h], pad[w], n == 3 ? pad[0] : 0},
					     {stride[h], stride[w], n == 3 ? stride[0] : 1},
					     {dilation[h], dilation[w], n == 3 ? dilation[0] : 1},
					     1,
					     compute,
					     CUDNN_DEFAULT_MATH};
	return 0;
}
cudnnStatus_t cudnnSetConvolutionGroupCount(cudnnConvolutionDescriptor_t d, int groups)
{
	d->groups = groups;
	return 0;
}
cudnnStatus_t cudnnSetConvolutionMathType(cudnnConvolutionDescriptor_t d, cudnnMathType_t math)
{
	d->math = math;
	return 0;
}

/* ---- cuDNN: algorithms, of which the first one cannot be had; PRETEND_NO_LIST: only that one is
 * listed ---- */

enum { ROOM = 1000 };

#define FIND(which, kind, a, b, c, refused, taken) \
	cudnnStatus_t cudnnGetConvolution##which##Algorithm_v7( \
		cudnnHandle_t h, const a x, const b y, const cudnnConvolutionDescriptor_t d, \
		const c z, int n, int *found, cudnnConvolution##kind##AlgoPerf_t *out) \
	{ \
		const cudnnConvolution##kind##AlgoPerf_t all[] = { \
			{.algo = (refused), .status = CUDNN_STATUS_NOT_SUPPORTED}, \
			{.algo = (taken), \
			 .memory = ROOM, \
			 .determinism = CUDNN_DETERMINISTIC, \
			 .mathType = CUDNN_TENSOR_OP_MATH}}; \
		(void)h, (void)x, (void)y, (void)d, (void)z; \
		*found = n < 2 || getenv("PRETEND_NO_LIST") ? 1 : 2; \
		memcpy(out, all, (size_t)*found * sizeof *out); \
		return 0; \
	} \
	cudnnStatus_t cudnnGetConvolution##which##WorkspaceSize( \
		cudnnHandle_t h, const a x, const b y, const cudnnConvolutionDescriptor_t d, \
		const c z, cudnnConvolution##kind##Algo_t algorithm, size_t *nbytes) \
	{ \
		(void)h, (void)x, (void)y, (void)d, (void)z; \
		*nbytes = ROOM; \
		return algorithm == (taken) ? 0 : CUDNN_STATUS_NOT_SUPPORTED; \
	}
FIND(Forward, Fwd, cudnnTensorDescriptor_t, cudnnFilterDescriptor_t, cudnnTensorDescriptor_t,
     CUDNN_CONVOLUTION_FWD_ALGO_FFT, CUDNN_CONVOLUTION_FWD_ALGO_IMPLICIT_PRECOMP_GEMM)
FIND(BackwardData, BwdData, cudnnFilterDescriptor_t, cudnnTensorDescriptor_t,
     cudnnTensorDescriptor_t, CUDNN_CONVOLUTION_BWD_DATA_ALGO_0, CUDNN_CONVOLUTION_BWD_DATA_ALGO_1)
FIND(BackwardFilter, BwdFilter, cudnnTensorDescriptor_t, cudnnTensorDescriptor_t,
     cudnnFilterDescriptor_t, CUDNN_CONVOLUTION_BWD_FILTER_ALGO_0,
     CUDNN_CONVOLUTION_BWD_FILTER_ALGO_1)

/* ---- cuDNN: convolutions ---- */

static cudnnStatus_t put(cudnnHandle_t h, const struct pretend_convolution *k, void *room,
			 size_t nbytes, const void *alpha, const void *beta)
{
	const struct cudnnTensorStruct *x = &k->x.like, *f = &k->w.like, *y = &k->y.like;
	struct pretend_convolution own = *k;

	NEED(*(const float *)alpha == 1 && nbytes == ROOM);
	NEED(x->format == f->format && x->format == y->format);
	NEED(x->type == f->type && x->type == y->type);
	if (x->type == CUDNN_DATA_FLOAT)
		NEED(k->shape.math == CUDNN_FMA_MATH || k->shape.math == CUDNN_DEFAULT_MATH);
	else
		NEED(k->shape.math == CUDNN_TENSOR_OP_MATH);
	NEED(x->n[1] == f->n[1] * k->shape.groups && y->n[1] == f->n[0] && x->n[0] == y->n[0]);
	NEED(*(const float *)beta == 0 || *(const float *)beta == 1);
	own.adds = *(const float *)beta == 1;
	return pretend_put_convolution(h, &own, room, nbytes);
}

cudnnStatus_t cudnnConvolutionForward(cudnnHandle_t h, const void *alpha,
				      const cudnnTensorDescriptor_t xd, const void *x,
				      const cudnnFilterDescriptor_t wd, const void *w,
				      const cudnnConvolutionDescriptor_t d,
				      cudnnConvolutionFwdAlgo_t algorithm, void *room,
				      size_t nbytes, const void *beta,
				      const cudnnTensorDescriptor_t yd, void *y)
{
	(void)algorithm;
	return put(h,
		   &(struct pretend_convolution){{*xd, (void *)(uintptr_t)x},
					 {wd->like, (void *)(uintptr_t)w},
					 {*yd, y},
					 *d,
					 PRETEND_OUT_Y},
		   room, nbytes, alpha, beta);
}
cudnnStatus_t cudnnConvolutionBackwardData(cudnnHandle_t h, const void *alpha,
					   const cudnnFilterDescriptor_t wd, const void *w,
					   const cudnnTensorDescriptor_t yd, const void *y,
					   const cudnnConvolutionDescriptor_t d,
					   cudnnConvolutionBwdDataAlgo_t algorithm, void *room,
					   size_t nbytes, const void *beta,
					   const cudnnTensorDescriptor_t xd, void *x)
{
	(void)algorithm;
	return put(h,
		   &(struct pretend_convolution){{*xd, x},
					 {wd->like, (void *)(uintptr_t)w},
					 {*yd, (void *)(uintptr_t)y},
					 *d,
					 PRETEND_OUT_X},
		   room, nbytes, alpha, beta);
}
cudnnStatus_t cudnnConvolutionBackwardFilter(cudnnHandle_t h, const void *alpha,
					     const cudnnTensorDescriptor_t xd, const void *x,
					     const cudnnTensorDescriptor_t yd, const void *y,
					     const cudnnConvolutionDescriptor_t d,
					     cudnnConvolutionBwdFilterAlgo_t algorithm, void *room,
					     size_t nbytes, const void *beta,
					     const cudnnFilterDescriptor_t wd, void *w)
{
	(void)algorithm;
	return put(h,
		   &(struct pretend_convolution){{*xd, (void *)(uintptr_t)x},
					 {wd->like, w},
					 {*yd, (void *)(uintptr_t)y},
					 *d,
					 PRETEND_OUT_W},
		   room, nbytes, alpha, beta);
}
