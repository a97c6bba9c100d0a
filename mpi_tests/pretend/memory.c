/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the pretended GPUs (gpu.c), and copies. Every access is checked: it lies in one
 * allocation, of the stream's GPU where the function asks for that; host memory is none of a
 * GPU's. PRETEND_NO_REGISTER: no host memory can be registered.
 */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "pretend.h"

enum { MAX_ALLOCATED = 4096 };
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
struct range {
	char *p;
	size_t n;
	int device;
};
static struct range allocated[MAX_ALLOCATED], registered[MAX_ALLOCATED];

/* The range that has some of these bytes, or NULL. */
static struct range *find(struct range *of, const void *p, size_t n)
{
	const char *begin = p;

	for (int i = 0; i < MAX_ALLOCATED; i++)
		if (of[i].p && begin < of[i].p + of[i].n && of[i].p < begin + n)
			return &of[i];
	return NULL;
}

static void note(struct range *of, void *p, size_t n)
{
	struct range *free_one = of;

	while (free_one < of + MAX_ALLOCATED && free_one->p)
		free_one++;
	NEED(free_one < of + MAX_ALLOCATED);
	*free_one = (struct range){p, n, pretend_device()};
}

int pretend_is_on_gpu(const void *p, size_t n, int *device)
{
	struct range *r;

	pthread_mutex_lock(&lock);
	r = find(allocated, p, n);
	NEED(!r || ((const char *)p >= r->p && (const char *)p + n <= r->p + r->n));
	if (r)
		*device = r->device;
	pthread_mutex_unlock(&lock);
	return r != NULL;
}

/* Free memory of the present GPU. */
static size_t all_bytes(void)
{
	return pretend_is_dry() ? (size_t)140 << 30 : (size_t)1 << 33;
}
static size_t left(void)
{
	size_t used = (size_t)pretend_setting("PRETEND_USED", 0) << 20;
	pthread_mutex_lock(&lock);
	for (int i = 0; i < MAX_ALLOCATED; i++)
		if (allocated[i].p && allocated[i].device == pretend_device())
			used += allocated[i].n;
	pthread_mutex_unlock(&lock);
	return used < all_bytes() ? all_bytes() - used : 0;
}
CUresult cuMemGetInfo(size_t *f, size_t *a)
{
	ALIVE();
	*a = all_bytes();
	*f = left();
	return 0;
}
CUresult cuMemAlloc(CUdeviceptr *p, size_t n)
{
	void *q;
	NEED(pretend_device() >= 0 && n > 0);
	ALIVE();
	if (n > left())
		return CUDA_ERROR_OUT_OF_MEMORY;
	if (pretend_is_dry()) { /* addresses alone */
		q = mmap(NULL, n, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
		NEED(q != MAP_FAILED);
	} else {
		q = aligned_alloc(256, (n + 255) / 256 * 256);
		NEED(q);
		memset(q, 0xee, n);
	}
	pthread_mutex_lock(&lock);
	note(allocated, q, n);
	pthread_mutex_unlock(&lock);
	*p = (CUdeviceptr)(uintptr_t)q;
	return 0;
}
CUresult cuMemFree(CUdeviceptr p)
{
	struct range *r;
	ALIVE();
	pretend_drain();
	pthread_mutex_lock(&lock);
	r = find(allocated, (void *)(uintptr_t)p, 1);
	NEED(p == 0 || (r && r->p == (char *)(uintptr_t)p));
	if (r)
		r->p = NULL;
	pthread_mutex_unlock(&lock);
	if (!pretend_is_dry())
		free((void *)(uintptr_t)p);
	else if (r)
		munmap((void *)(uintptr_t)p, r->n);
	return 0;
}
CUresult cuMemHostAlloc(void **p, size_t n, unsigned f)
{
	(void)f;
	NEED(pretend_device() >= 0 && n > 0);
	*p = malloc(n);
	return 0;
}
CUresult cuMemFreeHost(void *p)
{
	pretend_drain();
	free(p);
	return 0;
}
CUresult cuMemHostRegister(void *p, size_t n, unsigned f)
{
	CUresult r = 0;
	(void)f;
	NEED(pretend_device() >= 0 && p && n > 0);
	if (getenv("PRETEND_NO_REGISTER"))
		return CUDA_ERROR_NOT_PERMITTED;
	pthread_mutex_lock(&lock);
	NEED(!find(allocated, p, n));
	if (find(registered, p, n))
		r = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	else
		note(registered, p, n);
	pthread_mutex_unlock(&lock);
	return r;
}
CUresult cuMemHostUnregister(void *p)
{
	struct range *r;
	pthread_mutex_lock(&lock);
	r = find(registered, p, 1);
	NEED(r && r->p == p);
	NEED(!pretend_copies(r->p, r->n)); /* of any GPU */
	r->p = NULL;
	pthread_mutex_unlock(&lock);
	return 0;
}

/* ---- copies ---- */

static int run_copy(struct pretend_work *w)
{
	memmove(w->to, w->from, w->n);
	return 1;
}
static int run_set(struct pretend_work *w)
{
	memset(w->to, w->value, w->n);
	return 1;
}
static struct pretend_cost cost_of_copy(int to, int from, double n)
{
	return (struct pretend_cost){.name = to && from ? "copy"
					     : to       ? "copy from the host"
							: "copy to the host",
				     .read = from ? n : 0,
				     .written = to ? n : 0,
				     .known = 1};
}
/* to_gpu, from_gpu: 1 or 0: it must be on the stream's, or on none; -1: any. */
static CUresult copy(void *to, int to_gpu, const void *from, int from_gpu, size_t n, CUstream s)
{
	int device = s->device, to_is, from_is;

	NEED(pretend_device() >= 0 && n > 0);
	ALIVE();
	to_is = pretend_is_on_gpu(to, n, &device);
	NEED(to_gpu < 0 || (to_gpu == to_is && device == s->device));
	from_is = pretend_is_on_gpu(from, n, &device);
	NEED(from_gpu < 0 || (from_gpu == from_is && device == s->device));
	if (s->graph && !(to_is && from_is))
		return pretend_spoil(s, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	pretend_put(s, (struct pretend_work){.run = run_copy,
					     .to = to,
					     .from = from,
					     .n = n,
					     .cost = cost_of_copy(to_is, from_is, (double)n)});
	return 0;
}
CUresult cuMemcpyAsync(CUdeviceptr t, CUdeviceptr f, size_t n, CUstream s)
{
	return copy((void *)t, -1, (void *)f, -1, n, s);
}
CUresult cuMemcpyDtoHAsync(void *t, CUdeviceptr f, size_t n, CUstream s)
{
	NEED(s->device == pretend_device());
	return copy(t, 0, (void *)f, 1, n, s);
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr t, const void *f, size_t n, CUstream s)
{
	NEED(s->device == pretend_device());
	return copy((void *)t, 1, f, 0, n, s);
}
CUresult cuMemsetD8Async(CUdeviceptr t, unsigned char v, size_t n, CUstream s)
{
	int device = -1;
	ALIVE();
	NEED(n > 0 && pretend_is_on_gpu((void *)t, n, &device) && device == s->device);
	pretend_put(s, (struct pretend_work){.run = run_set, .to = (void *)t, .value = v, .n = n,
		.cost = {.name = "set", .written = (double)n, .known = 1}});
	return 0;
}
