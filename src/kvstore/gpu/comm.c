/* SPDX-License-Identifier: Apache-2.0 */
/* NCCL's communicators: open, operations, errors, abort. */
#include "nccl.h"

#include <string.h>

#include <muster/base.h>

/* ---- errors ---- */

void mu_nccl_comm_close(struct mu_nccl *n)
{
	for (size_t i = 0; n->gpus && i < n->n_gpus; i++) {
		struct nccl_gpu *g = &n->gpus[i];

		if (!g->comm)
			continue;
		g->device->ops->memory->enter(g->device);
		n->api.ncclCommAbort(g->comm);
		g->comm = NULL;
	}
}

/* Aborts the communicators, whose operations will not end, and returns the error. gpu: the GPU of
 * this worker whose communicator reported it. */
static enum mu_status abort_with(struct mu_nccl *n, size_t gpu, ncclResult_t result,
				 const char *what)
{
	enum mu_status st = MU_OK;
	const char *more = n->api.ncclGetLastError(n->gpus[gpu].comm);
	const bool defect = result == ncclInvalidArgument || result == ncclInvalidUsage ||
			    result == ncclInternalError;
	char text[256];

	snprintf(text, sizeof text, "%s", more ? more : "");
	mu_nccl_comm_close(n);
	MU_FAIL(defect ? MU_ERR_DEVICE : MU_ERR_HARDWARE,
		"NCCL, gpu:%d, %s: %s%s%s; NCCL_DEBUG=WARN in the environment shows more",
		n->gpus[gpu].device->index, what, n->api.ncclGetErrorString(result),
		*text ? ": " : "", text);
out:
	return st;
}

/* *busy: has NCCL not yet started all operations? */
static enum mu_status poll_errors(struct mu_nccl *n, const char *what, bool *busy)
{
	enum mu_status st = MU_OK;

	*busy = false;
	for (size_t i = 0; i < n->n_gpus; i++) {
		ncclResult_t state = ncclSuccess, asked;

		if (!n->gpus[i].comm)
			continue;
		asked = n->api.ncclCommGetAsyncError(n->gpus[i].comm, &state);
		if (asked != ncclSuccess)
			MU_TRY(abort_with(n, i, asked, what));
		if (state != ncclSuccess && state != ncclInProgress)
			MU_TRY(abort_with(n, i, state, what));
		*busy |= state == ncclInProgress;
	}
out:
	return st;
}

enum mu_status mu_nccl_comm_check(struct mu_nccl *n, const char *what)
{
	bool busy;

	return poll_errors(n, what, &busy);
}

enum mu_status mu_nccl_comm_wait(struct mu_kv *kv, const char *what)
{
	enum mu_status st = MU_OK;
	struct mu_waiter waiter;
	bool busy;

	mu_waiter_init(&waiter, kv->members);
	waiter.members = NULL; /* GPUs do not wake */
	for (;;) {
		MU_TRY(poll_errors(kv->ends.nccl, what, &busy));
		if (!busy)
			break;
		if (kv->ends.nccl->serve)
			MU_TRY(kv->ends.nccl->serve(kv));
		mu_waiter_nap(&waiter);
		MU_TRY(mu_waiter_check(&waiter, NULL, what));
	}
out:
	return st;
}

/* ---- operations ---- */

enum mu_status mu_nccl_comm_move(struct mu_kv *kv, nccl_move_fn *move, size_t bucket)
{
	enum mu_status st = MU_OK;
	struct mu_nccl *n = kv->ends.nccl;
	const struct mu_kv_bucket *b = &kv->model.plan.buckets[bucket];
	ncclResult_t result, end;
	size_t i;

	if (!n->gpus[0].comm) /* one GPU of the layer */
		goto out;
	result = n->api.ncclGroupStart();
	if (result != ncclSuccess)
		MU_TRY(abort_with(n, 0, result, b->what));
	for (i = 0; i < n->n_gpus && nccl_is_taken(result) && st == MU_OK; i++) {
		struct nccl_gpu *g = &n->gpus[i];

		st = g->device->ops->memory->enter(g->device);
		if (st == MU_OK)
			result = move(kv, g, bucket);
	}
	end = n->api.ncclGroupEnd(); /* also after an error: a group must be closed */
	MU_TRY(st);
	if (!nccl_is_taken(result))
		MU_TRY(abort_with(n, i - 1, result, b->what));
	if (!nccl_is_taken(end))
		MU_TRY(abort_with(n, 0, end, b->what));
	MU_TRY(mu_nccl_comm_wait(kv, b->what));
out:
	return st;
}

/* ---- opening ---- */

/* The GPUs of a worker. */
struct gpu_list {
	uint64_t worker, n;
	CUuuid uuids[NCCL_MAX_GPUS];
};

static enum mu_status add_gpu(const struct mu_nccl *n, const struct mu_device *d,
			      struct gpu_list *gpu_list)
{
	enum mu_status st = MU_OK;
	CUdevice device;

	NCCL_CU(n, cuDeviceGet, &device, d->index);
	NCCL_CU(n, cuDeviceGetUuid, &gpu_list->uuids[gpu_list->n], device);
	gpu_list->n++;
out:
	return st;
}

static enum mu_status fill_list(const struct mu_kv *kv, struct gpu_list *gpu_list)
{
	enum mu_status st = MU_OK;
	const struct mu_nccl *n = kv->ends.nccl;

	gpu_list->worker = (uint64_t)kv->members->index;
	for (size_t i = 0; i < n->n_gpus; i++)
		MU_TRY(add_gpu(n, n->gpus[i].device, gpu_list));
out:
	return st;
}

