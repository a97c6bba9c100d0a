/* SPDX-License-Identifier: Apache-2.0 */
/* The store whose sums are NCCL's, or of one worker's GPUs. See nccl.h, and gpus.h for its
 * users. */
#include "nccl.h"

#include <muster/base.h>

/* ---- life ---- */

enum mu_status mu_nccl_open(struct mu_kv *kv, enum nccl_way way)
{
	enum mu_status st = MU_OK;

	MU_TRY(MU_ALLOC(kv->ends.nccl, 1, "store of GPUs"));
	kv->ends.nccl->way = way;
	kv->ends.nccl->comm = kv->comm;
	kv->ends.nccl->request = MPI_REQUEST_NULL;
out:
	return st;
}

static enum nccl_way way_of(const struct mu_kv_kind *kind)
{
	if (kind->one_worker)
		return NCCL_PEERS;
	return kind->workers_update ? NCCL_ALL_REDUCE : NCCL_SHARDS;
}

static enum mu_status open_nccl(struct mu_kv *kv, const struct mu_kv_config *config)
{
	enum mu_status st = MU_OK;
	const struct mu_rule *rule;
	struct mu_nccl *n;

	MU_TRY(mu_nccl_open(kv, way_of(&kv->kind)));
	n = kv->ends.nccl;
	MU_TRY(mu_rule_find(&rule, config->optim.name));
	n->config = config->optim;
	n->config.name = rule->name; /* the caller may free its string */
	n->config.prior = false;
	MU_TRY(MU_ALLOC(n->all, (size_t)kv->ends.n_workers, "samples of the workers"));
	if (n->way != NCCL_SHARDS)
		MU_TRY(mu_kv_update_open(kv, &kv->update, &config->optim));
out:
	return st;
}

static void close_gpu(struct mu_nccl *n, struct nccl_gpu *g, size_t n_buckets)
{
	const struct mu_device_memory *memory = g->device->ops->memory;

	if (memory->enter(g->device) != MU_OK) /* the driver then frees what is open */
		return;
	for (size_t b = 0; g->summed && b < n_buckets; b++)
		if (g->summed[b])
			n->api.cuEventDestroy(g->summed[b]);
	if (g->order)
		n->api.cuEventDestroy(g->order);
	if (g->done)
		n->api.cuEventDestroy(g->done);
	mu_nccl_peers_close(n, g);
	if (g->stream)
		n->api.cuStreamDestroy(g->stream);
	if (g->weights)
		memory->unmirror(g->device, g->weights);
	if (g->gradients)
		memory->unmirror(g->device, g->gradients);
}

/* Copies from and to the host end before its memory is freed. */
static void end_streams(struct mu_nccl *n)
{
	for (size_t i = 0; i < n->n_gpus; i++) {
		const struct nccl_gpu *g = &n->gpus[i];

		if (g->stream && g->device->ops->memory->enter(g->device) == MU_OK)
			n->api.cuStreamSynchronize(g->stream);
	}
}

void mu_nccl_leave(struct mu_kv *kv)
{
	struct mu_nccl *n = kv->ends.nccl;

	if (!n || !n->gpus)
		return;
	mu_nccl_comm_close(n);
	end_streams(n);
	mu_nccl_updates_close(kv);
	for (size_t i = 0; i < n->n_gpus; i++) {
		if (n->gpus[i].device)
			close_gpu(n, &n->gpus[i], kv->model.plan.n_buckets);
		mu_free(n->gpus[i].summed);
	}
	mu_free(n->gpus);
	n->gpus = NULL;
}

void mu_nccl_close(struct mu_kv *kv)
{
	struct mu_nccl *n = kv->ends.nccl;

	if (!n)
		return;
	mu_nccl_shards_close(n);
	if (n->comm != kv->comm)
		mu_comm_close(&n->comm);
	mu_free(n->homes);
	mu_free(n->pieces);
	mu_free(n->all);
	mu_free(n);
	kv->ends.nccl = NULL;
}

/* ---- devices ---- */

static enum mu_status open_gpu(struct mu_kv *kv, const struct mu_kv_device *from,
			       struct nccl_gpu *g)
{
	enum mu_status st = MU_OK;
	const struct mu_nccl *n = kv->ends.nccl;
	const struct mu_device_memory *memory = from->device->ops->memory;

