/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cuda: NVIDIA's GPUs, private to src/device/cuda. cuDNN computes convolutions and LSTM, cuBLAS
 * matrix products, Muster's own kernels (kernels/), embedded in the program as bytes, everything
 * else. A kind of operation has one file here; runtime/ is what all of them use of the driver. No
 * CUDA library is linked: all are opened when a GPU is opened (runtime/load.c), and all functions
 * are called through the tables of struct cuda_api.
 *
 * Parameters are plain, dense float32 in the order of their shape (the first dimension slowest), in
 * GPU memory. So are tensors, unless the device works in float16 or bfloat16: see layout.c.
 * One stream does the work, in the order of submission. A second stream copies to the host after an
 * event, concurrently with later work. A third one copies samples to the GPU (runtime/feed.c).
 */
#ifndef DEVICE_CUDA_H
#define DEVICE_CUDA_H

#include <cublas_v2.h>
#include <cuda.h>
#include <cudnn.h>

#include "device/op.h"
#include "device/cuda/kernels/args.h"
#include "device/ref/ref.h"

/* ---- libraries: runtime/load.c ---- */

/* Functions used from each library. In CUDA's headers some of these names are macros. */
/* clang-format off */
#define CUDA_DRIVER_FUNCTIONS(F) \
	F(cuInit) F(cuGetErrorString) F(cuDriverGetVersion) F(cuDeviceGetCount) F(cuDeviceGet) \
	F(cuDeviceGetName) F(cuDeviceGetPCIBusId) F(cuDeviceGetAttribute) \
	F(cuDevicePrimaryCtxRetain) \
	F(cuDevicePrimaryCtxRelease) F(cuDeviceCanAccessPeer) F(cuCtxEnablePeerAccess) \
	F(cuCtxSetCurrent) F(cuMemGetInfo) F(cuMemAlloc) \
	F(cuMemFree) F(cuMemHostAlloc) F(cuMemFreeHost) F(cuMemHostRegister) \
	F(cuMemHostUnregister) F(cuMemsetD8Async) F(cuMemcpyAsync) F(cuStreamCreate) \
	F(cuStreamDestroy) F(cuStreamSynchronize) F(cuStreamWaitEvent) F(cuEventCreate) \
	F(cuEventDestroy) F(cuEventRecord) F(cuEventQuery) F(cuEventSynchronize) \
	F(cuStreamBeginCapture) F(cuStreamEndCapture) F(cuGraphInstantiate) F(cuGraphDestroy) \
	F(cuGraphLaunch) F(cuGraphExecDestroy) \
	F(cuModuleLoadData) F(cuModuleUnload) F(cuModuleGetFunction) F(cuLaunchKernel)
#define CUDA_BLAS_FUNCTIONS(F) \
	F(cublasCreate) F(cublasDestroy) F(cublasGetProperty) F(cublasGetStatusString) \
	F(cublasSetStream) \
	F(cublasSetWorkspace) F(cublasSetMathMode) F(cublasSgemm) F(cublasGemmEx) \
	F(cublasGemmStridedBatchedEx)
#define CUDA_DNN_FUNCTIONS(F) \
	F(cudnnCreate) F(cudnnDestroy) F(cudnnGetErrorString) F(cudnnGetVersion) \
	F(cudnnGetCudartVersion) \
	F(cudnnSetStream) F(cudnnCreateTensorDescriptor) F(cudnnDestroyTensorDescriptor) \
	F(cudnnSetTensorNdDescriptorEx) F(cudnnCreateFilterDescriptor) \
	F(cudnnDestroyFilterDescriptor) F(cudnnSetFilterNdDescriptor) \
	F(cudnnCreateConvolutionDescriptor) F(cudnnDestroyConvolutionDescriptor) \
	F(cudnnSetConvolutionNdDescriptor) F(cudnnSetConvolutionGroupCount) \
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
	F(cudnnRNNForward) F(cudnnRNNBackwardData_v8) F(cudnnRNNBackwardWeights_v8) \
	F(cudnnBackendCreateDescriptor) F(cudnnBackendDestroyDescriptor) \
	F(cudnnBackendSetAttribute) F(cudnnBackendGetAttribute) F(cudnnBackendFinalize) \
	F(cudnnBackendExecute)
/* clang-format on */

#define CUDA_MEMBER(f) __typeof__(f) *f;
struct cuda_api {
	CUDA_DRIVER_FUNCTIONS(CUDA_MEMBER)
	CUDA_BLAS_FUNCTIONS(CUDA_MEMBER)
	CUDA_DNN_FUNCTIONS(CUDA_MEMBER)
	void *handles[3]; /* of dlopen */
};
#undef CUDA_MEMBER

