/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores between ranks: the tables, and what both ends share. With server ranks: dist_sync and
 * dist_async. With a server end in every worker: dist_sharded, where each worker updates its part
 * of the model, and dist_allreduce, where it only sums, and all workers update the whole model.
 */
#include "dist.h"

int mu_kv_part_tag(size_t part)
{
	return WIRE_TAG_PART + mu_count(part);
}

size_t mu_kv_copies(const struct mu_kv *kv)
{
	const struct mu_topology *t = kv->topology;
	size_t n = 0;

	for (int s = 0; !kv->ops->synchronous && s < kv->n_servers; s++)
		for (int w = 0; w < t->num_workers; w++)
			if (!kv->window ||
			    t->node_of[t->worker_ranks[w]] != t->node_of[t->server_ranks[s]])
				n += mu_kv_plan_load(&kv->plan, s);
	return n * sizeof(float);
}

static enum mu_status open_ranks(struct mu_kv *kv, const struct mu_kv_config *config,
				 const struct mu_kv_policy *policy)
{
	enum mu_status st = MU_OK;

	if (kv->topology->role == MU_ROLE_WORKER)
		MU_TRY(mu_kv_worker_open(kv));
	else
		MU_TRY(mu_kv_server_open(kv, config, policy, false));
out:
	return st;
}

static enum mu_status open_sync(struct mu_kv *kv, const struct mu_kv_config *config)
{
	return open_ranks(kv, config, &mu_kv_policy_sync);
}

static enum mu_status open_async(struct mu_kv *kv, const struct mu_kv_config *config)
{
	return open_ranks(kv, config, &mu_kv_policy_async);
}

/* With a bound nothing of the next step is there before all servers let it begin. */
static enum mu_status pull_async(struct mu_kv *kv, size_t bucket)
{
	enum mu_status st = MU_OK;
	double count;

	if (kv->bounded)
		MU_TRY(mu_kv_worker_answers(kv, &count));
	MU_TRY(mu_kv_worker_pull(kv, bucket));
out:
	return st;
}

static enum mu_status open_sharded(struct mu_kv *kv, const struct mu_kv_config *config)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_kv_server_open(kv, config, &mu_kv_policy_sync, true));
	MU_TRY(mu_kv_worker_open(kv));
out:
	return st;
}

/* Where a rank's devices are summed makes no difference to what goes between ranks. */
#define SYNC_OPS(store, on_devices) \
	{ \
		MU_KV_WORKER_OPS, .name = (store), .has_servers = true, .synchronous = true, \
				  .open = open_sync, .pull = mu_kv_worker_pull, \
				  .serve = mu_kv_server_serve, .sums_on_devices = (on_devices), \
	}
#define ASYNC_OPS(store, on_devices) \
	{ \
		MU_KV_WORKER_OPS, .name = (store), .has_servers = true, .own_weights = true, \
				  .open = open_async, .pull = pull_async, \
				  .fetch = mu_kv_worker_fetch, .meet = mu_kv_worker_meet, \
				  .serve = mu_kv_server_serve, .sums_on_devices = (on_devices), \
	}

const struct mu_kv_ops mu_kv_dist_sync = SYNC_OPS("dist_sync", false);
const struct mu_kv_ops mu_kv_dist_device_sync = SYNC_OPS("dist_device_sync", true);
const struct mu_kv_ops mu_kv_dist_sync_device = SYNC_OPS("dist_sync_device", true);
const struct mu_kv_ops mu_kv_dist_async = ASYNC_OPS("dist_async", false);
const struct mu_kv_ops mu_kv_dist_device_async = ASYNC_OPS("dist_device_async", true);
const struct mu_kv_ops mu_kv_dist_async_device = ASYNC_OPS("dist_async_device", true);

const struct mu_kv_ops mu_kv_dist_sharded = {
	MU_KV_WORKER_OPS,        .name = "dist_sharded", .hosted = true,
	.synchronous = true,     .open = open_sharded,   .pull = mu_kv_worker_pull,
	.sums_on_devices = true,
};
