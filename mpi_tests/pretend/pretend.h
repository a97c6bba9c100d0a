/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the pretended driver of GPUs (gpu.c) and the pretended NCCL (pretend/nccl.c) share.
 * test_pretend.sh compiles them, with our own headers of CUDA in front of them.
 */
#ifndef PRETEND_H
#define PRETEND_H

#include <stdio.h>
#include <stdlib.h>

#include "costs.h"

struct pretend_kernel;

/* One recording of an event: streams that wait for it do not wait for later ones. */
struct pretend_mark {
	int done;
};

struct CUevent_st {
	struct pretend_mark *latest; /* NULL: never recorded */
	int device;
};

/* run: 0 if its time has not come. */
struct pretend_work {
	struct pretend_work *next;
	int (*run)(struct pretend_work *w);
	void *to;
	const void *from;
	size_t n;
	int value;
	struct pretend_mark *mark;
	const struct pretend_kernel *kernel;
	struct pretend_cost cost;
	_Alignas(16) char args[4096];
};

/* With a graph the stream is recording. */
struct CUstream_st {
	struct CUstream_st *next;
	struct pretend_work *head, *last;
	struct CUgraph_st *graph;
	int device;
};

/* A tensor of cuDNN: as N, C, H, W and depth, which is 1 for images, or K, C, R, S and that; or of
 * three dimensions, with their strides. */
struct cudnnTensorStruct {
	cudnnTensorFormat_t format;
	cudnnDataType_t type;
	int n[5], strides[3];
	int n_dims;
};

struct cudnnConvolutionStruct {
	int pad[3], stride[3], dilation[3], groups; /* as above, from H on */
	cudnnDataType_t compute;
	cudnnMathType_t math;
};

struct pretend_tensor {
	struct cudnnTensorStruct like;
	void *data;
};

/* out is one of the three, and becomes the sum over all products of the other two. sums: of each
 * channel of y, and of its squares, in float32; NULL: none. */
enum { PRETEND_OUT_X, PRETEND_OUT_W, PRETEND_OUT_Y };
struct pretend_convolution {
	struct pretend_tensor x, w, y;
	struct cudnnConvolutionStruct shape;
	int out, adds;
	float *sums[2];
};
/* Rounded to TF32: 10 bits of mantissa, to the nearest, ties away from zero (cvt.rna of PTX). */
double pretend_tf32(float v);
size_t pretend_count_of(const struct pretend_tensor *t);
cudnnStatus_t pretend_put_convolution(cudnnHandle_t h, const struct pretend_convolution *k,
				      void *room, size_t nbytes);

/*
 * A graph of cuDNN's without convolutions: steps that make each tensor of others. sizes are those
 * of samples, heads, rows, columns; where a factor has fewer, an index i of n is its i m / n of m.
 * number: of its array; a tensor that is computed has none.
 */
enum { PRETEND_TENSORS = 48, PRETEND_STEPS = 32, PRETEND_ARRAYS = 14 };
struct pretend_program {
	struct pretend_value {
		const void *part;
		cudnnDataType_t type;
		int computed, by_value;
		int64_t number, alignment, sizes[4], strides[4];
	} values[PRETEND_TENSORS];
	struct pretend_step {
		cudnnBackendDescriptorType_t kind;
		int how, axis;  /* mode of a pointwise operation, or of a reduction */
		int x, b, t, y; /* values; -1: none */
	} steps[PRETEND_STEPS];
	int n_values, n_steps;
};
int64_t pretend_numbers_in(const struct pretend_value *v);
size_t pretend_nbytes(const struct pretend_value *v); /* from the first to behind the last */
/* arrays: by values. The program lives as long as the work. */
cudnnStatus_t pretend_put_program(cudnnHandle_t h, const struct pretend_program *p,
				  void *const *arrays, void *room, size_t nbytes);

/* Does all work of all streams that can be done. */
void pretend_drain(void);
/* Nothing of the stream's recording can run; returns why. */
CUresult pretend_spoil(CUstream stream, CUresult why);
/* Is there machine code of this kernel for our GPUs? fatbin.c */
int pretend_has_kernel(CUmodule module, const char *name);
void pretend_put(CUstream stream, struct pretend_work work);
/* That of a handle of cuBLAS's or cuDNN's. */
CUstream pretend_stream(const void *handle);
/* Is a copy from or to these bytes under way? */
int pretend_copies(const char *p, size_t n);
/* 1: all of it is in one allocation of a GPU, which is *device; 0: none of it is in any. */
int pretend_is_on_gpu(const void *p, size_t n, int *device);
/* The calling thread's; -1: none. */
int pretend_device(void);
/* faults.c: a number from the environment; the error of a lost GPU, 0 while there is none, which a
 * launch may bring about. */
long pretend_setting(const char *name, long otherwise);
CUresult pretend_launch(void);
CUresult pretend_lost(void);

#define ALIVE() \
	do { \
		if (pretend_lost()) \
			return pretend_lost(); \
	} while (0)

#define NEED(condition) \
	do { \
		if (!(condition)) { \
			fprintf(stderr, "pretended GPU: %s: %s\n", __func__, #condition); \
			abort(); \
		} \
	} while (0)

#endif
