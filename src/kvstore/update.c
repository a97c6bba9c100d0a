/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Updates by a worker that holds the whole model and all of the optimiser's states.
 */
#include "kv.h"

enum mu_status mu_kv_update_open(struct mu_kv *kv, const struct mu_optim_config *config)
{
	enum mu_status st = MU_OK;
	const size_t n = kv->plan.n_buckets;
	struct mu_optim_config optim = *config;
	struct mu_piece *pieces = NULL;

	optim.prior = false; /* this worker's weights are never older than its gradients */
	MU_TRY(MU_ALLOC(pieces, n, "pieces of the optimizer"));
	for (size_t b = 0; b < n; b++)
		pieces[b] = (struct mu_piece){kv->plan.buckets[b].at, kv->plan.buckets[b].n,
					      kv->plan.buckets[b].at};
	MU_TRY(mu_optim_new(&kv->optim, &optim, kv->slices, kv->n_slices, pieces, n));
	MU_TRY(mu_kv_norms_init(&kv->norms, kv->optim, MPI_COMM_NULL, 1));
out:
	mu_free(pieces);
	return st;
}

static void update(struct mu_kv *kv, size_t bucket, const float *gradients)
{
	const struct mu_kv_bucket *b = &kv->plan.buckets[bucket];

	mu_optim_block(kv->optim, bucket, 0, b->n, kv->weights + b->at, gradients + b->at);
}

void mu_kv_update_bucket(struct mu_kv *kv, size_t bucket, double count, const float *gradients)
{
	mu_optim_begin(kv->optim, bucket, kv->lr, count);
	update(kv, bucket, gradients);
}

struct arrays {
	const struct mu_kv *kv;
	const float *gradients;
};

static void find(const void *context, size_t p, const float **weights, const float **gradients)
{
	const struct arrays *a = context;
	size_t at = a->kv->plan.buckets[p].at;

	*weights = a->kv->weights + at;
	*gradients = a->gradients + at;
}

enum mu_status mu_kv_update_all(struct mu_kv *kv, double count, const float *gradients)
{
	enum mu_status st = MU_OK;
	const struct arrays arrays = {.kv = kv, .gradients = gradients};

	if (count <= 0)
		goto out;
	for (size_t b = 0; b < kv->plan.n_buckets; b++)
		mu_optim_begin(kv->optim, b, kv->lr, count);
	MU_TRY(mu_kv_norms_measure(&kv->norms, kv->optim, find, &arrays));
	for (size_t b = 0; b < kv->plan.n_buckets; b++)
		update(kv, b, gradients);
out:
	return st;
}
