/* SPDX-License-Identifier: Apache-2.0 */
/* See block.h. Compiled without sanitizers: these learn of fibres by the weak functions below. */
#include "block.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#ifndef __x86_64__
#include <ucontext.h>
#endif

#define WEAK __attribute__((weak))
WEAK void __sanitizer_start_switch_fiber(void **save, const void *bottom, size_t size);
WEAK void __sanitizer_finish_switch_fiber(void *save, const void **bottom, size_t *size);
WEAK void *__tsan_get_current_fiber(void);
WEAK void *__tsan_create_fiber(unsigned flags);
WEAK void __tsan_switch_to_fiber(void *fiber, unsigned flags);
WEAK void __tsan_acquire(void *at);
WEAK void __tsan_release(void *at);

enum { STACK = 32 << 10, NO_SYNC = 1, PHASES = 2 };
enum state { UNUSED, READY, WAITS, ENDED };

/* ---- stacks: swapcontext is a system call, 50 times slower ---- */

#ifdef __x86_64__
struct context {
	void **top;
};
void block_switch(struct context *from, const struct context *to);
__asm__(".text\n"
	".globl block_switch\n"
	".hidden block_switch\n"
	".type block_switch, @function\n"
	"block_switch:\n"
	"	pushq %rbp; pushq %rbx; pushq %r12; pushq %r13; pushq %r14; pushq %r15\n"
	"	movq %rsp, (%rdi)\n"
	"	movq (%rsi), %rsp\n"
	"	popq %r15; popq %r14; popq %r13; popq %r12; popq %rbx; popq %rbp\n"
	"	ret\n"
	".size block_switch, . - block_switch\n");

static void begin_context(struct context *c, void *stack, void (*run)(void))
{
	c->top = (void **)((char *)stack + STACK) - 8;
	memset(c->top, 0, 8 * sizeof *c->top); /* six registers, the function, no caller */
	c->top[6] = (void *)(uintptr_t)run;
}
#else
struct context {
	ucontext_t u;
};

static void block_switch(struct context *from, const struct context *to)
{
	swapcontext(&from->u, &to->u);
}

static void begin_context(struct context *c, void *stack, void (*run)(void))
{
	getcontext(&c->u);
	c->u.uc_stack.ss_sp = stack;
	c->u.uc_stack.ss_size = STACK;
	makecontext(&c->u, run, 0);
}
#endif

struct fibre {
	struct context context;
	enum state state;
	unsigned thread;
	/* of the barrier; lanes 0: the whole block */
	unsigned lanes, phases[2];
	bool has_waited;
	const char *file;
	int line;
	unsigned long long given, seen[BLOCK_WARP];
};

struct block {
	void (*kernel)(const void *);
	const void *args;
	unsigned number, grid, threads;
	unsigned started, round;
	struct context scheduler;
	void *scheduler_of_sanitizer, *of_sanitizer[BLOCK_MAX_THREADS]; /* kept */
	const void *stack;
	size_t stack_size;
	struct fibre *now, fibres[BLOCK_MAX_THREADS], *of[BLOCK_MAX_THREADS];
	/* what ThreadSanitizer knows barriers by */
	char begin, sync[PHASES][BLOCK_MAX_THREADS / BLOCK_WARP + 1], end;
	char (*stacks)[STACK];
};

static struct block *pool[BLOCK_MAX_RACING];
static _Thread_local struct block *block;
static struct fibre ended = {.state = ENDED};

static _Noreturn void die(const struct fibre *a, const struct fibre *b)
{
	fprintf(stderr, "%s:%d: failed: block %u: thread %u waits here, ", a->file, a->line,
		block->number, a->thread);
	if (b->state == WAITS)
		fprintf(stderr, "thread %u at %s:%d\n", b->thread, b->file, b->line);
	else
		fprintf(stderr, "another thread has ended\n");
	abort();
}

/* ---- fibres ---- */

static void to_scheduler(struct fibre *f)
{
	void *save = NULL;
	const bool ends = f->state == ENDED;

	if (__sanitizer_start_switch_fiber)
		__sanitizer_start_switch_fiber(ends ? NULL : &save, block->stack,
					       block->stack_size);
	if (__tsan_switch_to_fiber)
		__tsan_switch_to_fiber(block->scheduler_of_sanitizer, NO_SYNC);
	block_switch(&f->context, &block->scheduler);
	if (__sanitizer_finish_switch_fiber)
		__sanitizer_finish_switch_fiber(save, &block->stack, &block->stack_size);
}

