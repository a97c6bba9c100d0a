/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pretended cuBLAS and cuDNN, of gpu.c's GPUs: products and convolutions by their plain
 * formulas, in double precision, each when its stream comes to it; LSTM is in rnn.c. Who
 * passes what the real ones do not take (workspace of another size, tensors of two layouts, types
 * without tensor cores) is told.
 */
#include <stdint.h>
#include <string.h>

#include "pretend.h"

/* The stream of a handle of either library; handles are numbers of devices from 1 on. */
enum { MAX_HANDLES = 8 };
static CUstream streams[MAX_HANDLES];

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
	(void)h;
	(void)m;
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
	int type;   /* that factors are rounded to */
	int stored; /* in memory */
};

static double rounded(int type, float v)
{
	float one;

	set_number(&one, type, 0, v);
	return (double)number_at(&one, type, 0);
}

static double product_at(const struct gemm *g, int i, int j)
{
	double sum = 0;

	for (int l = 0; l < g->k; l++)
		sum += rounded(g->type, number_at(g->a, g->stored,
						  g->ta ? (size_t)i * g->lda + l
							: (size_t)l * g->lda + i)) *
		       rounded(g->type, number_at(g->b, g->stored,
						  g->tb ? (size_t)l * g->ldb + j
							: (size_t)j * g->ldb + l));
	return sum;
}

static int run_gemm(struct pretend_work *w)
{
	struct gemm g;

	memcpy(&g, w->args, sizeof g);
	for (int j = 0; j < g.n; j++)
		for (int i = 0; i < g.m; i++) {
			const size_t at = (size_t)j * g.ldc + i;
			const double kept = g.beta != 0 ? number_at(g.c, g.stored, at) : 0;

			set_number(g.c, g.stored, at,
				   (float)(g.alpha * product_at(&g, i, j) + g.beta * kept));
		}
	return 1;
}

static struct pretend_cost cost_of_gemm(const struct gemm *g)
{
	const double m = g->m, n = g->n, k = g->k, size = g->stored == CUDA_FLOAT32 ? 4 : 2;

	return (struct pretend_cost){.name = "cuBLAS",
				     .read = (m * k + k * n + (g->beta != 0 ? m * n : 0)) * size,
				     .written = m * n * size,
				     .operations = 2 * m * n * k,
				     .half = g->type != CUDA_FLOAT32 || g->stored != CUDA_FLOAT32,
				     .known = 1};
}

