/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL, pretended: ranks, of one process or of several, meet in a file of /dev/shm that has the
 * name of the unique id. PRETEND_NCCL_FAIL=N: a communicator fails at its Nth operation, later on,
 * as a network does; _DIE=N: rank 1 of one is killed there; _START=N: a communicator cannot be
 * made, with the result N, or 7 (ncclInProgress) for ever. A communicator is in progress for some
 * polls after it is made and after each group of operations, which start only then; nothing else
 * may be asked of it before.
 */
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "pretend.h"

enum { MAX = 16, BYTES = 8 << 20, POLLS = 3 };
struct seat {
	_Atomic uint64_t posted, taken;
	uint64_t count;
	int kind;
};
struct room {
	struct seat seats[MAX];
	_Atomic int n_opened; /* the last to open removes the name: none stays of killed ranks */
	char data[][BYTES];
};
struct ncclComm {
	struct room *room;
	int rank, n, device, aborted, polls; /* left until it is no longer in progress */
	uint64_t given;
	char name[64];
};
enum { ALL_REDUCE, REDUCE_SCATTER, REDUCE, ALL_GATHER, BROADCAST };
struct op {
	struct ncclComm *c;
	int kind, root, posted;
	const char *send;
	char *recv;
	size_t count;
	uint64_t number;
	CUstream stream;
};
static int has_failed(const struct ncclComm *c)
{
	const char *at = getenv("PRETEND_NCCL_FAIL");

	return at && (long)c->given >= atol(at);
}