	g->device = from->device;
	MU_TRY(memory->enter(g->device));
	g->work = memory->stream(g->device);
	MU_TRY(memory->mirror(g->device, &g->weights, kv->arrays.weights, kv->model.plan.n));
	MU_TRY(memory->mirror(g->device, &g->gradients, from->gradients, kv->model.plan.n));
	NCCL_CU(n, cuStreamCreate, &g->stream, CU_STREAM_NON_BLOCKING);
	NCCL_CU(n, cuEventCreate, &g->order, CU_EVENT_DISABLE_TIMING);
	NCCL_CU(n, cuEventCreate, &g->done, CU_EVENT_DISABLE_TIMING);
	MU_TRY(MU_ALLOC(g->summed, kv->model.plan.n_buckets, "events of the buckets"));
	for (size_t b = 0; b < kv->model.plan.n_buckets; b++)
		NCCL_CU(n, cuEventCreate, &g->summed[b], CU_EVENT_DISABLE_TIMING);
out:
	return st;
}

enum mu_status mu_nccl_open_gpus(struct mu_kv *kv, const struct mu_kv_device *devices, size_t n)
{
	enum mu_status st = MU_OK;

	if (n < 1 || n > NCCL_MAX_GPUS)
		MU_FAIL(MU_ERR_ARGUMENT,
			"kv-store %s with %zu GPUs of a worker: 1 to %d are needed", kv->kind.name,
			n, NCCL_MAX_GPUS);
	if (kv->ends.nccl->gpus)
		MU_FAIL(MU_ERR_ARGUMENT, "mu_kv_set_devices is called twice");
	for (size_t i = 0; i < n; i++) {
		const struct mu_device *device = devices[i].device;

		if (!device->ops->memory || !device->ops->memory->stream)
			MU_FAIL(MU_ERR_ARGUMENT, "kv-store %s sums on GPUs, and %s:%d is none",
				kv->kind.name, device->ops->name, device->index);
	}
	MU_TRY(mu_nccl_load(&kv->ends.nccl->api, kv->ends.nccl->way != NCCL_PEERS));
	MU_TRY(MU_ALLOC(kv->ends.nccl->gpus, n, "GPUs of a worker"));
	kv->ends.nccl->n_gpus = n;
	for (size_t i = 0; i < n; i++)
		MU_TRY(open_gpu(kv, &devices[i], &kv->ends.nccl->gpus[i]));
out:
	return st;
}

static enum mu_status open_updates(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct mu_nccl *n = kv->ends.nccl;

	MU_TRY(MU_ALLOC(n->pieces, kv->model.plan.n_buckets * n->n_gpus, "parts of buckets"));
	if (n->way == NCCL_SHARDS)
		MU_TRY(mu_nccl_shards_open(kv));
	MU_TRY(mu_nccl_updates_open(kv));
out:
	return st;
}

static enum mu_status set_devices(struct mu_kv *kv, const struct mu_kv_device *devices, size_t n)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_agree(mu_nccl_open_gpus(kv, devices, n), kv->comm));
	if (kv->ends.nccl->way == NCCL_PEERS)
		MU_TRY(mu_nccl_peers_open(kv));
	else
		MU_TRY(mu_nccl_comm_open(kv));
	MU_TRY(mu_agree(open_updates(kv), kv->comm));
out:
	return st;
}

enum mu_status mu_nccl_check_gpus(const struct mu_kv *kv)
{
	enum mu_status st = MU_OK;

	if (!kv->ends.nccl->gpus)
		MU_FAIL(MU_ERR_ARGUMENT,
			"kv-store %s on rank %d has no GPU: mu_kv_set_devices comes before "
			"mu_kv_weights_init",
			kv->kind.name, kv->members->rank);
out:
	return st;
}

static enum mu_status init(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_nccl_check_gpus(kv));
	MU_TRY(mu_bcast(kv->arrays.weights, kv->model.plan.n * sizeof *kv->arrays.weights, 0,
			kv->comm));
	MU_TRY(mu_nccl_spread(kv));
out:
	return st;
}

/* ---- a step ---- */

/* No rank wakes this one: naps stay short. */
enum mu_status mu_nccl_wait_request(struct mu_kv *kv, MPI_Request *request, const char *what)
{
	enum mu_status st = MU_OK;
	const struct mu_meeting meeting = {.comm = kv->comm, .what = what};
	struct mu_waiter waiter;
	int done = 0;

	mu_waiter_init(&waiter, NULL);
	mu_meeting_enter(&meeting, &waiter);
	for (;;) {
		MU_MPI(MPI_Test(request, &done, MPI_STATUS_IGNORE));
		if (done)
			break;
		mu_waiter_nap(&waiter);
		MU_TRY(mu_waiter_check(&waiter, mu_awaited_meeting, &meeting));
	}
out:
	return st;
}

