/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pretended driver's part for several GPUs of a process: pinned arrays of the host, and access
 * to each other's memory. PRETEND_PEERS=FILE gets a line for each pair that is enabled;
 * PRETEND_NO_PEERS: none can be.
 */
#include <pthread.h>

#include "pretend.h"

enum { MAX_PINNED = 4096, MAX_GPUS = 8 };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
	char *p;
	size_t n;
} pinned[MAX_PINNED];

static CUresult pin(char *p, size_t n)
{
	int at = -1;

	for (int i = MAX_PINNED; i-- > 0;)
		if (!pinned[i].p)
			at = i;
		else if (p < pinned[i].p + pinned[i].n && pinned[i].p < p + n)
			return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
	NEED(at >= 0);
	pinned[at].p = p;
	pinned[at].n = n;
	return 0;
}
CUresult cuMemHostRegister(void *p, size_t n, unsigned f)
{
	CUresult r;

	(void)f;
	pthread_mutex_lock(&lock);
	r = pin(p, n);
	pthread_mutex_unlock(&lock);
	return r;
}
/* Of no GPU may a copy be under way. */
CUresult cuMemHostUnregister(void *p)
{
	int i = 0;

	pthread_mutex_lock(&lock);
	while (i < MAX_PINNED && pinned[i].p != p)
		i++;
	NEED(i < MAX_PINNED);
	NEED(!pretend_copies(pinned[i].p, pinned[i].n));
	pinned[i].p = NULL;
	pthread_mutex_unlock(&lock);
	return 0;
}
CUresult cuDeviceCanAccessPeer(int *can, CUdevice d, CUdevice other)
{
	*can = d != other && !getenv("PRETEND_NO_PEERS");
	return 0;
}
CUresult cuCtxEnablePeerAccess(CUcontext context, unsigned f)
{
	static char enabled[MAX_GPUS][MAX_GPUS];
	const char *name = getenv("PRETEND_PEERS");
	const int from = pretend_device(), to = *(const int *)context; /* its number */
	FILE *file = name ? fopen(name, "a") : NULL;

	NEED(from >= 0 && from != to && f == 0 && !getenv("PRETEND_NO_PEERS"));
	if (file) {
		fprintf(file, "%d %d\n", from, to);
		fclose(file);
	}
	return enabled[from][to]++ ? CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED : 0;
}
