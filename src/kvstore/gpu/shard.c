/* SPDX-License-Identifier: Apache-2.0 */
/*
 * nccl: every GPU has a shard of each bucket, which its worker updates. So the optimiser's states
 * are divided among the workers.
 */
#include "nccl.h"

#include <string.h>

#include <muster/base.h>

/* ---- pieces of the optimiser ---- */

/* Shards without elements are no pieces. The shards of a GPU are stored side by side. */
static void cut_shards(struct mu_kv *kv, struct mu_piece *found)
{
	struct mu_nccl *n = kv->ends.nccl;
	size_t local = 0;

	n->n_pieces = 0;
	for (size_t i = 0; i < n->n_gpus; i++)
		for (size_t b = 0; b < kv->model.plan.n_buckets; b++) {
			const struct mu_kv_bucket *bucket = &kv->model.plan.buckets[b];
			const struct mu_kv_shard shard =
				mu_kv_shard(bucket->n, n->first + i, n->n_all);
			const size_t at = bucket->at + shard.at;

			*nccl_piece_of(n, b, i) = (struct nccl_piece){
				.at = at, .n = shard.n, .number = n->n_pieces, .local = local};
			if (shard.n == 0)
				continue;
			found[n->n_pieces] = (struct mu_piece){at, shard.n, local};
			n->owners[n->n_pieces++] = b * n->n_gpus + i;
			local += shard.n;
		}
}

enum mu_status mu_nccl_shards_open(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct mu_nccl *n = kv->ends.nccl;
	const size_t most = kv->model.plan.n_buckets * n->n_gpus;
	struct mu_piece *found = NULL;

	MU_TRY(MU_ALLOC(found, most, "shards of the optimizer"));
	MU_TRY(MU_ALLOC(n->owners, most, "shards"));
	cut_shards(kv, found);
	MU_TRY(mu_optim_new(&n->optim, &n->config, kv->model.slices, kv->model.n_slices, found,
			    n->n_pieces));
	MU_TRY(mu_kv_norms_init(&n->norms, n->optim, kv->members));
out:
	mu_free(found);
	return st;
}

void mu_nccl_shards_close(struct mu_nccl *n)
{
	mu_kv_norms_release(&n->norms);
	mu_optim_free(n->optim);
	mu_free(n->owners);
}

/* ---- updates ---- */

static void begin(struct mu_kv *kv, const struct nccl_piece *p)
{
	if (p->n > 0)
		mu_optim_begin(kv->ends.nccl->optim, p->number, kv->rates.lr, kv->ends.nccl->count);
}

static void update(struct mu_kv *kv, const struct nccl_piece *p)
{
	if (p->n > 0)
		mu_optim_block(kv->ends.nccl->optim, p->number, 0, p->n, kv->arrays.weights + p->at,
			       kv->arrays.gradients + p->at);
}

void mu_nccl_shards_update(struct mu_kv *kv, size_t bucket)
{
	for (size_t i = 0; i < kv->ends.nccl->n_gpus; i++) {
		begin(kv, nccl_piece_of(kv->ends.nccl, bucket, i));
		update(kv, nccl_piece_of(kv->ends.nccl, bucket, i));
	}
}

static void find(const void *context, size_t p, const float **weights, const float **gradients)
{
	const struct mu_kv *kv = context;
	const struct nccl_piece *piece = &kv->ends.nccl->pieces[kv->ends.nccl->owners[p]];

	*weights = kv->arrays.weights + piece->at;
	*gradients = kv->arrays.gradients + piece->at;
}

enum mu_status mu_nccl_shards_update_all(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct mu_nccl *n = kv->ends.nccl;

	if (n->count <= 0)
		goto out;
	for (size_t p = 0; p < n->n_pieces; p++)
		begin(kv, &n->pieces[n->owners[p]]);
	MU_TRY(mu_kv_norms_measure(&n->norms, n->optim, find, kv));
	for (size_t p = 0; p < n->n_pieces; p++)
		update(kv, &n->pieces[n->owners[p]]);
out:
	return st;
}

/* ---- checkpoints ---- */

/* Copies a state from a whole array to the shards that are here, or back. */
static void copy_shards(struct mu_kv *kv, int state, float *whole, bool load)
{
	const struct mu_nccl *n = kv->ends.nccl;
	const char *name;
	size_t n_held;
	float *held = mu_optim_state(n->optim, state, &name, &n_held);

	for (size_t p = 0; p < n->n_pieces; p++) {
		const struct nccl_piece *piece = &n->pieces[n->owners[p]];
		float *mine = held + piece->local, *there = whole + piece->at;

		memcpy(load ? mine : there, load ? there : mine, piece->n * sizeof *mine);
	}
}

/* Every element is one worker's, and 0 on the others: joins their bits. */
static enum mu_status join(struct mu_kv *kv, float *whole)
{
	enum mu_status st = MU_OK;

	for (size_t at = 0; at < kv->model.plan.n;) {
		const size_t left = kv->model.plan.n - at;
		const size_t n = left < MU_MESSAGE_MAX ? left : MU_MESSAGE_MAX;
		MPI_Request request = MPI_REQUEST_NULL;

		MU_MPI(MPI_Iallreduce(MPI_IN_PLACE, whole + at, mu_count(n), MPI_UINT32_T, MPI_BOR,
				      kv->comm, &request));
		MU_TRY(mu_nccl_wait_request(kv, &request, "states of the optimizer"));
		at += n;
	}
out:
	return st;
}

static enum mu_status save(struct mu_kv *kv, float *whole)
{
	enum mu_status st = MU_OK;
	struct mu_kv_snapshot *x = kv->saved.states;
	double last_lr = 0;
	long updates;

	mu_optim_counts(kv->ends.nccl->optim, &x->updates, &last_lr);
	updates = (long)x->updates; /* a worker may have no shard, and no updates */
	MU_TRY(mu_allreduce_long(&updates, 1, MPI_MAX, kv->comm));
	MU_TRY(mu_allreduce_double(&last_lr, 1, MPI_MAX, kv->comm));
	x->updates = (uint64_t)updates;
	x->last_lr = last_lr;
	for (int i = 0; i < kv->saved.n_names; i++) {
		memset(whole, 0, kv->model.plan.n * sizeof *whole);
		copy_shards(kv, i, whole, false);
		MU_TRY(join(kv, whole));
		if (x->to > x->from)
			memcpy(x->arrays[i], whole + x->from, (x->to - x->from) * sizeof *whole);
	}
out:
	return st;
}

enum mu_status mu_nccl_shards_states(struct mu_kv *kv, bool load)
{
	enum mu_status st = MU_OK;
	struct mu_kv_snapshot *x = kv->saved.states;
	float *whole = NULL;

	if (!load) {
		MU_TRY(MU_ALLOC(whole, kv->model.plan.n, "states of the optimizer"));
		MU_TRY(save(kv, whole));
		goto out;
	}
	if (x->from != 0 || x->to != kv->model.plan.n)
		MU_FAIL(MU_ERR_ARGUMENT,
			"states of elements %zu to %zu are loaded, and every worker of kv-store %s "
			"needs all %zu",
			x->from, x->to, kv->kind.name, kv->model.plan.n);
	mu_optim_set_counts(kv->ends.nccl->optim, x->updates, x->last_lr);
	for (int i = 0; i < kv->saved.n_names; i++)
		copy_shards(kv, i, x->arrays[i], true);
out:
	mu_free(whole);
	return st;
}
