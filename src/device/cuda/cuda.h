/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda: NVIDIA's GPUs, known to src/device/cuda*.c only. Convolutions and LSTM are cuDNN's,
 * products of matrices cuBLAS's, everything else our own kernels (kernels.cu), which lie in
 * the program as bytes. No library of CUDA is linked: each is opened when a GPU is (cuda/load.c),
 * and all functions are called through the tables of struct cuda_api.
 *
 * Parameters are plain, dense float32 in the order of their shape (the first dimension slowest),
 * in memory of the GPU. So are tensors, unless the device works in float16 or bfloat16:
 * cuda/layout.c. Work is in one stream, so it is done in the order it is given; copies to the host
 * are in a second one, behind an event, and go on beside the work; samples come in a third one
 * (cuda/feed.c).
 */
#ifndef DEVICE_CUDA_H
#define DEVICE_CUDA_H

#include <cublas_v2.h>
#include <cuda.h>
#include <cudnn.h>

#include <muster/device.h>

#include "args.h"
#include "device/ref/ref.h"

/* ---- libraries: cuda/load.c ---- */

/* What is called, of each library. In CUDA's headers some of these names are macros. */
/* clang-format off */
#define CUDA_DRIVER_FUNCTIONS(F) \
	F(cuInit) F(cuGetErrorString) F(cuDriverGetVersion) F(cuDeviceGetCount) F(cuDeviceGet) \
	F(cuDeviceGetName) F(cuDeviceGetAttribute) F(cuDevicePrimaryCtxRetain) \
	F(cuDevicePrimaryCtxRelease) F(cuCtxSetCurrent) F(cuMemGetInfo) F(cuMemAlloc) \
	F(cuMemFree) F(cuMemHostAlloc) F(cuMemFreeHost) F(cuMemHostRegister) \
	F(cuMemHostUnregister) F(cuMemsetD8Async) F(cuMemcpyAsync) F(cuStreamCreate) \
	F(cuStreamDestroy) F(cuStreamSynchronize) F(cuStreamWaitEvent) F(cuEventCreate) \
	F(cuEventDestroy) F(cuEventRecord) F(cuEventQuery) F(cuEventSynchronize) \
	F(cuStreamBeginCapture) F(cuStreamEndCapture) F(cuGraphInstantiate) F(cuGraphDestroy) \
	F(cuGraphLaunch) F(cuGraphExecDestroy) \
	F(cuModuleLoadData) F(cuModuleUnload) F(cuModuleGetFunction) F(cuLaunchKernel)
#define CUDA_BLAS_FUNCTIONS(F) \
	F(cublasCreate) F(cublasDestroy) F(cublasGetStatusString) F(cublasSetStream) \
	F(cublasSetWorkspace) F(cublasSetMathMode) F(cublasSgemm) F(cublasGemmEx)
#define CUDA_DNN_FUNCTIONS(F) \
	F(cudnnCreate) F(cudnnDestroy) F(cudnnGetErrorString) F(cudnnGetVersion) \
	F(cudnnSetStream) F(cudnnCreateTensorDescriptor) F(cudnnDestroyTensorDescriptor) \
	F(cudnnSetTensor4dDescriptor) F(cudnnCreateFilterDescriptor) \
	F(cudnnDestroyFilterDescriptor) F(cudnnSetFilter4dDescriptor) \
	F(cudnnCreateConvolutionDescriptor) F(cudnnDestroyConvolutionDescriptor) \
	F(cudnnSetConvolution2dDescriptor) F(cudnnSetConvolutionGroupCount) \
	F(cudnnSetConvolutionMathType) F(cudnnGetConvolutionForwardAlgorithm_v7) \
	F(cudnnGetConvolutionBackwardDataAlgorithm_v7) \
	F(cudnnGetConvolutionBackwardFilterAlgorithm_v7) \
	F(cudnnGetConvolutionForwardWorkspaceSize) \
	F(cudnnGetConvolutionBackwardDataWorkspaceSize) \
	F(cudnnGetConvolutionBackwardFilterWorkspaceSize) F(cudnnConvolutionForward) \
	F(cudnnConvolutionBackwardData) F(cudnnConvolutionBackwardFilter) \
	F(cudnnSetTensorNdDescriptor) F(cudnnGetTensorNdDescriptor) F(cudnnCreateRNNDescriptor) \
	F(cudnnDestroyRNNDescriptor) F(cudnnSetRNNDescriptor_v8) F(cudnnCreateRNNDataDescriptor) \
	F(cudnnDestroyRNNDataDescriptor) F(cudnnSetRNNDataDescriptor) \
	F(cudnnGetRNNWeightSpaceSize) F(cudnnGetRNNWeightParams) F(cudnnGetRNNTempSpaceSizes) \
	F(cudnnRNNForward) F(cudnnRNNBackwardData_v8) F(cudnnRNNBackwardWeights_v8)
