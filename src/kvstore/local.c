/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local, device: one worker, no messages. A bucket is updated when its last gradient is ready; with
 * a rule that needs norms, all buckets when the last one is.
 */
#include "kv.h"

static enum mu_status open_local(struct mu_kv *kv, const struct mu_kv_config *config)
{
	kv->push_clock = MU_CLOCK_UPDATE; /* a push does nothing else */
	return mu_kv_update_open(kv, &kv->update, &config->optim);
}

static enum mu_status step_begin(struct mu_kv *kv)
{
	kv->rates.lr = mu_kv_next_lr(kv, kv->step.count);
	kv->rates.progress += kv->step.count;
	kv->notices.received = mu_kv_current_notice(kv);
	return MU_OK;
}

static enum mu_status push(struct mu_kv *kv, size_t bucket)
{
	if (!kv->rules.whole_steps)
		mu_kv_update_bucket(kv, &kv->update, bucket, kv->step.count, kv->arrays.gradients);
	else if (kv->step.buckets_left == 0)
		return mu_kv_update_all(kv, &kv->update, kv->step.count, kv->arrays.gradients);
	return MU_OK;
}

const struct mu_kv_ops mu_kv_local = {
	.open = open_local,
	.step_begin = step_begin,
	.push = push,
};
