/* SPDX-License-Identifier: Apache-2.0 */
/* Calls of gpus.h that every build has, and the shards of a bucket. */
#include "config.h"

#include <muster/gpus.h>

#include "kvstore/kv.h"

#ifndef HAVE_NCCL
enum mu_status mu_kv_gpus_check(void)
{
	enum mu_status st = MU_OK;

	MU_FAIL(MU_ERR_UNSUPPORTED, "this build has no CUDA with NCCL");
out:
	return st;
}

enum mu_status mu_kv_gpus_apart(struct mu_device *const *devices, size_t n,
				const struct mu_members *m, bool *apart)
{
	(void)devices;
	(void)n;
	(void)m;
	*apart = false;
	return mu_kv_gpus_check();
}
#endif

size_t mu_kv_shard_each(size_t n, size_t n_gpus)
{
	const size_t grain = n_gpus * MU_KV_SHARD_GRAIN;

	return n / grain * MU_KV_SHARD_GRAIN;
}

struct mu_kv_shard mu_kv_shard(size_t n, size_t which, size_t n_gpus)
{
	const size_t each = mu_kv_shard_each(n, n_gpus), at = which * each;

	return (struct mu_kv_shard){at, which + 1 < n_gpus ? each : n - at};
}

enum mu_status mu_kv_set_devices(struct mu_kv *kv, const struct mu_kv_device *devices, size_t n)
{
	enum mu_status st = MU_OK;

	if (!kv->ops->set_devices)
		MU_FAIL(MU_ERR_ARGUMENT,
			"mu_kv_set_devices with kv-store '%s', whose arrays are the host's: it is "
			"for nccl, nccl_allreduce, and where on_gpus is set",
			kv->kind.name);
	MU_TRY(kv->ops->set_devices(kv, devices, n));
out:
	return st;
}

void mu_kv_leave_devices(struct mu_kv *kv)
{
	if (kv->ops->leave_devices)
		kv->ops->leave_devices(kv);
}
