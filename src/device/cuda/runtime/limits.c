/* SPDX-License-Identifier: Apache-2.0 */
/* What this GPU can do at most: a matrix product of cuBLAS, a copy in its memory, and a copy to it
 * from pinned memory of the host. */
#include "device/cuda/cuda.h"

#include <muster/base.h>

/* Sizes in proportion to the GPU: 8448 and 553 MB with the 132 multiprocessors of an H100. */
enum { SIDE_PER_PROCESSOR = 64, COPIED_PER_PROCESSOR = 4 << 20, HOST_BYTES = 64 << 20 };
enum { AT_ONCE = 4 };
static const double seconds_each = 0.1;

struct work {
	struct mu_device *device;
	char *to, *from; /* memory of the GPU, or of the host */
	size_t nbytes;   /* copied */
	int side;        /* of the matrices, if it is a product */
	double amount;   /* operations or bytes of one call */
};

/* Operands in the device's dtype, sums in float32: as cuDNN multiplies. */
static enum mu_status multiply(const struct work *w)
{
	enum mu_status st = MU_OK;
	struct cuda_device *d = w->device->impl;
	const float one = 1, zero = 0;
	const int n = w->side;
	const enum mu_dtype dtype = w->device->dtype;
	const cudaDataType type = dtype == MU_FLOAT16	 ? CUDA_R_16F
				  : dtype == MU_BFLOAT16 ? CUDA_R_16BF
							 : CUDA_R_32F;

	BLAS(d, cublasSetMathMode, d->blas, mu_cuda_blas_math(w->device, dtype == MU_FLOAT32));
	BLAS(d, cublasGemmEx, d->blas, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, w->from, type, n,
	     w->from, type, n, &zero, w->to, type, n, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
out:
	return st;
}

static enum mu_status call(const struct work *w)
{
	const struct mu_device_memory *memory = w->device->ops->memory;

	return w->side > 0 ? multiply(w) : memory->upload(w->device, w->to, w->from, w->nbytes);
}

static enum mu_status finish(const struct work *w)
{
	enum mu_status st = MU_OK;
	const struct mu_device_memory *memory = w->device->ops->memory;
	uint64_t mark;
	bool reached;

	MU_TRY(memory->mark(w->device, &mark));
	MU_TRY(memory->reach(w->device, mark, true, &reached));
out:
	return st;
}

/* The best rate of several rounds; the first one, which may set the library up, is not timed. */
static enum mu_status measure(const struct work *w, double *rate)
{
	enum mu_status st = MU_OK;
	double start, before;

	MU_TRY(call(w));
	MU_TRY(finish(w));
	start = mu_now();
	do {
		before = mu_now();
		for (int i = 0; i < AT_ONCE; i++)
			MU_TRY(call(w));
		MU_TRY(finish(w));
		before = AT_ONCE * w->amount / (mu_now() - before);
		if (before > *rate)
			*rate = before;
	} while (mu_now() - start < seconds_each);
out:
	return st;
}

/*
 * Numbers in [0.5, 1) with random digits: a GPU that multiplies zeros needs less power, and is
 * faster than it is in any training.
 */
static enum mu_status fill(const struct work *w, void *to)
{
	enum mu_status st = MU_OK;
	const struct mu_random key = {.seed = 1, .purpose = MU_RANDOM_TEST};
	const struct mu_device_memory *memory = w->device->ops->memory;
	const enum mu_dtype dtype = w->device->dtype;
	const size_t n = w->nbytes / sizeof(uint32_t);
	uint32_t *words = NULL;

	MU_TRY(MU_ALLOC(words, n + 1, "a measurement"));
	for (size_t i = 0; i < n; i++) {
		const uint32_t bits = mu_random_bits(&key, i);

		words[i] = dtype == MU_FLOAT16	  ? 0x38003800u | (bits & 0x03ff03ffu)
			   : dtype == MU_BFLOAT16 ? 0x3f003f00u | (bits & 0x007f007fu)
						  : 0x3f000000u | (bits & 0x007fffffu);
	}
	MU_TRY(memory->upload(w->device, to, words, w->nbytes));
	MU_TRY(finish(w));
out:
	mu_free(words);
	return st;
}

/* With memory for both arrays; where there is none the rate stays unknown. */
static enum mu_status measure_in(struct mu_device *device, struct work *w, bool on_host,
				 double *rate)
{
	enum mu_status st = MU_OK;
	const struct mu_device_memory *memory = device->ops->memory;
	void *to = NULL, *from = NULL;

	w->device = device;
	st = memory->alloc(device, &to, w->nbytes, "a measurement");
	if (st == MU_OK)
		st = (on_host ? memory->alloc_host : memory->alloc)(device, &from, w->nbytes,
								    "a measurement");
	if (st == MU_ERR_MEMORY) {
		mu_trace_clear();
		st = MU_OK;
		goto out;
	}
	MU_TRY(st);
	w->to = to;
	w->from = from;
	if (w->side > 0)
		MU_TRY(fill(w, from));
	MU_TRY(measure(w, rate));
out:
	if (from)
		(on_host ? memory->free_host : memory->free)(device, from);
	if (to)
		memory->free(device, to);
	return st;
}

enum mu_status mu_cuda_measure(struct mu_device *device, struct mu_device_limits *limits)
{
	enum mu_status st = MU_OK;
	const struct cuda_device *d = device->impl;
	const int side = SIDE_PER_PROCESSOR * d->processors;
	const size_t copied = (size_t)COPIED_PER_PROCESSOR * (size_t)d->processors;
	struct work product = {.nbytes = (size_t)side * (size_t)side * sizeof(float),
			       .side = side,
			       .amount = 2.0 * side * side * side};
	struct work copy = {.nbytes = copied, .amount = 2.0 * (double)copied};
	struct work host = {.nbytes = HOST_BYTES, .amount = HOST_BYTES};

	MU_TRY(measure_in(device, &product, false, &limits->flops));
	MU_TRY(measure_in(device, &copy, false, &limits->bytes));
	MU_TRY(measure_in(device, &host, true, &limits->host_bytes));
out:
	return st;
}
