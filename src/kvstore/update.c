/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Updates by a worker that holds the whole model and all states of the optimiser.
 */
#include "kv.h"

enum mu_status mu_kv_update_open(struct mu_kv *kv, struct mu_kv_update *u,
				 const struct mu_optim_config *config)
{
	enum mu_status st = MU_OK;
	const size_t n = kv->model.plan.n_buckets;
	struct mu_optim_config optim = *config;
	struct mu_piece *pieces = NULL;

	optim.prior = false; /* this worker's weights are never older than its gradients */
	u->weights = kv->arrays.weights;
	MU_TRY(MU_ALLOC(pieces, n, "pieces of the optimizer"));
	for (size_t b = 0; b < n; b++)
		pieces[b] =
			(struct mu_piece){kv->model.plan.buckets[b].at, kv->model.plan.buckets[b].n,
					  kv->model.plan.buckets[b].at};
	MU_TRY(mu_optim_new(&u->optim, &optim, kv->model.slices, kv->model.n_slices, pieces, n));
	u->norms.share = kv->share;
	MU_TRY(mu_kv_norms_init(&u->norms, u->optim, NULL));
out:
	mu_free(pieces);
	return st;
}

void mu_kv_update_close(struct mu_kv_update *u)
{
	mu_kv_norms_release(&u->norms);
	mu_optim_free(u->optim);
}

static void update(struct mu_kv *kv, struct mu_kv_update *u, size_t bucket, const float *gradients)
{
	const struct mu_kv_bucket *b = &kv->model.plan.buckets[bucket];

	if (u->weights == gradients)
		return; /* see kv->rules.replaces */
	mu_optim_block(u->optim, bucket, 0, b->n, u->weights + b->at, gradients + b->at);
}

void mu_kv_update_bucket(struct mu_kv *kv, struct mu_kv_update *u, size_t bucket, double count,
			 const float *gradients)
{
	mu_optim_begin(u->optim, bucket, kv->rates.lr, count);
	update(kv, u, bucket, gradients);
}

struct arrays {
	const struct mu_kv *kv;
	const float *weights, *gradients;
};

static void find(const void *context, size_t p, const float **weights, const float **gradients)
{
	const struct arrays *a = context;
	size_t at = a->kv->model.plan.buckets[p].at;

	*weights = a->weights + at;
	*gradients = a->gradients + at;
}

struct whole {
	struct mu_kv *kv;
	struct mu_kv_update *u;
	const float *gradients;
};

/* Every n-th bucket. */
static void update_part(void *of, size_t i)
{
	const struct whole *w = of;

	for (size_t b = i; b < w->kv->model.plan.n_buckets; b += mu_share_parts(&w->kv->share))
		update(w->kv, w->u, b, w->gradients);
}

enum mu_status mu_kv_update_all(struct mu_kv *kv, struct mu_kv_update *u, double count,
				const float *gradients)
{
	enum mu_status st = MU_OK;
	const struct arrays arrays = {.kv = kv, .weights = u->weights, .gradients = gradients};
	struct whole whole = {kv, u, gradients};

	if (count <= 0)
		goto out;
	for (size_t b = 0; b < kv->model.plan.n_buckets; b++)
		mu_optim_begin(u->optim, b, kv->rates.lr, count);
	MU_TRY(mu_kv_norms_measure(&u->norms, u->optim, find, &arrays));
	MU_TRY(mu_share_run(&kv->share, update_part, &whole));
out:
	return st;
}
