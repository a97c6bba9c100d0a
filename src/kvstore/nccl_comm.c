/* SPDX-License-Identifier: Apache-2.0 */
/* Communicators of NCCL: how they are made, watched and given up. */
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

/* No operation of these communicators ends any more. */
static enum mu_status give_up(struct mu_nccl *n, ncclResult_t result, const char *what)
{
	enum mu_status st = MU_OK;
	const char *more = n->api.ncclGetLastError(n->gpus[0].comm);
	char text[256];

	snprintf(text, sizeof text, "%s", more ? more : "");
	mu_nccl_comm_close(n);
	MU_FAIL(MU_ERR_DEVICE, "NCCL, %s: %s%s%s; NCCL_DEBUG=WARN in the environment tells more",
		what, n->api.ncclGetErrorString(result), *text ? ": " : "", text);
out:
	return st;
}

/* *busy: has NCCL still to take what it was given? */
static enum mu_status look(struct mu_nccl *n, const char *what, bool *busy)
{
	enum mu_status st = MU_OK;

	*busy = false;
	for (size_t i = 0; i < n->n_gpus; i++) {
		ncclResult_t state = ncclSuccess, asked;

		if (!n->gpus[i].comm)
			continue;
		asked = n->api.ncclCommGetAsyncError(n->gpus[i].comm, &state);
		if (asked != ncclSuccess)
			MU_TRY(give_up(n, asked, what));
		if (state != ncclSuccess && state != ncclInProgress)
			MU_TRY(give_up(n, state, what));
		*busy |= state == ncclInProgress;
	}
out:
	return st;
}

enum mu_status mu_nccl_comm_check(struct mu_nccl *n)
{
	bool busy;

	return look(n, "while waiting for sums", &busy);
}

enum mu_status mu_nccl_comm_settle(struct mu_kv *kv, const char *what)
{
	enum mu_status st = MU_OK;
	struct mu_waiter waiter;
	bool busy;

	mu_waiter_init(&waiter, kv->topology);
	waiter.topology = NULL; /* GPUs do not wake */
	for (;;) {
		MU_TRY(look(kv->nccl, what, &busy));
		if (!busy)
			break;
		mu_waiter_nap(&waiter);
		MU_TRY(mu_waiter_check(&waiter, NULL, what));
	}
out:
	return st;
}

/* ---- operations ---- */

static bool is_taken(ncclResult_t result)
{
	return result == ncclSuccess || result == ncclInProgress;
}

enum mu_status mu_nccl_comm_move(struct mu_kv *kv, nccl_move_fn *move, size_t bucket)
{
	enum mu_status st = MU_OK;
	struct mu_nccl *n = kv->nccl;
	const struct mu_kv_bucket *b = &kv->plan.buckets[bucket];
	ncclResult_t result = n->api.ncclGroupStart(), end;

	if (result != ncclSuccess)
		MU_TRY(give_up(n, result, b->what));
	for (size_t i = 0; i < n->n_gpus && is_taken(result) && st == MU_OK; i++) {
		struct nccl_gpu *g = &n->gpus[i];

		st = g->device->ops->memory->enter(g->device);
		if (st == MU_OK)
			result = move(n, g, b->at, b->n);
	}
	end = n->api.ncclGroupEnd(); /* whatever happened: nothing can be called inside a group */
	MU_TRY(st);
	if (!is_taken(result) || !is_taken(end))
		MU_TRY(give_up(n, is_taken(result) ? end : result, b->what));
	MU_TRY(mu_nccl_comm_settle(kv, b->what));
out:
	return st;
}

/* ---- opening ---- */

/* The GPUs of a worker. */
struct card {
	uint64_t n;
	CUuuid uuids[NCCL_MAX_GPUS];
};

static enum mu_status fill_card(const struct mu_nccl *n, struct card *card)
{
	enum mu_status st = MU_OK;

