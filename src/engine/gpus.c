/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stores of GPUs (muster/gpus.h): gradients and weights stay on the devices, where the store reads
 * and updates them. Plans copy neither, and only the store sums over a worker's devices.
 */
#include "engine/engine.h"

#include <limits.h>

#include <muster/base.h>
#include <muster/gpus.h>

/* An option that works on the CPU's arrays, or NULL. */
static const char *find_option(const struct conf *v, const struct engine_device_list *list)
{
	if (!mu_engine_ops_of(list)->shares_batch)
		return "--model-parallel, --micro-batches, --time-block and teams of "
		       "ranks copy the gradients of their parts to the CPU";
	if (v->update_period > 1)
		return "--update-period sums gradients on the CPU";
	if (v->on_nan != CONF_ON_NAN_STOP)
		return "--on-nan skip and rollback check gradients on the CPU";
	if (v->sync_period > 1)
		return "--sync-period averages weights on the CPU";
	if (mu_compress_is_on(&v->compression))
		return "--gc-type compresses on the CPU";
	if (v->comm_thread)
		return "--comm-thread is for messages of the CPU";
	if ((v->node_reduce != MU_KV_NODE_AUTO && v->node_reduce != MU_KV_NODE_NCCL) ||
	    v->priority == 0)
		return "--node-reduce and --priority are for sums on the CPU";
	return NULL;
}

bool mu_engine_gpus_by_nodes(const struct conf *v, const struct mu_kv_type *store)
{
	return store->has_servers || v->node_reduce == MU_KV_NODE_NCCL;
}

/* Why arrays cannot stay on the devices; NULL: they can. */
static const char *find_obstacle(const struct conf *v, const struct mu_kv_type *store,
				 const struct engine_device_list *list)
{
	if (!store->takes_gpus)
		return "this build has no CUDA with NCCL";
	if (!list->kind->memory || !list->kind->memory->update)
		return "the devices are not GPUs; use --devices gpu:auto";
	return find_option(v, list);
}

/* Stores of GPUs use arrays on the GPUs, which the trainer does not read. */
static enum mu_status check_gpus(const struct conf *v, const struct mu_kv_type *store,
				 const struct engine_device_list *list)
{
	enum mu_status st = MU_OK;
	const char *why;

	if (!store->on_gpus)
		goto out;
	if (!list->kind->memory)
		MU_FAIL(MU_ERR_USAGE,
			"no GPU in this job: --kv-store %s sums between GPUs, and the devices are "
			"%s; use --devices (gpu:0, or gpu:0,1, or gpu:auto), or the stores "
			"dist_sync, dist_sharded or dist_allreduce",
			v->kv_store, v->devices ? v->devices : list->kind->name);
	why = find_option(v, list);
	if (why)
		MU_FAIL(MU_ERR_USAGE,
			"--kv-store %s keeps gradients and weights on the GPUs, and %s",
			v->kv_store, why);
out:
	return st;
}

enum mu_status mu_engine_gpus_settle(const struct conf *v, struct mu_kv_type *store,
				     const struct engine_device_list *list)
{
	enum mu_status st = MU_OK;
	const bool chosen = v->inter_node != CONF_INTER_NODE_AUTO;
	const bool by_mpi = v->inter_node == CONF_INTER_NODE_MPI;
	const bool by_nccl = v->node_reduce == MU_KV_NODE_NCCL;
	const char *why;

	MU_TRY(check_gpus(v, store, list));
	if (store->on_gpus || (by_mpi && !by_nccl) || (!store->takes_gpus && !chosen && !by_nccl))
		goto out;
	why = find_obstacle(v, store, list);
	if (why && by_nccl)
		MU_FAIL(MU_ERR_USAGE, "--node-reduce nccl: %s; --node-reduce auto sums on the CPU",
			why);
	if (why && chosen)
		MU_FAIL(MU_ERR_USAGE, "--inter-node nccl: %s; --inter-node mpi sums on the CPU",
			why);
	store->on_gpus = !why;
out:
	return st;
}

