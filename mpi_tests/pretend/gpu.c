/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pretended driver of GPUs: what a GPU would do happens in the memory of the host, as late as the
 * driver allows, and streams take turns at random (PRETEND_SEED). So a missing wait between streams
 * shows as wrong numbers. PRETEND_GPUS: how many there are (2). Kernels are our own, compiled for
 * the host, of one thread (mpi_tests/kernels runs whole blocks); memory is in memory.c, cuBLAS and
 * cuDNN are in math.c. PRETEND_IDLE: a file for how often a wait of the host left the GPUs without
 * work.
 */
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "pretend.h"

/* ---- kernels ---- */

enum { MAX_THREADS = 256 }; /* __launch_bounds__ */

#define EACH(name) \
	static void run_##name(const void *p) \
	{ \
		const struct cuda_##name *a = p; \
		for (size_t i = 0; i < a->n; i++) \
			name##_at(a, i); \
	}
#define EIGHTS(name) \
	static void run_##name(const void *p) \
	{ \
		const struct cuda_##name *a = p; \
		for (size_t i = 0; i < a->n; i += CUDA_EIGHT) \
			name##_at(a, i); \
	}
#define ROWS(name) \
	static void run_##name(const void *p) \
	{ \
		const struct cuda_##name *a = p; \
		for (size_t i = 0; i < a->n; i++) \
			name##_row(a, i, 0, 1); \
	}
CUDA_EACH(EACH)
CUDA_EIGHTS(EIGHTS)
CUDA_ROWS(ROWS)
CUDA_WARPS(ROWS)
#define ENTRY(name) {#name, run_##name, sizeof(struct cuda_##name)},
static const struct pretend_kernel {
	const char *name;
	void (*run)(const void *);
	size_t nbytes;
} kernels[] = {CUDA_KERNELS(ENTRY){NULL, NULL, 0}};

/* ---- streams ---- */

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct CUstream_st *streams;
static unsigned seed;
static unsigned draw(void)
{
	seed = seed * 1664525u + 1013904223u;
	return seed >> 16;
}

/* Recorded work, with its arguments; spoilt: something could not be recorded. */
struct CUgraph_st {
	struct pretend_work *head, *last;
	int spoilt;
};

void pretend_put(CUstream s, struct pretend_work w)
{
	struct pretend_work *n;

	if (w.cost.name && pretend_is_dry() && !s->graph) {
		pretend_count(&w.cost);
		return;
	}
	n = malloc(sizeof *n);
	*n = w;
	n->next = NULL;
	pthread_mutex_lock(&lock);
	if (s->graph) {
		*(s->graph->last ? &s->graph->last->next : &s->graph->head) = n;
		s->graph->last = n;
	} else {
		*(s->last ? &s->last->next : &s->head) = n;
		s->last = n;
	}
	pthread_mutex_unlock(&lock);
}

CUresult pretend_spoil(CUstream s, CUresult why)
{
	s->graph->spoilt = 1;
	return why;
}

static int try_head(CUstream s)
{
	struct pretend_work *w = s->head;

	if (!w || !w->run(w))
		return 0;
	pretend_count(&w->cost);
	s->head = w->next;
	if (!s->head)
		s->last = NULL;
	free(w);
	return 1;
}

/* One piece of work of a random stream, if any can be done. */
static int step(void)
{
	int n = 0, k;

	for (CUstream s = streams; s; s = s->next)
		n += s->head != NULL;
	if (n == 0)
		return 0;
	k = (int)(draw() % (unsigned)n);
	for (int round = 0; round < 2; round++)
		for (CUstream s = streams; s; s = s->next)
			if (s->head && k-- <= 0 && try_head(s))
				return 1;
	return 0;
}

static int has_work(void)
{
	int n = 0;

	pthread_mutex_lock(&lock);
	for (CUstream s = streams; s; s = s->next)
		n += s->head != NULL;
	pthread_mutex_unlock(&lock);
	return n > 0;
}

/* After a wait of the host. had_work: there was work when it began. */
static unsigned long n_idle;
static void count_idle(int had_work)
{
	if (!had_work || has_work())
		return;
	pthread_mutex_lock(&lock);
	n_idle++;
	pthread_mutex_unlock(&lock);
}
__attribute__((destructor)) static void write_idle(void)
{
	const char *name = getenv("PRETEND_IDLE");
	FILE *f = name ? fopen(name, "w") : NULL;

	if (f && fprintf(f, "%lu\n", n_idle) > 0)
		fclose(f);
}

static int run_record(struct pretend_work *w)
{
	w->mark->done = 1;
	return 1;
}
static int run_wait(struct pretend_work *w)
{
	return !w->mark || w->mark->done;
}
static int run_kernel(struct pretend_work *w)
{
	w->kernel->run(w->args);
	return 1;
}

