/* SPDX-License-Identifier: Apache-2.0 */
/*
 * gpus: the stores of a model (kvstore.h) whose arrays are on GPUs: nccl and nccl_allreduce, whose
 * workers are on one node; and if mu_kv_config.on_gpus says so, the same on all ranks, device,
 * dist_sharded (which then is nccl over any number of nodes), dist_allreduce (likewise), and those
 * with servers. Compression and local SGD are not for them, and a bound of staleness is for
 * dist_async alone.
 *
 * The workers' devices are GPUs, each of one worker. The arrays that
 * count are the GPUs' own: those that stand for the host's (mirror, in struct mu_device_memory). A
 * push of a key reads the gradients that the work given to the devices so far makes, of all devices
 * of this worker, and work that is given to them after a pull reads the new weights; the caller
 * need not wait for the GPU in between. All keys of a step are pushed before the first is pulled,
 * else MU_ERR_ARGUMENT. Sums are NCCL's, in an order of its own; those of device are in the order
 * of the devices.
 *
 * With servers, and dist_sharded with MU_KV_NODE_NCCL: NCCL sums the GPUs of a node's workers, and
 * one of these workers pushes each part of the sum, pulls the weights, and gives them to the GPUs;
 * sums over nodes are in the order of nodes. dist_async sums the GPUs of each worker.
 *
 * nccl_allreduce: every worker has all sums, and updates the whole model. nccl: of each bucket
 * every GPU has the sums of its shard, whose worker updates it and has the optimiser's states of it
 * alone; then all GPUs get all shards. device: one worker; its GPUs take turns to update a bucket,
 * and have the states of theirs. Rules that work element by element update on the GPUs
 * (mu_optim_is_by_element), others on the CPU. mu_kv_gradients is the store's scratch, which nobody
 * needs to fill; mu_kv_weights is right after mu_kv_weights_init, mu_kv_fetch, mu_kv_verify,
 * mu_kv_snapshot_save and mu_kv_finish.
 */
#ifndef MUSTER_GPUS_H
#define MUSTER_GPUS_H

#include <muster/device.h>
#include <muster/kvstore.h>

MU_BEGIN_C

/* Can stores between GPUs work in this process? MU_ERR_DEVICE, with what is missing: the driver or
 * NCCL, as a library; MU_ERR_UNSUPPORTED: this build has none. No GPU is looked at. */
enum mu_status mu_kv_gpus_check(void);

/*
 * *apart: is each of these GPUs, of all ranks of comm, one rank's alone? They are open. Collective
 * over comm, of workers, which all return the same; mu_kv_gpus_check comes first.
 */
enum mu_status mu_kv_gpus_apart(struct mu_device *const *devices, size_t n, MPI_Comm comm,
				bool *apart);

struct mu_kv_device {
	struct mu_device *device; /* open, and so until mu_kv_leave_devices */
	float *gradients; /* the array of the host that its gradients stand for, mu_kv_n elements;
			     of the first device: mu_kv_gradients */
};
/*
 * This worker's devices, once, between mu_kv_new and mu_kv_weights_init. MU_ERR_USAGE if two
 * workers have the same GPU, MU_ERR_DEVICE with NCCL's own words. Collective over workers, which
 * all return the same kind of answer.
 */
enum mu_status mu_kv_set_devices(struct mu_kv *kv, const struct mu_kv_device *devices, size_t n);
/* Give them up, before they are closed, if there are any; mu_kv_free does it, too. The store is
 * good for mu_kv_free only. Not collective. */
void mu_kv_leave_devices(struct mu_kv *kv);

/*
 * nccl: the shard of GPU `which` of n_gpus in a bucket of n elements. Those of all GPUs follow one
 * another and have mu_kv_shard_each elements, a multiple of MU_KV_SHARD_GRAIN; the last one has
 * what is left besides, fewer than n_gpus * MU_KV_SHARD_GRAIN.
 */
#define MU_KV_SHARD_GRAIN 64
struct mu_kv_shard {
	size_t at, n;
};
struct mu_kv_shard mu_kv_shard(size_t n, size_t which, size_t n_gpus);
size_t mu_kv_shard_each(size_t n, size_t n_gpus);

MU_END_C

#endif