/* Without a store. */
static enum mu_status fill_list_of(struct mu_device *const *devices, size_t n,
				   struct gpu_list *gpu_list)
{
	enum mu_status st = MU_OK;
	struct mu_nccl nccl = {.way = NCCL_PARTS};

	if (n > NCCL_MAX_GPUS)
		MU_FAIL(MU_ERR_USAGE, "%zu GPUs of a worker: at most %d are possible", n,
			NCCL_MAX_GPUS);
	MU_TRY(mu_nccl_load(&nccl.api, true));
	for (size_t i = 0; i < n; i++)
		MU_TRY(add_gpu(&nccl, devices[i], gpu_list));
out:
	return st;
}

/* The first of a's GPUs that is also b's; a->n if there is none. */
static size_t find_same(const struct gpu_list *a, const struct gpu_list *b)
{
	for (size_t i = 0; i < a->n; i++)
		for (size_t k = 0; k < b->n; k++)
			if (memcmp(&a->uuids[i], &b->uuids[k], sizeof(CUuuid)) == 0)
				return i;
	return a->n;
}

/* NCCL uses a GPU once. Every rank compares all lists, so all get the same answer. */
static enum mu_status check_lists(const struct gpu_list *lists, int n)
{
	enum mu_status st = MU_OK;

	for (int a = 0; a < n; a++)
		for (int b = a + 1; b < n; b++) {
			const size_t same = find_same(&lists[a], &lists[b]);

			if (same < lists[a].n)
				MU_FAIL(MU_ERR_USAGE,
					"workers %d and %d have the same GPU (number %zu of worker "
					"%d's), which NCCL refuses: each worker needs GPUs of its "
					"own, so there can be at most as many workers as GPUs",
					(int)lists[a].worker, (int)lists[b].worker, same,
					(int)lists[a].worker);
		}
out:
	return st;
}

enum mu_status mu_kv_gpus_apart(struct mu_device *const *devices, size_t n,
				const struct mu_members *m, bool *apart)
{
	enum mu_status st = MU_OK;
	int n_ranks;
	struct gpu_list mine, *lists = NULL;

	memset(&mine, 0, sizeof mine);
	*apart = true;
	MU_TRY(mu_peers_agree(m, fill_list_of(devices, n, &mine)));
	MU_TRY(mu_peers_gather(m, &mine, sizeof mine, (void **)&lists, &n_ranks));
	for (int a = 0; a < n_ranks; a++)
		for (int b = a + 1; b < n_ranks; b++)
			*apart = *apart && find_same(&lists[a], &lists[b]) == lists[a].n;
out:
	mu_free(lists);
	return st;
}

static enum mu_status count_gpus(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct mu_nccl *n = kv->ends.nccl;
	int me, n_workers;
	struct gpu_list mine, *lists = NULL;

	memset(&mine, 0, sizeof mine);
	MU_TRY(mu_comm_rank(n->comm, &me, &n_workers));
	MU_TRY(MU_ALLOC(lists, (size_t)n_workers, "GPUs of the workers"));
	MU_TRY(mu_agree(fill_list(kv, &mine), n->comm));
	MU_TRY(mu_allgather(&mine, lists, sizeof mine, n->comm));
	MU_TRY(check_lists(lists, n_workers));
	n->first = n->n_all = 0;
	for (int w = 0; w < n_workers; w++) {
		if (w < me)
			n->first += lists[w].n;
		n->n_all += lists[w].n;
	}
out:
	mu_free(lists);
	return st;
}

static const char connect[] =
	"NCCL's connections between all GPUs (NCCL_SOCKET_IFNAME chooses the network)";

static enum mu_status begin(struct mu_kv *kv, ncclUniqueId id)
{
	enum mu_status st = MU_OK;
	struct mu_nccl *n = kv->ends.nccl;
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclResult_t result = n->api.ncclGroupStart(), end;
	size_t i;

	config.blocking = 0;
	if (result != ncclSuccess)
		MU_TRY(abort_with(n, 0, result, "ncclGroupStart"));
	for (i = 0; i < n->n_gpus && nccl_is_taken(result) && st == MU_OK; i++) {
		struct nccl_gpu *g = &n->gpus[i];

		st = g->device->ops->memory->enter(g->device);
		if (st == MU_OK)
			result = n->api.ncclCommInitRankConfig(&g->comm, (int)n->n_all, id,
							       (int)(n->first + i), &config);
	}
	end = n->api.ncclGroupEnd();
	MU_TRY(st);
	if (!nccl_is_taken(result))
		MU_TRY(abort_with(n, i - 1, result, connect));
	if (!nccl_is_taken(end))
		MU_TRY(abort_with(n, 0, end, connect));
	MU_TRY(mu_nccl_comm_wait(kv, connect));
out:
	return st;
}

/* On the first worker. */
static enum mu_status make_id(struct mu_nccl *n, ncclUniqueId *id)
{
	enum mu_status st = MU_OK;
	ncclResult_t result = ncclSuccess;

	if (n->first == 0)
		result = n->api.ncclGetUniqueId(id);
	if (result != ncclSuccess)
		MU_TRY(abort_with(n, 0, result, "ncclGetUniqueId"));
out:
	return st;
}

enum mu_status mu_nccl_comm_open(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct mu_nccl *n = kv->ends.nccl;
	ncclUniqueId id;

	memset(&id, 0, sizeof id);
	MU_TRY(count_gpus(kv));
	if (n->way == NCCL_PARTS && n->n_all == 1)
		goto out;
	MU_TRY(mu_agree(make_id(n, &id), n->comm));
	MU_TRY(mu_bcast(&id, sizeof id, 0, n->comm));
	MU_TRY(mu_agree(begin(kv, id), n->comm));
out:
	return st;
}
