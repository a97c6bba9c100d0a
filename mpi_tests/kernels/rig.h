/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cases of the kernels of GPUs, run on the host (block.h) and compared with plain formulas. Arrays
 * have exactly their size, so that an address sanitizer sees any access beside them. Compiled by
 * test_kernels.sh, with src/device/cuda/kernels/args.h in front.
 */
#ifndef KERNELS_RIG_H
#define KERNELS_RIG_H

#include <muster/base.h>

#include "../lib/check.h"

/* A case of every kernel, for each of the shapes, types and numbers of blocks of rig.c. */
struct variant {
	size_t samples, channels, area, n; /* n is their product */
	int type;
	int odd;         /* 0 or 1: a second way: in place, adding, channels last, ... */
	unsigned blocks; /* at most; results do not depend on it */
};

enum kernel_id {
#define ENTRY(name) KERNEL_##name,
	CUDA_KERNELS(ENTRY)
#undef ENTRY
		KERNELS
};

/* Each kernel has one: a kernel without a case is not linked. */
#define ENTRY(name) void test_##name(const struct variant *v);
CUDA_KERNELS(ENTRY)
#undef ENTRY

/* Runs it on n threads, or on n blocks (rows). */
void rig_run(enum kernel_id kernel, const struct variant *v, size_t n, const void *args);
void rig_run_rows(enum kernel_id kernel, const struct variant *v, size_t rows, const void *args);
#define RUN(name, v, args) rig_run(KERNEL_##name, v, (args)->n, args)
#define RUN_EIGHTS(name, v, args) rig_run(KERNEL_##name, v, ((args)->n + 7) / 8, args)
#define RUN_WARPS(name, v, args) rig_run(KERNEL_##name, v, (args)->n *CUDA_WARP, args)
#define RUN_ROWS(name, v, args) rig_run_rows(KERNEL_##name, v, (args)->n, args)

/* Arrays live until the case ends. Random numbers of magnitude up to 2, rounded to the type. */
void *rig_numbers(int type, size_t n, unsigned seed);
/* The same starting `by` elements behind a multiple of 64 bytes. */
void *rig_numbers_at(int type, size_t n, unsigned seed, size_t by);
void *rig_bytes(size_t nbytes, int value);
float *rig_floats(size_t n, unsigned seed);
void *rig_copy(const void *of, int type, size_t n);

double rig_at(const void *p, int type, size_t i);
void rig_set(void *p, int type, size_t i, double v);
/* Element i is near `want`; its bits count for the comparison of numbers of blocks. */
void rig_expect(const void *p, int type, size_t i, double want);
/* The same with an error of `tolerance` times the type's. */
void rig_near(const void *p, int type, size_t i, double want, double tolerance);

/* lanes.c: room for what becomes of the sums of each channel, and what it is. */
struct cuda_normal_totals rig_totals(const struct variant *v);
void rig_expect_totals(const struct cuda_normal_totals *a, size_t c, double sum, double product);

/* Barriers of blocks take long: rows that read float32 alone are tested once a shape. */
static inline bool rig_is_long(const struct variant *v)
{
	return v->channels > 8 || (v->type != CUDA_FLOAT32 && v->n > 70);
}

/* Position of element i of (samples, area, channels) in (samples, channels, area). */
static inline size_t rig_plain(const struct variant *v, size_t i)
{
	const size_t c = i % v->channels, a = i / v->channels % v->area;

	return (i / v->channels / v->area * v->channels + c) * v->area + a;
}

/* check.h counts failures in each file: those of the cases count in rig.c. */
int rig_check(int ok, const char *file, int line, const char *text);
#undef CHECK
#define CHECK(condition) rig_check((condition), __FILE__, __LINE__, #condition)

static inline double rig_relu(double x)
{
	return x > 0 ? x : 0;
}

#endif