/* ---- the driver ---- */

struct CUctx_st {
	int number;
};
static struct CUctx_st contexts[8];
static __thread CUcontext now;
int pretend_device(void)
{
	return now ? now->number : -1;
}
static int n_devices(void)
{
	return (int)pretend_setting("PRETEND_GPUS", 2);
}
#define NOT_IN_CONTEXT(s) ((s)->device != pretend_device())

CUresult cuInit(unsigned f)
{
	(void)f;
	seed = (unsigned)pretend_setting("PRETEND_SEED", 1);
	return (CUresult)pretend_setting("PRETEND_INIT", n_devices() ? 0 : CUDA_ERROR_NO_DEVICE);
}
CUresult cuGetErrorString(CUresult e, const char **t)
{
	static __thread char text[32];
	snprintf(text, sizeof text, "pretended error %d", e);
	*t = text;
	return 0;
}
CUresult cuDriverGetVersion(int *v)
{
	*v = (int)pretend_setting("PRETEND_DRIVER", 13000);
	return 0;
}
CUresult cuDeviceGetCount(int *n)
{
	*n = n_devices();
	return 0;
}
CUresult cuDeviceGet(CUdevice *d, int i)
{
	*d = i;
	return 0;
}
CUresult cuDeviceGetName(char *t, int n, CUdevice d)
{
	snprintf(t, (size_t)n, "pretended %d", d);
	return 0;
}
CUresult cuDeviceGetPCIBusId(char *t, int n, CUdevice d)
{
	snprintf(t, (size_t)n, "0000:%02x:00.0", (unsigned)d);
	return 0;
}
CUresult cuDeviceGetUuid(CUuuid *u, CUdevice d)
{
	const char *r = getenv("PMI_RANK") ? getenv("PMI_RANK") : getenv("OMPI_COMM_WORLD_RANK");

	memset(u, 0, sizeof *u);
	u->bytes[0] = (char)(1 + d);
	if (getenv("PRETEND_OWN"))
		u->bytes[1] = r ? (char)atoi(r) : 0;
	return 0;
}
CUresult cuDeviceGetAttribute(int *v, CUdevice_attribute a, CUdevice d)
{
	(void)d;
	*v = a == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR   ? 9
	     : a == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR ? 0
	     : pretend_is_dry()                                  ? 132
								 : 4;
	return 0;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d)
{
	contexts[d].number = d;
	*c = &contexts[d];
	return (CUresult)pretend_setting("PRETEND_OPEN", 0);
}
CUresult cuDevicePrimaryCtxRelease(CUdevice d)
{
	(void)d;
	return 0;
}
CUresult cuCtxGetDevice(CUdevice *d)
{
	NEED(now);
	*d = now->number;
	return 0;
}
CUresult cuCtxSetCurrent(CUcontext c)
{
	now = c;
	return 0;
}
void pretend_drain(void)
{
	pthread_mutex_lock(&lock);
	while (!pretend_lost() && step()) {
	}
	pthread_mutex_unlock(&lock);
}
int pretend_copies(const char *p, size_t n)
{
	int found = 0;
	pthread_mutex_lock(&lock);
	for (const struct CUstream_st *s = streams; s && !pretend_lost(); s = s->next)
		for (const struct pretend_work *w = s->head; w; w = w->next)
			found |= (size_t)((char *)w->to - p) < n ||
				 (size_t)((const char *)w->from - p) < n;
	pthread_mutex_unlock(&lock);
	return found;
}
CUresult cuStreamCreate(CUstream *s, unsigned f)
{
	ALIVE();
	NEED(now);
	(void)f;
	*s = calloc(1, sizeof **s);
	(*s)->device = pretend_device();
	pthread_mutex_lock(&lock);
	(*s)->next = streams;
	streams = *s;
	pthread_mutex_unlock(&lock);
	return 0;
}
CUresult cuStreamDestroy(CUstream s)
{
	CUstream *l = &streams;
	pretend_drain();
	pthread_mutex_lock(&lock);
	while (*l != s)
		l = &(*l)->next;
	*l = s->next;
	pthread_mutex_unlock(&lock);
	free(s);
	return 0;
}
CUresult cuEventCreate(CUevent *e, unsigned f)
{
	(void)f;
	*e = calloc(1, sizeof **e);
	(*e)->device = pretend_device();
	return 0;
}
CUresult cuEventDestroy(CUevent e)
{
	pretend_drain();
	free(e);
	return 0;
}
CUresult cuEventRecord(CUevent e, CUstream s)
{
	ALIVE();
	NEED(e->device == s->device && !s->graph);
	e->latest = calloc(1, sizeof *e->latest); /* never freed: streams may wait for it */
	pretend_put(s, (struct pretend_work){.run = run_record, .mark = e->latest});
	return 0;
}

