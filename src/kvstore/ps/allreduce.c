/* SPDX-License-Identifier: Apache-2.0 */
/*
 * dist_allreduce: every worker hosts a server end, which sums a part of the gradients of all
 * workers. All receive the sums, and each updates the whole model. So all have the same optimiser's
 * states.
 */
#include "dist.h"

static enum mu_status open_allreduce(struct mu_kv *kv, const struct mu_kv_config *config)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_kv_update_open(kv, &kv->update, &config->optim));
	MU_TRY(mu_kv_ends_open(kv, config, &mu_kv_policy_sync));
out:
	return st;
}

/* A rule that needs norms waits for all sums of the step. */
static enum mu_status pull_all(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	double count;

	if (kv->step.updated == kv->step.number)
		goto out;
	for (size_t b = 0; b < kv->model.plan.n_buckets; b++)
		MU_TRY(mu_kv_worker_pull(kv, b));
	MU_TRY(mu_kv_worker_answers(kv, &count));
	MU_TRY(mu_kv_update_all(kv, &kv->update, count, kv->arrays.results));
	kv->step.updated = kv->step.number;
out:
	return st;
}

static enum mu_status pull(struct mu_kv *kv, size_t bucket)
{
	enum mu_status st = MU_OK;
	double count;

	if (kv->rules.whole_steps)
		return pull_all(kv);
	MU_TRY(mu_kv_worker_pull(kv, bucket));
	MU_TRY(mu_kv_worker_answers(kv, &count));
	mu_clock_start(MU_CLOCK_UPDATE);
	mu_kv_update_bucket(kv, &kv->update, bucket, count, kv->arrays.results);
	mu_clock_stop(MU_CLOCK_UPDATE);
out:
	return st;
}

const struct mu_kv_ops mu_kv_allreduce = {
	.open = open_allreduce,
	.init = mu_kv_worker_init,
	.step_begin = mu_kv_worker_step_begin,
	.push = mu_kv_worker_push,
	.poll = mu_kv_worker_poll,
	.pull = pull,
	.step_end = mu_kv_worker_step_end,
	.finish = mu_kv_worker_finish,
};
