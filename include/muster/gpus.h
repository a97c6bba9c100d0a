/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpus: stores of a model (kvstore.h) whose arrays are on GPUs: nccl and nccl_allreduce, whose
 * workers are on one node; and with mu_kv_config.on_gpus, equal on all ranks, device,
 * dist_sharded (then as nccl, over any number of nodes), dist_allreduce (likewise), and the stores
 * with servers. They do not support compression and local SGD, and a bound of staleness only in
 * dist_async.
 *
 * The workers' devices are GPUs; no two workers share one. The arrays on
 * the GPUs, the mirrors of the host's (mirror in struct mu_device_memory), are authoritative. A
 * push of a key reads the gradients computed by the work submitted so far to all devices of this
 * worker. Work submitted after a pull reads the new weights. The caller
 * need not wait for the GPU in between. All keys of a step are pushed before the first is pulled,
 * else MU_ERR_ARGUMENT. NCCL sums in an order of its own; device sums in the order
 * of the devices.
 *
 * With servers, and dist_sharded with MU_KV_NODE_NCCL: NCCL sums over the GPUs of a node's workers,
 * and one of the workers pushes each part of the sum, pulls it and copies the weights to the GPUs;
 * nodes are summed in node order. dist_async sums over the GPUs of each worker.
 *
 * nccl_allreduce: every worker has all sums and updates the whole model. nccl: every GPU has the
 * sums of its shard of each bucket; its worker updates the shard and holds only the optimiser's
 * states of this shard; then all GPUs gather all shards. device: one worker; its GPUs take turns,
 * each with the states of its own buckets. Rules that work element by element update on the GPUs
 * (mu_optim_is_by_element), others on the CPU. mu_kv_gradients is the store's scratch: callers need
 * not fill it. mu_kv_weights is current after mu_kv_weights_init, mu_kv_fetch, mu_kv_verify,
 * mu_kv_snapshot_save and mu_kv_finish.
 */
#ifndef MUSTER_GPUS_H
#define MUSTER_GPUS_H

#include <muster/device.h>
#include <muster/kvstore.h>

MU_BEGIN_C

/* Can this process use stores between GPUs? MU_ERR_DEVICE names the missing library: the driver or
 * NCCL; MU_ERR_UNSUPPORTED: this build has none. Opens no GPU. */
enum mu_status mu_kv_gpus_check(void);

/*
 * *apart: does each of these GPUs, all open, belong to only one worker? Collective over
 * workers, with the same result on all. Call mu_kv_gpus_check first.
 */
enum mu_status mu_kv_gpus_apart(struct mu_device *const *devices, size_t n,
				const struct mu_members *m, bool *apart);

struct mu_kv_device {
	struct mu_device *device; /* open until after mu_kv_leave_devices */
	float *gradients; /* the host array that its gradients mirror, mu_kv_n elements;
			     of the first device: mu_kv_gradients */
};
/*
 * This worker's devices, once, between mu_kv_new and mu_kv_weights_init. MU_ERR_USAGE: two
 * workers have the same GPU. MU_ERR_DEVICE: an error of NCCL. Collective over workers, which
 * all succeed or all fail.
 */
enum mu_status mu_kv_set_devices(struct mu_kv *kv, const struct mu_kv_device *devices, size_t n);
/* Release the devices before they are closed; mu_kv_free does the same. The store can
 * only be freed afterwards. Not collective. */
void mu_kv_leave_devices(struct mu_kv *kv);

/*
 * nccl: the shard of GPU `which` of n_gpus in a bucket of n elements. Shards follow one
 * another and have mu_kv_shard_each elements, a multiple of MU_KV_SHARD_GRAIN; the last one has
 * the remainder as well, fewer than n_gpus * MU_KV_SHARD_GRAIN.
 */
#define MU_KV_SHARD_GRAIN 64
struct mu_kv_shard {
	size_t at, n;
};
struct mu_kv_shard mu_kv_shard(size_t n, size_t which, size_t n_gpus);
size_t mu_kv_shard_each(size_t n, size_t n_gpus);

MU_END_C

#endif
