/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a kernel's blocks of threads on the host. Each thread is a fibre; a block is one thread of
 * the host. Every other launch begins with its last block. Threads of a block run one after another
 * up to the next barrier, in orders that differ. With ThreadSanitizer each block is a thread of its
 * own and nothing but barriers orders the threads of a block: a missing barrier, or one number
 * written by two blocks, is reported.
 *
 * A thread that ends, or waits at another barrier, while others wait ends the process.
 */
#ifndef KERNELS_BLOCK_H
#define KERNELS_BLOCK_H

#ifdef __cplusplus
extern "C" {
#endif

/* BLOCK_MAX_RACING: blocks of a launch with ThreadSanitizer. */
enum { BLOCK_MAX_THREADS = 1024, BLOCK_WARP = 32, BLOCK_MAX_RACING = 8 };

struct block_index {
	unsigned x, y, z;
};

/* Returns when all blocks have ended. One launch at a time. */
void block_launch(void (*kernel)(const void *args), const void *args, unsigned blocks,
		  unsigned threads);

/* ---- for kernels ---- */

struct block_index block_thread(void);  /* threadIdx */
struct block_index block_number(void);  /* blockIdx */
struct block_index block_threads(void); /* blockDim */
struct block_index block_grid(void);    /* gridDim */
void block_barrier(const char *file, int line);
/* __threadfence(): what stands before it in a thread comes before what stands behind a later one,
 * of any block; nothing else orders threads of two blocks. */
void block_fence(void);
/* Barrier of these lanes of the calling thread's warp, in which each of them passes a value;
 * returns the value of a lane, or the caller's own if the lane is not one of them. */
unsigned long long block_exchange(unsigned lanes, unsigned long long value, unsigned from,
				  const char *file, int line);

#ifdef __cplusplus
}
#endif

#endif
