/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dist_allreduce: every worker sums its part of the gradients of all (the server end that it
 * hosts), all get the sums, and each updates the whole model, so that all have the same states of
 * the optimiser.
 */
#include "dist.h"

static enum mu_status open_allreduce(struct mu_kv *kv, const struct mu_kv_config *config)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_comm_alloc(kv->topology, &kv->sums, kv->plan.n, "sums of gradients"));
	MU_TRY(mu_kv_bucket_optim(kv, &config->optim));
	MU_TRY(mu_kv_server_open(kv, config, &mu_kv_policy_sync, kv->sums));
	MU_TRY(mu_kv_worker_open(kv, kv->sums));
out:
	return st;
}

static enum mu_status pull(struct mu_kv *kv, size_t bucket)
{
	enum mu_status st = MU_OK;
	const struct mu_kv_bucket *b = &kv->plan.buckets[bucket];
	double count;

	MU_TRY(mu_kv_worker_pull(kv, bucket));
	MU_TRY(mu_kv_worker_answers(kv, &count));
	mu_clock_start(MU_CLOCK_UPDATE);
	mu_optim_begin(kv->optim, bucket, kv->lr, count);
	mu_optim_block(kv->optim, bucket, 0, b->n, kv->weights + b->at, kv->sums + b->at);
	mu_clock_stop(MU_CLOCK_UPDATE);
out:
	return st;
}

const struct mu_kv_ops mu_kv_dist_allreduce = {
	MU_KV_WORKER_OPS,    .name = "dist_allreduce", .hosted = true,
	.synchronous = true, .open = open_allreduce,   .pull = pull,
};