static enum mu_status step_begin(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct mu_nccl *n = kv->ends.nccl;

	n->mine = (struct nccl_step){.count = kv->step.count, .notice = mu_kv_current_notice(kv)};
	n->counted = n->updated = false;
	n->sent = 0;
	n->left = kv->model.plan.n_buckets;
	MU_MPI(MPI_Iallgather(&n->mine, sizeof n->mine, MPI_BYTE, n->all, sizeof n->mine, MPI_BYTE,
			      kv->comm, &n->request));
out:
	return st;
}

/* Sums the samples of all workers, which determine the learning rate of this update. */
static enum mu_status count_samples(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct mu_nccl *n = kv->ends.nccl;

	if (n->counted)
		goto out;
	MU_TRY(mu_nccl_wait_request(kv, &n->request, "the samples of the other workers"));
	n->count = 0;
	for (int w = 0; w < kv->ends.n_workers; w++) {
		n->count += n->all[w].count;
		if (n->all[w].notice > kv->notices.received)
			kv->notices.received = n->all[w].notice;
	}
	kv->rates.lr = mu_kv_next_lr(kv, n->count);
	kv->rates.progress += n->count;
	n->counted = true;
out:
	return st;
}

/* Buckets are summed in their order, even if keys are ready in another. */
static enum mu_status push(struct mu_kv *kv, size_t bucket)
{
	enum mu_status st = MU_OK;
	struct mu_nccl *n = kv->ends.nccl;

	(void)bucket;
	while (n->sent < kv->model.plan.n_buckets && kv->step.keys_left[n->sent] == 0)
		MU_TRY(mu_nccl_send(kv, n->sent++));
out:
	return st;
}

static enum mu_status update_all(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct mu_nccl *n = kv->ends.nccl;

	if (n->updated)
		goto out;
	for (size_t b = 0; b < kv->model.plan.n_buckets; b++)
		MU_TRY(mu_nccl_wait_sums(kv, b));
	if (n->way == NCCL_SHARDS)
		MU_TRY(mu_nccl_shards_update_all(kv));
	else
		MU_TRY(mu_kv_update_all(kv, &kv->update, n->count, kv->arrays.gradients));
	n->updated = true;
out:
	return st;
}

static enum mu_status update(struct mu_kv *kv, size_t bucket)
{
	enum mu_status st = MU_OK;
	struct mu_nccl *n = kv->ends.nccl;

	if (n->updates)
		return mu_nccl_updates_begin(kv, bucket);
	if (kv->rules.whole_steps)
		return update_all(kv);
	MU_TRY(mu_nccl_wait_sums(kv, bucket));
	mu_clock_start(MU_CLOCK_UPDATE);
	if (n->way == NCCL_SHARDS)
		mu_nccl_shards_update(kv, bucket);
	else
		mu_kv_update_bucket(kv, &kv->update, bucket, n->count, kv->arrays.gradients);
	mu_clock_stop(MU_CLOCK_UPDATE);
out:
	return st;
}

/*
 * Buckets are copied back in their order, the front layers' first. At the first and at the last one
 * the host waits until the streams are idle: here it sees errors of NCCL, while a later wait for
 * the GPU (of an embedding, say) would not. Meanwhile the GPU computes earlier layers.
 */
static enum mu_status pull(struct mu_kv *kv, size_t bucket)
{
	enum mu_status st = MU_OK;
	struct mu_nccl *n = kv->ends.nccl;
	const bool begins = n->left == kv->model.plan.n_buckets, ends = n->left > 0 && bucket == 0;

	MU_TRY(count_samples(kv));
	while (n->left > bucket) {
		MU_TRY(mu_nccl_after_work(kv));
		MU_TRY(update(kv, n->left - 1));
		MU_TRY(mu_nccl_distribute(kv, --n->left));
	}
	if ((begins || ends) && n->way != NCCL_PEERS)
		MU_TRY(mu_nccl_wait_idle(kv, "the sums of the GPUs"));
out:
	return st;
}

/* Weights, and the optimiser's states if the GPUs have them. */
static enum mu_status collect(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_nccl_collect(kv));
	if (kv->ends.nccl->updates)
		MU_TRY(mu_nccl_states_collect(kv));
out:
	return st;
}

/* No worker aborts its communicators before all are here. */
static enum mu_status finish(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_nccl_collect(kv));
	MU_TRY(mu_barrier(kv->comm));
out:
	return st;
}

const struct mu_kv_ops mu_kv_nccl = {
	.open = open_nccl,
	.close = mu_nccl_close,
	.set_devices = set_devices,
	.leave_devices = mu_nccl_leave,
	.init = init,
	.step_begin = step_begin,
	.push = push,
	.pull = pull,
	.fetch = mu_nccl_collect,
	.finish = finish,
	.collect = collect,
	.loaded = mu_nccl_states_spread,
	.states = mu_nccl_shards_states, /* without shards they are in kv->update */
};