/* Open the driver. MU_ERR_DEVICE with the driver's reason if that fails. */
enum mu_status mu_cuda_load_driver(struct cuda_api *api);
/* Open cuBLAS and cuDNN, of versions that the driver supports. */
enum mu_status mu_cuda_load_libraries(struct cuda_api *api);
/* Hold NVRTC open, where it is found, until the process ends: cuDNN opens and closes it for each
 * plan of its graph API, which takes 20 ms. */
void mu_cuda_keep_nvrtc(const struct cuda_api *api);
void mu_cuda_unload(struct cuda_api *api);

/* ---- the device ---- */

/* The kernels, in the order of their table in cuda.c. */
#define CUDA_NAME(name) CUDA_##name,
enum cuda_kernel { CUDA_KERNELS(CUDA_NAME) CUDA_N_KERNELS };
#undef CUDA_NAME

enum { CUDA_MARKS = 1024 }; /* the latest marks have an event each */

struct cuda_mirror {
	struct cuda_mirror *next;
	float *host;
	CUdeviceptr data;
	size_t nbytes;
	int users;
	bool pinned;
};

struct cuda_device {
	struct cuda_api api;
	int index;
	CUdevice number;
	CUcontext context;
	CUstream work, copies, inputs;
	CUstream other; /* exchanged with `work` during a recording */
	CUevent worked; /* copies wait for it */
	CUevent marks[CUDA_MARKS];
	uint64_t n_marks;
	CUmodule module;
	CUfunction kernels[CUDA_N_KERNELS];
	struct {
		bool tried;
		void *gpu; /* NVML's */
		int (*read)(void *gpu, unsigned long long *millijoules);
	} energy; /* read NULL: there is no counter */
	cublasHandle_t blas;
	CUdeviceptr blas_workspace;
	CUdeviceptr ended; /* counters for batch-norms: kernels of `work` run one by one */
	cudnnHandle_t dnn;
	struct fused_plan *fused_plans; /* of attention: attention/attention.h */
	bool tells_products;            /* a warning said why attention is not fused */
	size_t taken; /* bytes of its memory in use when it was opened, by other processes and the
			 driver */
	struct cuda_mirror *mirrors;
	struct cuda_device *next;       /* of the process's open GPUs: runtime/share.c */
	int processors;                 /* of the GPU: streaming multiprocessors */
	const struct mu_device *device; /* device of the operation being planned, for its settings
					   */
	char name[96];
};

/*
 * Call a function of a library; an error carries the library's message, and what to do. `d`: struct
 * cuda_device *.
 */