static int run_op(struct pretend_work *w)
{
	struct op *o = (void *)w->args;
	struct room *r = o->c->room;
	const int n = o->c->n, me = o->c->rank;
	const size_t sent = o->count * (o->kind == REDUCE_SCATTER ? (size_t)n : 1) * 4;

	if (o->c->aborted)
		return 1;
	if (has_failed(o->c))
		return 0;
	if (!o->posted) {
		for (int i = 0; i < n; i++)
			if (r->seats[i].taken + 1 < o->number)
				return 0;
		NEED(sent <= BYTES);
		memcpy(r->data[me], o->send, sent);
		r->seats[me].count = o->count;
		r->seats[me].kind = o->kind;
		r->seats[me].posted = o->number;
		o->posted = 1;
	}
	for (int i = 0; i < n; i++)
		if (r->seats[i].posted < o->number)
			return 0;
	for (int i = 0; i < n; i++)
		NEED(r->seats[i].count == o->count && r->seats[i].kind == o->kind);
	const size_t first = o->kind == REDUCE_SCATTER ? (size_t)me * o->count : 0;
	float *out = (float *)o->recv;
	if (o->kind == ALL_GATHER)
		for (int i = 0; i < n; i++)
			memcpy(o->recv + (size_t)i * o->count * 4, r->data[i], o->count * 4);
	else if (o->kind == BROADCAST)
		memcpy(o->recv, r->data[o->root], o->count * 4);
	else if (o->kind != REDUCE || me == o->root)
		for (size_t k = 0; k < o->count; k++) {
			float sum = 0;
			for (int i = n; i-- > 0;)
				sum += ((float *)r->data[i])[first + k];
			out[k] = sum;
		}
	r->seats[me].taken = o->number;
	return 1;
}
static __thread int depth, n_queued, n_ended;
static __thread struct op queue[256];
static int opened;
/* Of operations whose group has ended: they begin when their communicator was polled. */
static void start_ended(const struct ncclComm *c)
{
	int kept = 0;

	for (int i = 0; i < n_queued; i++) {
		struct pretend_work w = {.run = run_op};

		if (queue[i].c != c || i >= n_ended) {
			queue[kept++] = queue[i];
			continue;
		}
		memcpy(w.args, &queue[i], sizeof queue[i]);
		pretend_put(queue[i].stream, w);
	}
	n_ended -= n_queued - kept;
	n_queued = kept;
}
static void flush_group(void)
{
	for (int i = n_ended; i < n_queued; i++)
		queue[i].c->polls = POLLS;
	n_ended = n_queued;
}
ncclResult_t ncclGroupStart(void)
{
	depth++;
	return 0;
}
ncclResult_t ncclGroupEnd(void)
{
	NEED(depth > 0);
	if (--depth == 0)
		flush_group();
	return n_queued > 0 ? ncclInProgress : ncclSuccess;
}
static ncclResult_t give(int kind, const void *s, void *r, size_t n, ncclDataType_t t, int root,
			 ncclComm_t c, cudaStream_t stream)
{
	NEED(t == ncclFloat32 && c && !c->aborted && c->polls == 0 && n > 0);
	NEED(n_queued < (int)(sizeof queue / sizeof queue[0]));
	NEED(((CUstream)stream)->device == c->device);
	if (getenv("PRETEND_NCCL_DIE") && c->rank == 1 &&
	    (long)c->given + 1 == atol(getenv("PRETEND_NCCL_DIE")))
		raise(SIGKILL);
	queue[n_queued++] = (struct op){c, kind, root, 0, s, r, n, ++c->given, (CUstream)stream};
	if (!depth)
		flush_group();
	return ncclInProgress;
}
ncclResult_t ncclAllReduce(const void *s, void *r, size_t n, ncclDataType_t t, ncclRedOp_t o,
			   ncclComm_t c, cudaStream_t st)
{
	(void)o;
	return give(ALL_REDUCE, s, r, n, t, 0, c, st);
}
ncclResult_t ncclReduceScatter(const void *s, void *r, size_t n, ncclDataType_t t, ncclRedOp_t o,
			       ncclComm_t c, cudaStream_t st)
{
	(void)o;
	return give(REDUCE_SCATTER, s, r, n, t, 0, c, st);
}
ncclResult_t ncclReduce(const void *s, void *r, size_t n, ncclDataType_t t, ncclRedOp_t o, int root,
			ncclComm_t c, cudaStream_t st)
{
	(void)o;
	return give(REDUCE, s, r, n, t, root, c, st);
}
ncclResult_t ncclAllGather(const void *s, void *r, size_t n, ncclDataType_t t, ncclComm_t c,
			   cudaStream_t st)
{
	return give(ALL_GATHER, s, r, n, t, 0, c, st);
}
ncclResult_t ncclBroadcast(const void *s, void *r, size_t n, ncclDataType_t t, int root,
			   ncclComm_t c, cudaStream_t st)
{
	return give(BROADCAST, s, r, n, t, root, c, st);
}
const char *ncclGetErrorString(ncclResult_t r)
{
	(void)r;
	return "pretended error";
}
const char *ncclGetLastError(ncclComm_t c)
{
	(void)c;
	return "";
}
ncclResult_t ncclGetUniqueId(ncclUniqueId *id)
{
	memset(id, 0, sizeof *id);
	snprintf(id->internal, 60, "/pretend-nccl-%d-%d", (int)getpid(), opened++);
	shm_unlink(id->internal); /* of a killed process that had this number */
	return 0;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t *out, int n, ncclUniqueId id, int rank,
				    ncclConfig_t *config)
{
	struct ncclComm *c = calloc(1, sizeof *c);
	const size_t size = sizeof(struct room) + (size_t)n * BYTES;
	int fd;
	NEED(rank >= 0 && rank < n && n <= MAX && config->blocking == 0);
	NEED(id.internal[0]);
	if (pretend_setting("PRETEND_NCCL_START", ncclInProgress) != ncclInProgress)
		return (ncclResult_t)pretend_setting("PRETEND_NCCL_START", 0);
	fd = shm_open(id.internal, O_RDWR | O_CREAT, 0600);
	NEED(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
	c->room = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (++c->room->n_opened == n)
		shm_unlink(id.internal);
	c->rank = rank;
	c->n = n;
	c->device = pretend_device();
	c->polls = getenv("PRETEND_NCCL_START") ? INT_MAX : POLLS;
	snprintf(c->name, sizeof c->name, "%s", id.internal);
	*out = c;
	return ncclInProgress;
}
ncclResult_t ncclCommAbort(ncclComm_t c)
{
	c->aborted = 1;
	shm_unlink(c->name);
	return 0;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *r)
{
	NEED(c && !c->aborted);
	if (c->polls > 0 && --c->polls == 0)
		start_ended(c);
	*r = has_failed(c) ? ncclRemoteError : c->polls > 0 ? ncclInProgress : ncclSuccess;
	return ncclSuccess;
}
