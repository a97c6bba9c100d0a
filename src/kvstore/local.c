/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local: one worker, no messages. A bucket is updated as soon as its last gradient is there.
 */
#include "kv.h"

static enum mu_status open_local(struct mu_kv *kv, const struct mu_kv_config *config)
{
	return mu_kv_bucket_optim(kv, &config->optim);
}

static enum mu_status step_begin(struct mu_kv *kv)
{
	kv->lr = mu_schedule_lr(&kv->schedule, kv->progress);
	kv->progress += kv->count;
	return MU_OK;
}

static enum mu_status push(struct mu_kv *kv, size_t bucket)
{
	const struct mu_kv_bucket *b = &kv->plan.buckets[bucket];

	mu_optim_begin(kv->optim, bucket, kv->lr, kv->count);
	mu_optim_block(kv->optim, bucket, 0, b->n, kv->weights + b->at, kv->gradients + b->at);
	return MU_OK;
}

/* Gradients of a rank's devices are summed on the devices; with one device a rank that is local. */
#define OPS(store) \
	{ \
		.name = (store), .one_worker = true, .synchronous = true, \
		.push_clock = MU_CLOCK_UPDATE, .open = open_local, .step_begin = step_begin, \
		.push = push, \
	}

const struct mu_kv_ops mu_kv_local = OPS("local");
const struct mu_kv_ops mu_kv_device = OPS("device");