CUresult cuStreamWaitEvent(CUstream s, CUevent e, unsigned f)
{
	ALIVE();
	(void)f;
	if (s->graph) /* no event here is recorded with it */
		return pretend_spoil(s, CUDA_ERROR_STREAM_CAPTURE_ISOLATION);
	pretend_put(s, (struct pretend_work){.run = run_wait, .mark = e->latest});
	return 0;
}

CUresult cuEventQuery(CUevent e)
{
	CUresult r;
	ALIVE();
	pthread_mutex_lock(&lock);
	for (unsigned i = draw() % 8; i-- > 0;)
		step();
	r = !e->latest || e->latest->done ? 0 : CUDA_ERROR_NOT_READY;
	pthread_mutex_unlock(&lock);
	return r;
}
CUresult cuEventSynchronize(CUevent e)
{
	const int had_work = has_work();

	while (!pretend_lost() && cuEventQuery(e))
		;
	count_idle(had_work);
	return pretend_lost();
}
CUresult cuStreamSynchronize(CUstream s)
{
	const int had_work = has_work();
	int left = 1;
	ALIVE();
	if (s->graph)
		return pretend_spoil(s, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
	while (left && !pretend_lost()) {
		pthread_mutex_lock(&lock);
		step();
		left = s->head != NULL;
		pthread_mutex_unlock(&lock);
	}
	count_idle(had_work);
	return pretend_lost();
}
CUresult cuModuleGetFunction(CUfunction *f, CUmodule m, const char *name)
{
	NEED(pretend_has_kernel(m, name));
	for (const struct pretend_kernel *k = kernels; k->name; k++)
		if (!strcmp(k->name, name)) {
			*f = (CUfunction)(uintptr_t)k;
			return 0;
		}
	return CUDA_ERROR_NOT_FOUND;
}
CUresult cuLaunchKernel(CUfunction f, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
			unsigned by, unsigned bz, unsigned sh, CUstream s, void **params,
			void **extra)
{
	struct pretend_work w = {.run = run_kernel,
				 .kernel = (const struct pretend_kernel *)(uintptr_t)f};

	NEED(!NOT_IN_CONTEXT(s));
	NEED(gx > 0 && gx <= INT_MAX && gy == 1 && gz == 1 && by == 1 && bz == 1);
	NEED(bx > 0 && bx <= MAX_THREADS && sh <= 49152 && !extra);
	NEED(w.kernel->nbytes <= sizeof w.args);
	if (pretend_launch())
		return pretend_lost();
	memcpy(w.args, params[0], w.kernel->nbytes);
	w.cost = pretend_cost_of(w.kernel->name, w.args);
	pretend_put(s, w);
	return 0;
}

/* ---- graphs: PRETEND_NO_GRAPH: none can be begun ("begin"), or made to run ("run") ---- */
static bool fails(const char *what)
{
	const char *asked = getenv("PRETEND_NO_GRAPH");
	return asked && strcmp(asked, what) == 0;
}

CUresult cuStreamBeginCapture(CUstream s, CUstreamCaptureMode mode)
{
	NEED(!NOT_IN_CONTEXT(s) && !s->graph && mode == CU_STREAM_CAPTURE_MODE_RELAXED);
	if (fails("begin"))
		return CUDA_ERROR_NOT_SUPPORTED;
	s->graph = calloc(1, sizeof *s->graph);
	return 0;
}
CUresult cuStreamEndCapture(CUstream s, CUgraph *g)
{
	NEED(s->graph);
	*g = s->graph->spoilt ? NULL : s->graph;
	s->graph = NULL;
	return *g ? 0 : CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
}
CUresult cuGraphInstantiate(CUgraphExec *x, CUgraph g, unsigned long long f)
{
	struct CUgraph_st *copy = calloc(1, sizeof *copy);
	NEED(f == 0);
	*x = (CUgraphExec)copy;
	if (fails("run"))
		return CUDA_ERROR_NOT_SUPPORTED;
	*copy = *g;
	g->head = NULL;
	return 0;
}
CUresult cuGraphDestroy(CUgraph g)
{
	for (struct pretend_work *w = g->head, *next; w; w = next) {
		next = w->next;
		free(w);
	}
	free(g);
	return 0;
}
CUresult cuGraphExecDestroy(CUgraphExec x)
{
	return cuGraphDestroy((CUgraph)x);
}
CUresult cuGraphLaunch(CUgraphExec x, CUstream s)
{
	NEED(!NOT_IN_CONTEXT(s) && !s->graph);
	if (pretend_launch())
		return pretend_lost();
	for (const struct pretend_work *w = ((CUgraph)x)->head; w; w = w->next)
		pretend_put(s, *w);
	return 0;
}