#define CU(d, function, ...) \
	do { \
		CUresult result_ = (d)->api.function(__VA_ARGS__); \
		if (result_ != CUDA_SUCCESS) \
			MU_TRY(mu_cuda_failed((d), #function, result_)); \
	} while (0)
#define BLAS(d, function, ...) \
	do { \
		cublasStatus_t result_ = (d)->api.function(__VA_ARGS__); \
		if (result_ != CUBLAS_STATUS_SUCCESS) \
			MU_TRY(mu_cuda_library_failed((d), #function, \
						      (d)->api.cublasGetStatusString(result_))); \
	} while (0)
#define DNN(d, function, ...) \
	do { \
		cudnnStatus_t result_ = (d)->api.function(__VA_ARGS__); \
		if (result_ != CUDNN_STATUS_SUCCESS) \
			MU_TRY(mu_cuda_library_failed((d), #function, \
						      (d)->api.cudnnGetErrorString(result_))); \
	} while (0)

/* runtime/errors.c: report an error of the driver, or of cuBLAS or cuDNN, whose cause may be the
 * driver's. */
enum mu_status mu_cuda_failed(const struct cuda_device *d, const char *function, CUresult result);
enum mu_status mu_cuda_library_failed(const struct cuda_device *d, const char *function,
				      const char *text);
/* "out of memory" */
const char *mu_cuda_text(const struct cuda_api *api, CUresult result);

static inline CUdeviceptr cuda_pointer(const void *p)
{
	return (CUdeviceptr)(uintptr_t)p;
}

/* Launch a kernel over n elements, one or eight at a time, or for kernels that sum over n rows with
 * one block of threads per row; args is its struct of args.h. */
enum mu_status mu_cuda_each(struct cuda_device *d, enum cuda_kernel kernel, size_t n, void *args);
/* The same on another stream of the device. */
enum mu_status mu_cuda_each_on(struct cuda_device *d, CUstream stream, enum cuda_kernel kernel,
			       size_t n, void *args);
enum mu_status mu_cuda_rows(struct cuda_device *d, enum cuda_kernel kernel, size_t n, void *args);
size_t mu_cuda_eights_of(size_t n); /* number of groups in n elements */
enum mu_status mu_cuda_eights(struct cuda_device *d, enum cuda_kernel kernel, size_t n, void *args);
/* One warp of threads per row. */
enum mu_status mu_cuda_warps(struct cuda_device *d, enum cuda_kernel kernel, size_t n, void *args);
/* Copy n bytes between any two kinds of memory, after all work so far. */
enum mu_status mu_cuda_copy(struct cuda_device *d, void *to, const void *from, size_t nbytes);
/* Wait for all work submitted so far. */
enum mu_status mu_cuda_finish(struct cuda_device *d);
/* Make this device current in the calling thread. Before all calls above. */
enum mu_status mu_cuda_enter(struct cuda_device *d);

/*
 * runtime/share.c: what GPUs of a process share. Copies between two of them go directly where they
 * can: _join when a GPU was opened, _leave before its context is released.
 */
enum mu_status mu_cuda_join(struct cuda_device *d);
void mu_cuda_leave(struct cuda_device *d);
/*
 * Pin an array of the host, or count one more user of it, by its address and size; false: it cannot
 * be pinned, which makes copies slower. The array stays pinned until its last user has gone:
 * another GPU's copy may be under way.
 */
bool mu_cuda_pin(struct cuda_device *d, void *host, size_t nbytes);
void mu_cuda_unpin(struct cuda_device *d, void *host, size_t nbytes);

/* runtime/energy.c */
bool mu_cuda_energy(struct mu_device *device, double *joules);
void mu_cuda_identify(struct mu_device *device, char *text, size_t nbytes);
/* runtime/limits.c */
enum mu_status mu_cuda_measure(struct mu_device *device, struct mu_device_limits *limits);

/* runtime/memory.c; _reserve: zeroed memory of the GPU, of which an error says how much is
 * missing. */
enum mu_status mu_cuda_reserve(struct cuda_device *d, CUdeviceptr *out, size_t nbytes,
			       const char *what);
extern const struct mu_device_memory mu_cuda_memory;

/* ---- layouts: layout.c ---- */

/* Layout of a tensor (n, c, space...) that is not plain: this type of args.h, channels last. NULL:
 * plain float32. */
struct cuda_layout {
	int type;
	bool padded; /* the channels of a position take a multiple of eight places */
};

const struct cuda_layout *mu_cuda_layout(enum mu_dtype dtype);
int mu_cuda_type(const struct mu_tensor *t);
size_t mu_cuda_bytes(const struct mu_tensor *t);
/* Pad a tensor that is not plain; with channels last: places of a position. */
void mu_cuda_pad_rows(struct mu_tensor *t);
size_t mu_cuda_row(const struct mu_tensor *t);
/* Not plain, and each position begins at a multiple of eight numbers. */
bool mu_cuda_in_rows(const struct mu_tensor *t);
/* A tensor as (samples, channels, area): with channels last positions count as samples. */
struct cuda_extent {
	size_t samples, channels, area;
};
struct cuda_extent mu_cuda_extent(const struct mu_tensor *t);
/* Contiguous channels in groups of eight 16-bit numbers: kernels with float16 or bfloat16 in their
 * names are for these. The kernel for the tensor's type, given float16's. */
bool mu_cuda_in_groups(const struct mu_tensor *t);
enum cuda_kernel mu_cuda_of_type(const struct mu_tensor *t, enum cuda_kernel float16);
/* Their type for cuDNN. */
cudnnDataType_t mu_cuda_dnn_type(const struct cuda_layout *layout);
/* How cuDNN may multiply them: half types on tensor cores, float32 there only as TF32, where the
 * device allows it. */
cudnnMathType_t mu_cuda_dnn_math(const struct cuda_device *d, const struct cuda_layout *layout);
/* Round up to the alignment of arrays. */
size_t mu_cuda_round(size_t nbytes);

struct cuda_array {
	void *data;
	const struct cuda_layout *layout;
};
enum mu_status mu_cuda_convert(struct cuda_device *d, const struct mu_shape *shape,
			       const struct cuda_array *from, const struct cuda_array *to);
/* The same, added to the present values. */
enum mu_status mu_cuda_convert_add(struct cuda_device *d, const struct mu_shape *shape,
				   const struct cuda_array *from, const struct cuda_array *to);

/* Of struct mu_device_ops. */
enum mu_status mu_cuda_from_plain(struct mu_device *device, const struct mu_shape *shape,
				  const void *layout, const float *plain, float *out);
enum mu_status mu_cuda_to_plain(struct mu_device *device, const struct mu_shape *shape,
				const void *layout, const float *in, float *plain);
enum mu_status mu_cuda_copy_layout(struct mu_device *device, const void *layout, void **out);
void mu_cuda_free_layout(struct mu_device *device, void *layout);
void mu_cuda_lay_input(struct mu_device *device, const struct mu_op *op);
uint64_t mu_cuda_hash_layout(struct mu_device *device, const void *layout);

/* layout.c: fill the copies of weights of n neighbouring operations, or with `back` convert their
 * gradients back. */
enum mu_status mu_cuda_lay_weights(struct cuda_device *d, enum mu_dtype dtype, struct mu_op *ops,
				   size_t n, bool back);

/* runtime/update.c: slots of struct mu_device_memory */
enum mu_status mu_cuda_update(struct mu_device *device, void *stream,
			      const struct mu_device_update *u);
enum mu_status mu_cuda_add(struct mu_device *device, void *stream, const struct mu_device_sum *s);

/* runtime/launch.c: cuBLAS and cuDNN use the stream `work`, cuBLAS with the device's workspace. */
enum { CUDA_BLAS_BYTES = 32 << 20 };
enum mu_status mu_cuda_set_streams(struct cuda_device *d);

/* runtime/record.c: slots of struct mu_device_memory */
enum mu_status mu_cuda_record_begin(struct mu_device *device);
enum mu_status mu_cuda_record_end(struct mu_device *device, void **recording);
enum mu_status mu_cuda_replay(struct mu_device *device, void *recording);
void mu_cuda_free_recording(struct mu_device *device, void *recording);
/* layout.c: of a planned operation */
bool mu_cuda_can_record(const struct mu_op *op, bool backward);

/* runtime/feed.c: slots of struct mu_device_memory */
enum mu_status mu_cuda_feed_open(struct mu_device *device, struct mu_feed *feed, size_t nbytes,
				 const char *what);
void mu_cuda_feed_close(struct mu_device *device, struct mu_feed *feed);
enum mu_status mu_cuda_feed_send(struct mu_device *device, struct mu_feed *feed, size_t from,
				 size_t to);
enum mu_status mu_cuda_feed_take(struct mu_device *device, struct mu_feed *feed);
enum mu_status mu_cuda_lay(struct mu_device *device, const struct mu_tensor *out, const void *plain,
			   const struct mu_pixels *pixels);

/* ---- operations ---- */

/* Layout of a kind's inputs and outputs. */
enum cuda_inputs {
	CUDA_INPUTS_PLAIN,
	CUDA_INPUTS_ALIKE,    /* in the layout of the first */
	CUDA_INPUTS_OF_DTYPE, /* in the layout of the device's dtype */
	CUDA_INPUTS_OVER,     /* plain, or alike where the output lies over the input */
};

/*
 * A kind of operation. It works on a view of the net's operation whose inputs have the layout that
 * it needs. ref's plan checks its shapes; workspace_nbytes and scratch_nbytes are 0 when plan is
 * called. restore: only if it is less work than forward. release frees op->impl. host_forward,
 * host_backward: the host does part of the work.
 */
struct cuda_kind {
	const struct mu_ref_kind *like;
	enum cuda_inputs inputs;
	bool host_forward, host_backward;
	enum mu_status (*plan)(struct cuda_device *d, struct mu_op *op);
	enum mu_status (*forward)(struct cuda_device *d, struct mu_op *op);
	enum mu_status (*restore)(struct cuda_device *d, struct mu_op *op);
	/* Of a loss: struct mu_device_ops's. */
	void (*set_loss)(struct mu_op *op);
	enum mu_status (*backward)(struct cuda_device *d, struct mu_op *op);
	void (*release)(struct cuda_device *d, struct mu_op *op);
};

/* by_ref.c: kinds that are left to ref, on the host. */
enum mu_status mu_cuda_plan_by_ref(struct cuda_device *d, struct mu_op *op);
enum mu_status mu_cuda_forward_by_ref(struct cuda_device *d, struct mu_op *op);
enum mu_status mu_cuda_backward_by_ref(struct cuda_device *d, struct mu_op *op);
void mu_cuda_release_by_ref(struct cuda_device *d, struct mu_op *op);

/* The view: created when an operation is planned; before its work pointers are set and inputs
 * converted. */
enum mu_status mu_cuda_plan_view(struct cuda_device *d, struct mu_op *op,
				 const struct cuda_kind *kind);
void mu_cuda_release_view(struct cuda_device *d, struct mu_op *op, const struct cuda_kind *kind);
enum mu_status mu_cuda_begin_view(struct cuda_device *d, struct mu_op *op, struct mu_op **view);
/* The view as it was last used. */
struct mu_op *mu_cuda_view(const struct mu_op *op);
/* Convert the gradients of converted inputs back. */
enum mu_status mu_cuda_end_backward(struct cuda_device *d, struct mu_op *op);

#define KIND(OP, row, name, cpu, cuda) extern const struct cuda_kind mu_cuda_##row;
#include "device/kinds.def"
#undef KIND

/* ---- shared/products.c ---- */

/* How cuBLAS may multiply arrays of float32, or of half types. */
cublasMath_t mu_cuda_blas_math(const struct mu_device *device, bool is_float32);

/* c (rows, columns) = keep c + a b, all in row-major order: a (rows, inner), or (inner, rows) if
 * transposed; b (inner, columns), or (columns, inner). */
struct cuda_product {
	const float *a, *b;
	float *c;
	bool transpose_a, transpose_b;
	size_t rows, columns, inner;
	float keep; /* 0: c is not read */
};
enum mu_status mu_cuda_multiply(struct cuda_device *d, const struct cuda_product *p);

/* A matrix of each of `count` products: element (i, j) of number n is data[n step + i row + j], or
 * with `transpose` [n step + j row + i]. */
struct cuda_matrices {
	void *data;
	size_t row, step;
	bool transpose;
};

/* c = keep c + factor a b, as above. c is of c_type, a and b are of `type`, in tensor cores if that
 * is not float32, or if TF32 is allowed. c is not transposed. */
struct cuda_products {
	struct cuda_matrices a, b, c;
	size_t count, rows, columns, inner;
	int type, c_type;
	float factor, keep;
};
enum mu_status mu_cuda_multiply_many(struct cuda_device *d, const struct cuda_products *p);

/* ---- shared/tensors.c: for several kinds ---- */

/* An error if a tensor of the operation is too large for kernels that count in 32 bits. */
enum mu_status mu_cuda_check_sizes(struct cuda_device *d, struct mu_op *op);
/* Free op->impl, memory of the host from cuMemHostAlloc. */
void mu_cuda_release_host(struct cuda_device *d, struct mu_op *op);
/* Axes of space: depth, 1 of images, height, width. */
void mu_cuda_space(const struct mu_shape *shape, int out[CUDA_SPACE]);


/* The kernels' number of the activation; NULL: CUDA_LINEAR. */
int mu_cuda_activation_code(const struct mu_activation *activation);
/* Apply bias and activation, if any, to the output of a convolution or a fully connected layer. */
enum mu_status mu_cuda_add_bias(struct cuda_device *d, struct mu_op *op);
/* room: mu_cuda_sums_bytes bytes. */
enum mu_status mu_cuda_bias_gradient(struct cuda_device *d, struct mu_op *op, void *room);
/* Convert the output's gradient to the gradient before its fused activation, in place. */
enum mu_status mu_cuda_undo_activation(struct cuda_device *d, struct mu_op *op);

/* Copy values or a gradient of a tensor, from one of the same layout. */
enum mu_status mu_cuda_copy_like(struct cuda_device *d, float *to, const float *from,
				 const struct mu_tensor *like);
/*
 * Sum of the data, or the gradients, of some tensors. y may be the first. Added in order, as many
 * at a time as a kernel supports; the last kernel also applies the activation, or its derivative.
 */
enum mu_status mu_cuda_add_all(struct cuda_device *d, struct mu_tensor *const *tensors, int n,
			       bool grads, struct cuda_add *args);

/* ---- sums over channels: shared/channel_sums.c ---- */

/* Blocks that a processor of the GPU holds of the kernels of batch_norm_groups.h, which keep
 * channels in registers, forward and backward, so that all blocks run at a time: test_sass.sh
 * checks their registers. */
enum { CUDA_SUM_BLOCKS = 4, CUDA_SUM_BLOCKS_BACKWARD = 3 };

/* Bytes of the device's counters of blocks that have ended. */
size_t mu_cuda_ended_bytes(const struct cuda_device *d);
/* Bytes for partial sums. */
size_t mu_cuda_sums_bytes(const struct cuda_device *d, const struct mu_tensor *t);
/* Compute the partial sums of what args describes. */
enum mu_status mu_cuda_partial_sums(struct cuda_device *d, const struct mu_tensor *t,
				    struct cuda_partial_sums *args, void *room,
				    struct cuda_lanes *lanes);

void mu_cuda_free_fused_plans(struct cuda_device *d);

/* kernels.cu, compiled; embedded by the makefile. */
extern const unsigned char mu_cuda_kernels[];

#endif