/* The first rank whose host has no NCCL; LONG_MAX: all have it. */
static enum mu_status find_without(struct mu_engine *e, long *without)
{
	enum mu_status st = MU_OK;
	const struct mu_members *m = e->members;

	*without = LONG_MAX;
	if (m->role == MU_ROLE_WORKER && mu_kv_gpus_check() != MU_OK) {
		snprintf(e->without_nccl, sizeof e->without_nccl, "%s", mu_trace_message());
		mu_trace_clear();
		*without = m->rank;
	}
	MU_TRY(mu_allreduce_long(without, 1, MPI_MIN, m->comm));
	if (*without < LONG_MAX && !*e->without_nccl)
		snprintf(e->without_nccl, sizeof e->without_nccl,
			 "rank %ld cannot open NCCL or the driver", *without);
out:
	return st;
}

/* Does each GPU belong to one worker only? Collective over workers. */
static enum mu_status find_apart(struct mu_engine *e, bool *apart)
{
	enum mu_status st = MU_OK;
	struct engine_devices *s = &e->devices;
	struct mu_device *devices[TRAIN_MAX_DEVICES];

	for (size_t i = 0; i < s->list.n; i++)
		devices[i] = &s->of[i].device;
	MU_TRY(mu_kv_gpus_apart(devices, s->list.n, e->members, apart));
out:
	return st;
}

/* Are there several GPUs to sum on a node, or on a worker if each worker pushes? Can NCCL sum them?
 * */
static enum mu_status check_sums(struct mu_engine *e, bool *sums)
{
	enum mu_status st = MU_OK;
	const struct mu_members *m = e->members;
	const bool worker = m->role == MU_ROLE_WORKER;
	bool apart = true;
	long several, shared;

	MU_TRY(mu_agree(worker ? find_apart(e, &apart) : MU_OK, m->comm));
	several = worker && (e->devices.list.n > 1 ||
			     (e->store->synchronous && m->topology.node_num_workers > 1));
	shared = !apart;
	MU_TRY(mu_allreduce_long(&several, 1, MPI_MAX, m->comm));
	MU_TRY(mu_allreduce_long(&shared, 1, MPI_MAX, m->comm));
	*sums = several && !shared;
	if (several && shared)
		snprintf(e->without_nccl, sizeof e->without_nccl,
			 "several workers use one GPU, which NCCL does not support");
out:
	return st;
}

enum mu_status mu_engine_gpus_fall_back(struct mu_engine *e, struct mu_kv_type *store)
{
	enum mu_status st = MU_OK;
	const struct conf *v = e->conf;
	const bool by_nodes = mu_engine_gpus_by_nodes(e->conf, e->store);
	struct mu_kv_type is;
	long without;

	MU_TRY(mu_kv_type_check(v->kv_store, &is));
	if (!store->on_gpus || !is.distributed || is.on_gpus ||
	    (by_nodes ? v->node_reduce != MU_KV_NODE_AUTO
		      : v->inter_node != CONF_INTER_NODE_AUTO))
		goto out;
	MU_TRY(find_without(e, &without));
	store->on_gpus = without == LONG_MAX;
	if (store->on_gpus && by_nodes)
		MU_TRY(check_sums(e, &store->on_gpus));
out:
	return st;
}

bool mu_engine_gpus_alone(const struct mu_engine *e)
{
	return e->store->on_gpus && e->devices.list.n == 1 && mu_members_alone(e->members) &&
	       !mu_engine_gpus_by_nodes(e->conf, e->store);
}

/* The plans copy no gradients and no weights. */
static void set_plans(const struct mu_engine *e, const struct engine_plans *p)
{
	struct mu_plan *const plans[] = {p->full, p->tail, p->infer};

	for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
		if (!plans[i])
			continue;
		mu_plan_set_resident(plans[i]);
		if (e->early_backward)
			mu_plan_set_results_later(plans[i]);
	}
}

