/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the GPUs of a process share: direct access to each other's memory, and arrays of the host
 * that are pinned for all of them. Threads open and close GPUs and make mirrors concurrently.
 */
#include "device/cuda/cuda.h"

#include <pthread.h>
#include <stdlib.h>

#include <muster/base.h>

struct pinned {
	struct pinned *next;
	void *host;
	size_t nbytes;
	int users;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct cuda_device *joined;
static struct pinned *arrays;

/* ---- direct copies ---- */

/* `from` gets access to the memory of `to`. Two devices may be the same GPU. */
static enum mu_status enable(struct cuda_device *from, struct cuda_device *to)
{
	enum mu_status st = MU_OK;
	int can = 0;
	CUresult result;

	if (from->number == to->number)
		goto out;
	CU(from, cuDeviceCanAccessPeer, &can, from->number, to->number);
	if (!can)
		goto out;
	CU(from, cuCtxSetCurrent, from->context);
	result = from->api.cuCtxEnablePeerAccess(to->context, 0);
	if (result != CUDA_SUCCESS && result != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED)
		mu_log_detail("gpu:%d: copies to gpu:%d go through the host: %s", from->index,
			      to->index, mu_cuda_text(&from->api, result));
out:
	return st;
}

enum mu_status mu_cuda_join(struct cuda_device *d)
{
	enum mu_status st = MU_OK;

	pthread_mutex_lock(&lock);
	for (struct cuda_device *other = joined; other; other = other->next) {
		MU_TRY(enable(d, other));
		MU_TRY(enable(other, d));
	}
	d->next = joined;
	joined = d;
	CU(d, cuCtxSetCurrent, d->context);
out:
	pthread_mutex_unlock(&lock);
	return st;
}

void mu_cuda_leave(struct cuda_device *d)
{
	struct cuda_device **link = &joined;

	pthread_mutex_lock(&lock);
	while (*link && *link != d)
		link = &(*link)->next;
	if (*link)
		*link = d->next;
	pthread_mutex_unlock(&lock);
}

/* ---- pinned arrays of the host ---- */

static struct pinned **find(const void *host, size_t nbytes)
{
	struct pinned **link = &arrays;

	while (*link && ((*link)->host != host || (*link)->nbytes != nbytes))
		link = &(*link)->next;
	return link;
}

bool mu_cuda_pin(struct cuda_device *d, void *host, size_t nbytes)
{
	struct pinned *p;
	bool ok = true;

	pthread_mutex_lock(&lock);
	p = *find(host, nbytes);
	if (!p) {
		p = calloc(1, sizeof *p);
		ok = p && d->api.cuMemHostRegister(host, nbytes, CU_MEMHOSTREGISTER_PORTABLE) ==
				  CUDA_SUCCESS;
		if (ok) {
			*p = (struct pinned){.next = arrays, .host = host, .nbytes = nbytes};
			arrays = p;
		} else {
			free(p);
		}
	}
	if (ok)
		p->users++;
	pthread_mutex_unlock(&lock);
	return ok;
}

void mu_cuda_unpin(struct cuda_device *d, void *host, size_t nbytes)
{
	struct pinned **link, *p;

	pthread_mutex_lock(&lock);
	link = find(host, nbytes);
	p = *link;
	if (p && --p->users == 0) {
		d->api.cuMemHostUnregister(host);
		*link = p->next;
		free(p);
	}
	pthread_mutex_unlock(&lock);
}