/* clang-format on */

#define CUDA_MEMBER(f) __typeof__(f) *f;
struct cuda_api {
	CUDA_DRIVER_FUNCTIONS(CUDA_MEMBER)
	CUDA_BLAS_FUNCTIONS(CUDA_MEMBER)
	CUDA_DNN_FUNCTIONS(CUDA_MEMBER)
	void *handles[3]; /* of dlopen */
};
#undef CUDA_MEMBER

/* The driver, ready to be called. MU_ERR_DEVICE with its own reason if there is none. */
enum mu_status mu_cuda_load_driver(struct cuda_api *api);
/* cuBLAS and cuDNN besides. */
enum mu_status mu_cuda_load_libraries(struct cuda_api *api);
void mu_cuda_unload(struct cuda_api *api);

/* ---- the device ---- */

/* Our kernels, in the order of their table in cuda.c. */
#define CUDA_NAME(name) CUDA_##name,
enum cuda_kernel { CUDA_KERNELS(CUDA_NAME) CUDA_N_KERNELS };
#undef CUDA_NAME

enum { CUDA_MARKS = 1024 }; /* the latest ones have an event each */

struct cuda_mirror {
	struct cuda_mirror *next;
	float *host;
	CUdeviceptr data;
	int users;
	bool pinned;
};

struct cuda_device {
	struct cuda_api api;
	int index;
	CUdevice number;
	CUcontext context;
	CUstream work, copies, inputs;
	CUstream other; /* what `work` becomes while it is recorded, and what it was meanwhile */
	CUevent worked; /* what copies wait for */
	CUevent marks[CUDA_MARKS];
	uint64_t n_marks;
	CUmodule module;
	CUfunction kernels[CUDA_N_KERNELS];
	cublasHandle_t blas;
	CUdeviceptr blas_workspace;
	cudnnHandle_t dnn;
	struct cuda_mirror *mirrors;
	int processors;                 /* of the GPU: streaming multiprocessors */
	const struct mu_device *device; /* whose operation is planned: what it is asked for */
	char name[96];
};

/* Call a function of a library; its failure climbs with the library's words. `d`: struct
 * cuda_device *. */
#define CU(d, function, ...) \
	do { \
		CUresult result_ = (d)->api.function(__VA_ARGS__); \
		if (result_ != CUDA_SUCCESS) \
			MU_FAIL(MU_ERR_DEVICE, "gpu:%d: %s: %s", (d)->index, #function, \
				mu_cuda_text(&(d)->api, result_)); \
	} while (0)
#define BLAS(d, function, ...) \
	do { \
		cublasStatus_t result_ = (d)->api.function(__VA_ARGS__); \
		if (result_ != CUBLAS_STATUS_SUCCESS) \
			MU_FAIL(MU_ERR_DEVICE, "gpu:%d: %s: %s", (d)->index, #function, \
				(d)->api.cublasGetStatusString(result_)); \
	} while (0)
#define DNN(d, function, ...) \
	do { \
		cudnnStatus_t result_ = (d)->api.function(__VA_ARGS__); \
		if (result_ != CUDNN_STATUS_SUCCESS) \
			MU_FAIL(MU_ERR_DEVICE, "gpu:%d: %s: %s", (d)->index, #function, \
				(d)->api.cudnnGetErrorString(result_)); \
	} while (0)

/* "out of memory" */
const char *mu_cuda_text(const struct cuda_api *api, CUresult result);

static inline CUdeviceptr cuda_pointer(const void *p)
{
	return (CUdeviceptr)(uintptr_t)p;
}

/*
 * Start a kernel over n elements, one or eight at a time, or for the kernels that sum over n rows
 * with a block of threads each; args is its struct of args.h.
 */
enum mu_status mu_cuda_each(struct cuda_device *d, enum cuda_kernel kernel, size_t n, void *args);
/* The same on another stream of the device than that of its work. */
enum mu_status mu_cuda_each_on(struct cuda_device *d, CUstream stream, enum cuda_kernel kernel,
			       size_t n, void *args);