static void begin_thread(struct fibre *f)
{
	f->thread = block->started++;
	block->of[f->thread] = f;
}

/* A fibre runs further threads as long as none has waited: most kernels have no barrier. */
static void fibre_main(void)
{
	struct fibre *f = block->now;

	if (__sanitizer_finish_switch_fiber)
		__sanitizer_finish_switch_fiber(NULL, &block->stack, &block->stack_size);
	if (__tsan_acquire)
		__tsan_acquire(&block->begin);
	for (;;) {
		block->kernel(block->args);
		if (__tsan_release)
			__tsan_release(&block->end);
		if (__tsan_release || f->has_waited || block->started == block->threads)
			break;
		block->of[f->thread] = &ended;
		begin_thread(f);
	}
	f->state = ENDED;
	to_scheduler(f);
}

static void run(struct fibre *f)
{
	const size_t k = (size_t)(f - block->fibres);
	void *save = NULL;

	if (f->state == UNUSED) {
		begin_context(&f->context, block->stacks[k], fibre_main);
		if (__tsan_create_fiber && !block->of_sanitizer[k])
			block->of_sanitizer[k] = __tsan_create_fiber(0);
	}
	f->state = READY;
	block->now = f;
	if (__sanitizer_start_switch_fiber)
		__sanitizer_start_switch_fiber(&save, block->stacks[k], STACK);
	if (__tsan_switch_to_fiber)
		__tsan_switch_to_fiber(block->of_sanitizer[k], NO_SYNC);
	block_switch(&block->scheduler, &f->context);
	if (__sanitizer_finish_switch_fiber)
		__sanitizer_finish_switch_fiber(save, NULL, NULL);
}

/* ---- barriers ---- */

static void wait_at(unsigned lanes, const char *file, int line)
{
	struct fibre *f = block->now;
	const unsigned warp = lanes ? 1 + f->thread / BLOCK_WARP : 0;
	char *sync = &block->sync[f->phases[lanes != 0]++ % PHASES][warp];

	f->has_waited = true;
	f->lanes = lanes;
	f->file = file;
	f->line = line;
	f->state = WAITS;
	if (__tsan_release)
		__tsan_release(sync);
	to_scheduler(f);
	if (__tsan_acquire)
		__tsan_acquire(sync);
}

void block_barrier(const char *file, int line)
{
	wait_at(0, file, line);
}

void block_fence(void)
{
	static char fence;

	if (__tsan_acquire)
		__tsan_acquire(&fence);
	__atomic_thread_fence(__ATOMIC_SEQ_CST);
	if (__tsan_release)
		__tsan_release(&fence);
}

unsigned long long block_exchange(unsigned lanes, unsigned long long value, unsigned from,
				  const char *file, int line)
{
	struct fibre *f = block->now;

	f->given = value;
	wait_at(lanes, file, line);
	return from < BLOCK_WARP && lanes >> from & 1 ? f->seen[from] : value;
}

/* Do these threads all wait at one barrier? */
static bool all_wait(unsigned first, unsigned n, unsigned lanes)
{
	const struct fibre *a = NULL;

	for (unsigned t = first; t < first + n; t++) {
		const struct fibre *f = block->of[t];

		if (lanes && !(lanes >> (t - first) & 1))
			continue;
		if (f->state != WAITS || f->lanes != lanes)
			return false;
		if (a && (a->line != f->line || a->file != f->file))
			die(a, f);
		a = f;
	}
	return true;
}

static void release_warp(unsigned first, unsigned n, unsigned lanes)
{
	for (unsigned t = 0; t < n; t++)
		if (lanes >> t & 1) {
			block->of[first + t]->state = READY;
			for (unsigned k = 0; k < n; k++)
				block->of[first + t]->seen[k] = block->of[first + k]->given;
		}
}