	card->n = n->n_gpus;
	for (size_t i = 0; i < n->n_gpus; i++) {
		CUdevice device;

		NCCL_CU(n, cuDeviceGet, &device, n->gpus[i].device->index);
		NCCL_CU(n, cuDeviceGetUuid, &card->uuids[i], device);
	}
out:
	return st;
}

/* NCCL takes a GPU once. Every rank looks at all cards, so all come to the same answer. */
static enum mu_status check_cards(const struct mu_kv *kv, const struct card *cards)
{
	enum mu_status st = MU_OK;
	const int n = kv->topology->num_workers;

	for (int a = 0; a < n; a++)
		for (int b = a + 1; b < n; b++)
			for (size_t i = 0; i < cards[a].n * cards[b].n; i++)
				if (memcmp(&cards[a].uuids[i / cards[b].n],
					   &cards[b].uuids[i % cards[b].n], sizeof(CUuuid)) == 0)
					MU_FAIL(MU_ERR_USAGE,
						"workers %d and %d have the same GPU (number %zu "
						"of "
						"worker %d's), which NCCL refuses: each worker "
						"needs "
						"GPUs of its own, --gpus auto deals them out, and "
						"at "
						"most as many workers as GPUs (mpirun -np)",
						a, b, i / cards[b].n, a);
out:
	return st;
}

static enum mu_status meet(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct mu_nccl *n = kv->nccl;
	const int n_workers = kv->topology->num_workers;
	struct card mine, *cards = NULL;

	memset(&mine, 0, sizeof mine);
	MU_TRY(MU_ALLOC(cards, (size_t)n_workers, "GPUs of the workers"));
	MU_TRY(mu_agree(fill_card(n, &mine), kv->comm));
	MU_TRY(mu_allgather(&mine, cards, sizeof mine, kv->comm));
	MU_TRY(check_cards(kv, cards));
	n->first = n->n_all = 0;
	for (int w = 0; w < n_workers; w++) {
		if (w < kv->topology->index)
			n->first += cards[w].n;
		n->n_all += cards[w].n;
	}
out:
	mu_free(cards);
	return st;
}

static enum mu_status begin(struct mu_kv *kv, ncclUniqueId id)
{
	enum mu_status st = MU_OK;
	struct mu_nccl *n = kv->nccl;
	ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
	ncclResult_t result = n->api.ncclGroupStart(), end;

	config.blocking = 0;
	if (result != ncclSuccess)
		MU_TRY(give_up(n, result, "ncclGroupStart"));
	for (size_t i = 0; i < n->n_gpus && is_taken(result) && st == MU_OK; i++) {
		struct nccl_gpu *g = &n->gpus[i];

		st = g->device->ops->memory->enter(g->device);
		if (st == MU_OK)
			result = n->api.ncclCommInitRankConfig(&g->comm, (int)n->n_all, id,
							       (int)(n->first + i), &config);
	}
	end = n->api.ncclGroupEnd();
	MU_TRY(st);
	if (!is_taken(result) || !is_taken(end))
		MU_TRY(give_up(n, is_taken(result) ? end : result, "ncclCommInitRankConfig"));
	MU_TRY(mu_nccl_comm_settle(kv, "a communicator of all GPUs"));
out:
	return st;
}

static enum mu_status make_id(struct mu_kv *kv, ncclUniqueId *id)
{
	enum mu_status st = MU_OK;
	ncclResult_t result = ncclSuccess;

	if (kv->topology->index == 0)
		result = kv->nccl->api.ncclGetUniqueId(id);
	if (result != ncclSuccess)
		MU_TRY(give_up(kv->nccl, result, "ncclGetUniqueId"));
out:
	return st;
}

enum mu_status mu_nccl_comm_open(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	ncclUniqueId id;

	memset(&id, 0, sizeof id);
	MU_TRY(meet(kv));
	MU_TRY(mu_agree(make_id(kv, &id), kv->comm));
	MU_TRY(mu_bcast(&id, sizeof id, 0, kv->comm));
	MU_TRY(mu_agree(begin(kv, id), kv->comm));
out:
	return st;
}