enum mu_status mu_cuda_rows(struct cuda_device *d, enum cuda_kernel kernel, size_t n, void *args);
size_t mu_cuda_eights_of(size_t n); /* groups that n elements make */
enum mu_status mu_cuda_eights(struct cuda_device *d, enum cuda_kernel kernel, size_t n, void *args);
/* n bytes from one place to another, of either kind of memory, behind all work so far. */
enum mu_status mu_cuda_copy(struct cuda_device *d, void *to, const void *from, size_t nbytes);
/* Until all work given so far is done. */
enum mu_status mu_cuda_finish(struct cuda_device *d);
/* Make this device the calling thread's. Before all calls above. */
enum mu_status mu_cuda_enter(struct cuda_device *d);

/* cuda/memory.c */
extern const struct mu_device_memory mu_cuda_memory;

/* ---- layouts: cuda/layout.c ---- */

/* Of a tensor (n, c, h, w) that is not plain: of this type of args.h, and channels last. NULL:
 * plain float32. */
struct cuda_layout {
	int type;
};

const struct cuda_layout *mu_cuda_layout(enum mu_dtype dtype);
int mu_cuda_type(const struct mu_tensor *t);
size_t mu_cuda_bytes(const struct mu_tensor *t);
/* A tensor as (samples, channels, area): with channels last positions count as samples. */
struct cuda_extent {
	size_t samples, channels, area;
};
struct cuda_extent mu_cuda_extent(const struct mu_tensor *t);
/* Their type for cuDNN. */
cudnnDataType_t mu_cuda_dnn_type(const struct cuda_layout *layout);
/* Up to where another array may begin. */
size_t mu_cuda_round(size_t nbytes);

struct cuda_array {
	void *data;
	const struct cuda_layout *layout;
};
enum mu_status mu_cuda_convert(struct cuda_device *d, const struct mu_shape *shape,
			       const struct cuda_array *from, const struct cuda_array *to);
/* The same, added to what is there. */
enum mu_status mu_cuda_convert_add(struct cuda_device *d, const struct mu_shape *shape,
				   const struct cuda_array *from, const struct cuda_array *to);

/* Of struct mu_device_ops. */
enum mu_status mu_cuda_from_plain(struct mu_device *device, const struct mu_shape *shape,
				  const void *layout, const float *plain, float *out);
enum mu_status mu_cuda_to_plain(struct mu_device *device, const struct mu_shape *shape,
				const void *layout, const float *in, float *plain);
enum mu_status mu_cuda_copy_layout(struct mu_device *device, const void *layout, void **out);
void mu_cuda_free_layout(struct mu_device *device, void *layout);
uint64_t mu_cuda_hash_layout(struct mu_device *device, const void *layout);

/* cuda/update.c: slots of struct mu_device_memory */
enum mu_status mu_cuda_update(struct mu_device *device, void *stream,
			      const struct mu_device_update *u);
enum mu_status mu_cuda_add(struct mu_device *device, void *stream, const struct mu_device_sum *s);

/* launch.c: cuBLAS and cuDNN use the stream `work`, cuBLAS with the device's workspace. */
enum { CUDA_BLAS_BYTES = 32 << 20 };
enum mu_status mu_cuda_set_streams(struct cuda_device *d);

/* cuda/record.c: slots of struct mu_device_memory */
enum mu_status mu_cuda_record_begin(struct mu_device *device);
enum mu_status mu_cuda_record_end(struct mu_device *device, void **recording);
enum mu_status mu_cuda_replay(struct mu_device *device, void *recording);
void mu_cuda_free_recording(struct mu_device *device, void *recording);
/* cuda.c */
bool mu_cuda_can_record(const struct mu_op *op, bool backward);

/* cuda/feed.c: slots of struct mu_device_memory */
enum mu_status mu_cuda_feed_open(struct mu_device *device, struct mu_feed *feed, size_t nbytes,
				 const char *what);
void mu_cuda_feed_close(struct mu_device *device, struct mu_feed *feed);
enum mu_status mu_cuda_feed_send(struct mu_device *device, struct mu_feed *feed, size_t from,
				 size_t to);
enum mu_status mu_cuda_feed_take(struct mu_device *device, struct mu_feed *feed);
enum mu_status mu_cuda_lay(struct mu_device *device, const struct mu_tensor *out, const void *plain,
			   const struct mu_pixels *pixels);

/* ---- operations ---- */

