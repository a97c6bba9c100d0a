/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local: one worker, no messages. A bucket is updated as soon as its last gradient is there; with a
 * rule that needs norms all are, when the step's last gradient is there.
 */
#include "kv.h"

struct local {
	struct mu_optim *optim; /* piece b is bucket b */
	struct mu_kv_norms norms;
};

static enum mu_status open_local(struct mu_kv *kv, const struct mu_kv_config *config)
{
	enum mu_status st = MU_OK;
	struct mu_piece *pieces = NULL;
	struct local *l = NULL;

	MU_TRY(MU_ALLOC(l, 1, "local store"));
	kv->end = l;
	MU_TRY(MU_ALLOC(pieces, kv->plan.n_buckets, "pieces of the optimizer"));
	for (size_t b = 0; b < kv->plan.n_buckets; b++)
		pieces[b] = (struct mu_piece){kv->plan.buckets[b].at, kv->plan.buckets[b].n,
					      kv->plan.buckets[b].at};
	MU_TRY(mu_optim_new(&l->optim, &config->optim, kv->slices, kv->n_slices, pieces,
			    kv->plan.n_buckets));
	MU_TRY(mu_kv_norms_init(&l->norms, l->optim, MPI_COMM_NULL, 1));
out:
	mu_free(pieces);
	return st;
}

static void close_local(struct mu_kv *kv)
{
	struct local *l = kv->end;

	mu_kv_norms_release(&l->norms);
	mu_optim_free(l->optim);
	mu_free(l);
}

static enum mu_status step_begin(struct mu_kv *kv)
{
	kv->lr = mu_schedule_lr(&kv->schedule, kv->progress, kv->count);
	kv->progress += kv->count;
	return MU_OK;
}

static void update(struct mu_kv *kv, size_t bucket)
{
	struct local *l = kv->end;
	const struct mu_kv_bucket *b = &kv->plan.buckets[bucket];

	mu_optim_block(l->optim, bucket, 0, b->n, kv->weights + b->at, kv->gradients + b->at);
}

static enum mu_status update_all(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct local *l = kv->end;

	if (kv->count <= 0)
		goto out;
	for (size_t b = 0; b < kv->plan.n_buckets; b++)
		mu_optim_begin(l->optim, b, kv->lr, kv->count);
	MU_TRY(mu_kv_norms_measure(&l->norms, l->optim, kv->weights, kv->gradients));
	for (size_t b = 0; b < kv->plan.n_buckets; b++)
		update(kv, b);
out:
	return st;
}

static enum mu_status push(struct mu_kv *kv, size_t bucket)
{
	enum mu_status st = MU_OK;
	struct local *l = kv->end;

	if (!kv->whole_steps) {
		mu_optim_begin(l->optim, bucket, kv->lr, kv->count);
		update(kv, bucket);
	} else if (kv->buckets_left == 0) {
		MU_TRY(update_all(kv));
	}
out:
	return st;
}

/* Gradients of a rank's devices are summed on the devices; with one device a rank that is local. */
#define OPS(store) \
	{ \
		.name = (store), .one_worker = true, .push_clock = MU_CLOCK_UPDATE, \
		.open = open_local, .close = close_local, .step_begin = step_begin, .push = push, \
	}

const struct mu_kv_ops mu_kv_local = OPS("local");
const struct mu_kv_ops mu_kv_device = OPS("device");
