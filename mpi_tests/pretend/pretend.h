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

/* A tensor of cuDNN: as N, C, H, W, or K, C, R, S; or of three dimensions, with their strides. */
struct cudnnTensorStruct {
	cudnnTensorFormat_t format;
	cudnnDataType_t type;
	int n[4], strides[3];
	int n_dims;
};

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
