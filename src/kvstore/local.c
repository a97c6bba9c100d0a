/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local: one worker, no messages. A bucket is updated as soon as its last gradient is there; with a
 * rule that needs norms, all are when the last one is.
 */
#include "kv.h"

static enum mu_status open_local(struct mu_kv *kv, const struct mu_kv_config *config)
{
	return mu_kv_update_open(kv, &kv->update, &config->optim);
}

static enum mu_status step_begin(struct mu_kv *kv)
{
	kv->lr = mu_kv_next_lr(kv, kv->count);
	kv->progress += kv->count;
	kv->notice = mu_kv_word(kv);
	return MU_OK;
}

static enum mu_status push(struct mu_kv *kv, size_t bucket)
{
	if (!kv->whole_steps)
		mu_kv_update_bucket(kv, &kv->update, bucket, kv->count, kv->gradients);
	else if (kv->buckets_left == 0)
		return mu_kv_update_all(kv, &kv->update, kv->count, kv->gradients);
	return MU_OK;
}

/* They differ in where the trainer sums the gradients of a rank's devices. */
#define OPS(store, on_devices) \
	{ \
		.name = (store), .one_worker = true, .synchronous = true, \
		.push_clock = MU_CLOCK_UPDATE, .open = open_local, .step_begin = step_begin, \
		.push = push, .sums_on_devices = (on_devices), \
	}

const struct mu_kv_ops mu_kv_local = OPS("local", false);
const struct mu_kv_ops mu_kv_device = OPS("device", true);