cublasStatus_t cublasGemmEx(cublasHandle_t h, cublasOperation_t ta, cublasOperation_t tb, int m,
			    int n, int k, const void *alpha, const void *a, cudaDataType at,
			    int lda, const void *b, cudaDataType bt, int ldb, const void *beta,
			    void *c, cudaDataType ct, int ldc, cublasComputeType_t compute,
			    cublasGemmAlgo_t algorithm)
{
	struct gemm g = {a,
			 b,
			 c,
			 *(const float *)alpha,
			 *(const float *)beta,
			 ta != CUBLAS_OP_N,
			 tb != CUBLAS_OP_N,
			 m,
			 n,
			 k,
			 lda,
			 ldb,
			 ldc,
			 compute == CUBLAS_COMPUTE_32F_FAST_16F    ? CUDA_FLOAT16
			 : compute == CUBLAS_COMPUTE_32F_FAST_16BF ? CUDA_BFLOAT16
								   : CUDA_FLOAT32,
			 at == CUDA_R_16F    ? CUDA_FLOAT16
			 : at == CUDA_R_16BF ? CUDA_BFLOAT16
					     : CUDA_FLOAT32};
	struct pretend_work w = {.run = run_gemm};

	(void)algorithm;
	NEED(bt == at && ct == at && (at == CUDA_R_32F || compute == CUBLAS_COMPUTE_32F));
	NEED(lda >= (g.ta ? k : m) && ldb >= (g.tb ? n : k) && ldc >= m);
	if (pretend_launch())
		return CUBLAS_STATUS_EXECUTION_FAILED;
	memcpy(w.args, &g, sizeof g);
	w.cost = cost_of_gemm(&g);
	pretend_put(pretend_stream(h), w);
	return 0;
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
struct cudnnConvolutionStruct {
	int pad[2], stride[2], dilation[2], groups;
	cudnnDataType_t compute;
	cudnnMathType_t math;
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

cudnnStatus_t cudnnSetTensor4dDescriptor(cudnnTensorDescriptor_t d, cudnnTensorFormat_t format,
					 cudnnDataType_t type, int n, int c, int h, int w)
{
	*d = (struct cudnnTensorStruct){format, type, {n, c, h, w}, .n_dims = 4};
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
cudnnStatus_t cudnnSetFilter4dDescriptor(cudnnFilterDescriptor_t d, cudnnDataType_t type,
					 cudnnTensorFormat_t format, int k, int c, int r, int s)
{
	d->like = (struct cudnnTensorStruct){format, type, {k, c, r, s}, .n_dims = 4};
	return 0;
}
cudnnStatus_t cudnnSetConvolution2dDescriptor(cudnnConvolutionDescriptor_t d, int pad_h, int pad_w,
					      int u, int v, int down, int across,
					      cudnnConvolutionMode_t mode, cudnnDataType_t compute)
{
	NEED(mode == CUDNN_CROSS_CORRELATION && compute == CUDNN_DATA_FLOAT);
	*d = (struct cudnnConvolutionStruct){{pad_h, pad_w},    {u, v}, {down, across}, 1, compute,
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

struct tensor {
	struct cudnnTensorStruct like;
	void *data;
};

/* out is one of the three, and becomes the sum over all products of the other two. */
struct convolution {
	struct tensor x, w, y;
	struct cudnnConvolutionStruct shape;
	int out, adds;
};
enum { OUT_X, OUT_W, OUT_Y };

static int type_of(const struct tensor *t)
{
	return t->like.type == CUDNN_DATA_FLOAT  ? CUDA_FLOAT32
	       : t->like.type == CUDNN_DATA_HALF ? CUDA_FLOAT16
						 : CUDA_BFLOAT16;
}

static size_t place(const struct tensor *t, int n, int c, int h, int w)
{
	const int *of = t->like.n;

	if (t->like.format == CUDNN_TENSOR_NHWC)
		return (((size_t)n * of[2] + h) * of[3] + w) * of[1] + c;
	return (((size_t)n * of[1] + c) * of[2] + h) * of[3] + w;
}

static size_t count(const struct tensor *t)
{
	return (size_t)t->like.n[0] * t->like.n[1] * t->like.n[2] * t->like.n[3];
}

/* All products of an output pixel (n, c, i, j). values: by OUT_X, OUT_W and OUT_Y. */
static void add_pixel(const struct convolution *k, double *const *values, int n, int c, int i,
		      int j)
{
	const struct cudnnConvolutionStruct *s = &k->shape;
	const int *of_x = k->x.like.n, *of_w = k->w.like.n;
	const int first = c / (k->y.like.n[1] / s->groups) * of_w[1];
	double *y = values[OUT_Y] + place(&k->y, n, c, i, j);

	for (int q = 0; q < of_w[1]; q++)
		for (int r = 0; r < of_w[2]; r++)
			for (int t = 0; t < of_w[3]; t++) {
				int h = i * s->stride[0] - s->pad[0] + r * s->dilation[0];
				int v = j * s->stride[1] - s->pad[1] + t * s->dilation[1];
				double *x, *w;

				if (h < 0 || v < 0 || h >= of_x[2] || v >= of_x[3])
					continue;
				x = values[OUT_X] + place(&k->x, n, first + q, h, v);
				w = values[OUT_W] + place(&k->w, c, q, r, t);
				if (k->out == OUT_X)
					*x += *w * *y;
				else if (k->out == OUT_W)
					*w += *x * *y;
				else
					*y += *x * *w;
			}
}

static int run_convolution(struct pretend_work *work)
{
	struct convolution k;
	const struct tensor *tensors[3] = {[OUT_X] = &k.x, [OUT_W] = &k.w, [OUT_Y] = &k.y}, *out;
	double *values[3];
	const int *of = k.y.like.n;

	memcpy(&k, work->args, sizeof k);
	out = tensors[k.out];
	for (int t = 0; t < 3; t++) {
		values[t] = calloc(count(tensors[t]), sizeof *values[t]);
		for (size_t i = 0; tensors[t] != out && i < count(tensors[t]); i++)
			values[t][i] = (double)number_at(tensors[t]->data, type_of(tensors[t]), i);
	}
	for (int n = 0; n < of[0]; n++)
		for (int c = 0; c < of[1]; c++)
			for (int i = 0; i < of[2]; i++)
				for (int j = 0; j < of[3]; j++)
					add_pixel(&k, values, n, c, i, j);
	for (size_t i = 0; i < count(out); i++) {
		if (k.adds)
			values[k.out][i] += (double)number_at(out->data, type_of(out), i);
		set_number(out->data, type_of(out), i, (float)values[k.out][i]);
	}
	for (int t = 0; t < 3; t++)
		free(values[t]);
	memset(work->to, 0x7f, work->n); /* the workspace holds nothing that is needed */
	return 1;
}

static struct pretend_cost cost_of_convolution(const struct convolution *k)
{
	static const char *const names[] = {[OUT_X] = "cuDNN, data",
					    [OUT_W] = "cuDNN, weights",
					    [OUT_Y] = "cuDNN, forward"};
	const struct tensor *tensors[3] = {[OUT_X] = &k->x, [OUT_W] = &k->w, [OUT_Y] = &k->y};
	struct pretend_cost c = {.name = names[k->out], .half = type_of(&k->x) != 0, .known = 1};

	for (int t = 0; t < 3; t++) {
		const double n = (double)count(tensors[t]) * (c.half ? 2 : 4);

		c.read += t != k->out || k->adds ? n : 0;
		c.written += t == k->out ? n : 0;
	}
	c.operations = 2.0 * (double)count(&k->y) * k->w.like.n[1] * k->w.like.n[2] *
		       k->w.like.n[3];
	return c;
}

static cudnnStatus_t put(cudnnHandle_t h, const struct convolution *k, void *room, size_t nbytes,
			 const void *alpha, const void *beta)
{
	struct pretend_work w = {.run = run_convolution, .to = room, .n = nbytes};
	const struct cudnnTensorStruct *x = &k->x.like, *f = &k->w.like, *y = &k->y.like;
	struct convolution *own = (struct convolution *)(void *)w.args;

	NEED(*(const float *)alpha == 1 && nbytes == ROOM);
	NEED(x->format == f->format && x->format == y->format);
	NEED(x->type == f->type && x->type == y->type);
	NEED(x->type == CUDNN_DATA_FLOAT || k->shape.math == CUDNN_TENSOR_OP_MATH);
	NEED(x->n[1] == f->n[1] * k->shape.groups && y->n[1] == f->n[0] && x->n[0] == y->n[0]);
	NEED(*(const float *)beta == 0 || *(const float *)beta == 1);
	if (pretend_launch())
		return CUDNN_STATUS_EXECUTION_FAILED;
	memcpy(w.args, k, sizeof *k);
	own->adds = *(const float *)beta == 1;
	w.cost = cost_of_convolution(own);
	pretend_put(pretend_stream(h), w);
	return 0;
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
		   &(struct convolution){{*xd, (void *)(uintptr_t)x},
					 {wd->like, (void *)(uintptr_t)w},
					 {*yd, y},
					 *d,
					 OUT_Y},
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
		   &(struct convolution){{*xd, x},
					 {wd->like, (void *)(uintptr_t)w},
					 {*yd, (void *)(uintptr_t)y},
					 *d,
					 OUT_X},
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
		   &(struct convolution){{*xd, (void *)(uintptr_t)x},
					 {wd->like, w},
					 {*yd, (void *)(uintptr_t)y},
					 *d,
					 OUT_W},
		   room, nbytes, alpha, beta);
}