/* Releases the barriers that are complete: true if there was one. */
static bool release(void)
{
	bool any = false;

	if (all_wait(0, block->threads, 0)) {
		for (unsigned t = 0; t < block->threads; t++)
			block->of[t]->state = READY;
		return true;
	}
	for (unsigned t = 0; t < block->threads; t++) {
		const unsigned first = t / BLOCK_WARP * BLOCK_WARP, left = block->threads - first;
		const unsigned n = left < BLOCK_WARP ? left : BLOCK_WARP;
		const struct fibre *f = block->of[t];

		if (f->state != WAITS || !f->lanes || !all_wait(first, n, f->lanes))
			continue;
		release_warp(first, n, f->lanes);
		any = true;
	}
	return any;
}

/* ---- blocks ---- */

/* All that can run, in an order that differs from round to round. */
static bool run_ready(void)
{
	const unsigned n = block->threads, round = block->round++;
	bool any = false;

	for (unsigned k = 0; k < n; k++) {
		struct fibre *f = block->of[(round % 2 ? n - 1 - k : k + 37 * round) % n];

		if (f->state != READY)
			continue;
		run(f);
		any = true;
	}
	return any;
}

static void start_all(void)
{
	memset(block->fibres, 0, block->threads * sizeof block->fibres[0]);
	block->started = 0;
	while (block->started < block->threads) {
		struct fibre *f = &block->fibres[block->started];

		begin_thread(f);
		run(f);
	}
}

static void check_ended(void)
{
	const struct fibre *waits = NULL, *other = NULL;

	for (unsigned t = 0; t < block->threads; t++) {
		const struct fibre *f = block->of[t];

		if (f->state == WAITS && !waits)
			waits = f;
		else if (f->state == ENDED || !other)
			other = f;
	}
	if (waits)
		die(waits, other);
}

static void run_block(void)
{
	if (__tsan_get_current_fiber)
		block->scheduler_of_sanitizer = __tsan_get_current_fiber();
	if (__tsan_release)
		__tsan_release(&block->begin);
	start_all();
	do {
		while (run_ready())
			;
	} while (release());
	if (__tsan_acquire)
		__tsan_acquire(&block->end);
	check_ended();
}

struct job {
	void (*kernel)(const void *);
	const void *args;
	unsigned number, grid, threads;
	pthread_t thread;
};

static void *run_job(void *p)
{
	const struct job *j = p;
	struct block **kept = &pool[__tsan_create_fiber ? j->number : 0];

	if (!*kept) {
		*kept = calloc(1, sizeof **kept);
		(*kept)->stacks = mmap(NULL, sizeof *(*kept)->stacks * BLOCK_MAX_THREADS,
				       PROT_READ | PROT_WRITE,
				       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		if ((*kept)->stacks == MAP_FAILED)
			abort();
	}
	block = *kept;
	block->kernel = j->kernel;
	block->args = j->args;
	block->number = j->number;
	block->grid = j->grid;
	block->threads = j->threads;
	run_block();
	return NULL;
}

void block_launch(void (*kernel)(const void *), const void *args, unsigned blocks, unsigned threads)
{
	static unsigned launches;
	const bool backwards = launches++ % 2;
	struct job *jobs = calloc(blocks, sizeof *jobs);

	if (!jobs || (__tsan_create_fiber && blocks > BLOCK_MAX_RACING))
		abort();
	for (unsigned b = 0; b < blocks; b++) {
		const unsigned number = backwards ? blocks - 1 - b : b;

		jobs[b] = (struct job){kernel, args, number, blocks, threads, 0};
		if (!__tsan_create_fiber)
			run_job(&jobs[b]);
		else if (pthread_create(&jobs[b].thread, NULL, run_job, &jobs[b]) != 0)
			abort();
	}
	for (unsigned b = 0; b < blocks && __tsan_create_fiber; b++)
		pthread_join(jobs[b].thread, NULL);
	free(jobs);
}

struct block_index block_thread(void)
{
	return (struct block_index){block->now->thread, 0, 0};
}

struct block_index block_number(void)
{
	return (struct block_index){block->number, 0, 0};
}

struct block_index block_threads(void)
{
	return (struct block_index){block->threads, 1, 1};
}

struct block_index block_grid(void)
{
	return (struct block_index){block->grid, 1, 1};
}