/* In which layout a kind wants its inputs, and makes its outputs. */
enum cuda_inputs {
	CUDA_INPUTS_PLAIN,
	CUDA_INPUTS_ALIKE,    /* in that of the first */
	CUDA_INPUTS_OF_DTYPE, /* in that of the device's dtype */
};

/*
 * A kind of operation. It works on a view of the net's operation, whose inputs lie as it wants
 * them. Its shapes are checked by ref's plan; workspace_nbytes and scratch_nbytes are 0 when plan
 * is called, if there is one. restore: if that is less than forward. release frees
 * op->impl. host_forward, host_backward: part of it is the host's, or a library's that need not go
 * into a CUDA graph.
 */
struct cuda_kind {
	const struct mu_ref_kind *like;
	enum cuda_inputs inputs;
	bool host_forward, host_backward;
	enum mu_status (*plan)(struct cuda_device *d, struct mu_op *op);
	enum mu_status (*forward)(struct cuda_device *d, struct mu_op *op);
	enum mu_status (*restore)(struct cuda_device *d, struct mu_op *op);
	enum mu_status (*backward)(struct cuda_device *d, struct mu_op *op);
	void (*release)(struct cuda_device *d, struct mu_op *op);
};

/* The view: made when an operation is planned, set before its work, inputs converted. */
enum mu_status mu_cuda_plan_view(struct cuda_device *d, struct mu_op *op,
				 const struct cuda_kind *kind);
void mu_cuda_release_view(struct cuda_device *d, struct mu_op *op, const struct cuda_kind *kind);
enum mu_status mu_cuda_begin_view(struct cuda_device *d, struct mu_op *op, struct mu_op **view);
/* Gradients of inputs that were converted. */
enum mu_status mu_cuda_end_backward(struct cuda_device *d, struct mu_op *op);

extern const struct cuda_kind mu_cuda_convolution;
extern const struct cuda_kind mu_cuda_fully_connected;
extern const struct cuda_kind mu_cuda_activation_kind;
extern const struct cuda_kind mu_cuda_pooling;
extern const struct cuda_kind mu_cuda_flatten;
extern const struct cuda_kind mu_cuda_dropout;
extern const struct cuda_kind mu_cuda_batch_norm;
extern const struct cuda_kind mu_cuda_lrn;
extern const struct cuda_kind mu_cuda_sum;
extern const struct cuda_kind mu_cuda_concat;
extern const struct cuda_kind mu_cuda_split;
extern const struct cuda_kind mu_cuda_softmax;
extern const struct cuda_kind mu_cuda_embedding;
extern const struct cuda_kind mu_cuda_lstm;
extern const struct cuda_kind mu_cuda_custom;

/* ---- what several kinds use: cuda/dense.c ---- */

/* c (rows, columns) = keep c + a b, each one row after the other: a (rows, inner), or (inner, rows)
 * if it is to be transposed; b (inner, columns), or (columns, inner). */
struct cuda_product {
	const float *a, *b;
	float *c;
	bool transpose_a, transpose_b;
	size_t rows, columns, inner;
	float keep; /* 0: c is not read */
};
enum mu_status mu_cuda_multiply(struct cuda_device *d, const struct cuda_product *p);

/* The kernels' number of it; NULL: CUDA_LINEAR. */
int mu_cuda_activation(const struct mu_activation *activation);
/* To a convolution's or a fully connected layer's output: bias and activation, if there are. */
enum mu_status mu_cuda_add_bias(struct cuda_device *d, struct mu_op *op);
/* room: as many bytes as mu_cuda_sums_bytes says. */
enum mu_status mu_cuda_bias_gradient(struct cuda_device *d, struct mu_op *op, void *room);
/* The gradient of the output becomes the one in front of its fused activation. */
enum mu_status mu_cuda_undo_activation(struct cuda_device *d, struct mu_op *op);

/* ---- sums over channels that lie last: cuda/norm.c ---- */

/* Room for parts of the sums; 0 for a tensor that is plain. */
size_t mu_cuda_sums_bytes(const struct cuda_device *d, const struct mu_tensor *t);
/* Make these parts. args has what is to be summed; nothing is done where t is plain. */
enum mu_status mu_cuda_partial_sums(struct cuda_device *d, const struct mu_tensor *t,
				    struct cuda_partial_sums *args, void *room,
				    struct cuda_lanes *lanes);

/* The bytes of kernels.cu, compiled; made by the makefile. */
extern const unsigned char mu_cuda_kernels[];

#endif