enum mu_status mu_engine_gpus_join(struct mu_engine *e)
{
	enum mu_status st = MU_OK;
	struct engine_devices *s = &e->devices;
	struct mu_kv_device *use = NULL;

	MU_TRY(mu_peers_agree(e->members, MU_ALLOC(use, s->list.n, "GPUs")));
	/* Only the GPU's own update follows backward: no sum waits for parts of it. */
	e->early_backward = mu_engine_gpus_alone(e) && e->ops->backward_begin;
	for (size_t i = 0; i < s->list.n; i++) {
		use[i] = (struct mu_kv_device){&s->of[i].device, s->of[i].gradients};
		for (size_t g = 0; g < e->n_groups; g++)
			set_plans(e, &s->of[i].plans[g]);
	}
	st = mu_kv_set_devices(e->kv, use, s->list.n);
	if (st == MU_ERR_USAGE && e->members->index == 0)
		mu_log_info("--gpus auto assigns different GPUs to the workers");
	MU_TRY(st);
out:
	mu_free(use);
	return st;
}

void mu_engine_gpus_leave(struct mu_engine *e)
{
	if (e->kv && e->store->on_gpus)
		mu_kv_leave_devices(e->kv);
}

/*
 * Gradients of a recorded piece of backward, at most: sums and copies overlap with the pieces that
 * follow. A single GPU has no sums, and records without a limit.
 */
enum { PIECE_BYTES = 4 << 20 };

static enum mu_status record_plans(struct mu_engine *e, struct engine_device *d)
{
	enum mu_status st = MU_OK;
	const size_t most = mu_engine_gpus_alone(e) ? 0 : PIECE_BYTES;

	for (size_t g = 0; g < e->n_groups; g++) {
		struct mu_plan *const plans[] = {d->plans[g].full, d->plans[g].tail,
						 d->plans[g].infer};

		for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
			if (plans[i])
				MU_TRY(mu_plan_set_recorded(plans[i], most));
	}
out:
	return st;
}

enum mu_status mu_engine_gpus_record(struct mu_engine *e)
{
	enum mu_status st = MU_OK;
	const struct engine_device_list *list = &e->devices.list;
	const char *why;
	size_t recorded, alone;

	if (e->members->role != MU_ROLE_WORKER || !list->kind->memory)
		goto out;
	why = !e->conf->cuda_graph	? "--cuda-graph 0"
	      : e->conf->profile	? "--profile times layer by layer"
	      : !e->ops->shares_batch	? "the network is split over devices"
					: NULL;
	if (!why)
		MU_TRY(mu_engine_devices_run(e, record_plans));
	mu_plan_count_pieces(e->plan, &recorded, &alone);
	if (e->members->index != 0)
		goto out;
	if (why)
		mu_log_detail("a step is no CUDA graph: %s", why);
	else
		mu_log_detail("a step is %zu CUDA graphs, and %zu calls of layers that are not in "
			      "them",
			      recorded, alone);
out:
	return st;
}

/* Upload zeros from the host's array, which only the store writes. */
static enum mu_status clear(struct mu_engine *e, struct engine_device *d)
{
	enum mu_status st = MU_OK;
	const struct mu_device_memory *memory = d->device.ops->memory;
	const size_t n = mu_kv_n(e->kv);
	float *mirror = NULL;

	for (size_t i = 0; i < n; i++)
		d->gradients[i] = 0;
	MU_TRY(memory->mirror(&d->device, &mirror, d->gradients, n));
	MU_TRY(memory->upload(&d->device, mirror, d->gradients, n * sizeof *mirror));
out:
	if (mirror)
		memory->unmirror(&d->device, mirror);
	return st;
}

enum mu_status mu_engine_gpus_clear(struct mu_engine *e, bool all)
{
	enum mu_status st = MU_OK;

	for (size_t i = 0; e->store->on_gpus && i < e->devices.list.n; i++)
		if (all || !e->devices.of[i].now)
			MU_TRY(clear(e, &e->devices.of[i]));
out:
	return st;
}
