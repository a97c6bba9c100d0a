/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of a store: are they consistent, valid for the kind of store, and the same on
 * all ranks?
 */
#include <stdio.h>

#include "comm/store.h"
#include "kv.h"

/* ---- are they consistent? ---- */

static enum mu_status check_compression(const struct mu_kv_config *config,
					const struct mu_kv_type *is)
{
	enum mu_status st = MU_OK;
	struct mu_coder push, pull;

	MU_TRY(mu_compress_open(&config->compression, &push, &pull));
	if (push.codec && !is->distributed)
		MU_FAIL(MU_ERR_USAGE,
			"compression %s with kv-store '%s', where nothing goes between ranks: it "
			"is for the dist_ stores",
			config->compression.type, config->type);
	if (push.codec && is->on_gpus)
		MU_FAIL(MU_ERR_USAGE,
			"compression %s with kv-store '%s', where NCCL sums between GPUs: it is "
			"for the dist_ stores",
			config->compression.type, config->type);
out:
	return st;
}

/* A node's sum loses each worker's own push (dist_async) and its residual (compression). */
static enum mu_status check_node_reduce(const struct mu_kv_config *config,
					const struct mu_kv_type *is)
{
	enum mu_status st = MU_OK;
	struct mu_coder push, pull;

	if (config->node_reduce == MU_KV_NODE_NCCL &&
	    !(config->on_gpus && mu_kv_kind_has_gpus(config->type, MU_KV_GPUS_NODE)))
		MU_FAIL(MU_ERR_USAGE,
			"node-reduce nccl with kv-store '%s'%s: it is for dist_sync, dist_async, "
			"their device forms and dist_sharded, with arrays on GPUs",
			config->type, config->on_gpus ? "" : " and arrays on the CPU");
	if (config->node_reduce != MU_KV_NODE_MPI || !is->distributed)
		goto out;
	MU_TRY(mu_compress_open(&config->compression, &push, &pull));
	if (!is->synchronous)
		MU_FAIL(MU_ERR_USAGE,
			"node-reduce mpi with kv-store '%s', where every worker's push is an "
			"update "
			"of its own: it is for dist_sync, dist_sharded and dist_allreduce; auto, "
			"shm and none are possible",
			config->type);
	if (push.codec)
		MU_FAIL(MU_ERR_USAGE,
			"node-reduce mpi with compression %s, where every worker keeps a "
			"residual of its own gradients: auto, shm and none are possible",
			config->compression.type);
out:
	return st;
}

/* NCCL reaches the GPUs of one node; between nodes are the stores dist_. */
static enum mu_status check_nodes(const struct mu_kv_config *config, const struct mu_kv_type *is)
{
	enum mu_status st = MU_OK;
	const struct mu_topology *t = &config->members->topology;

	if (is->on_gpus && t->num_nodes > 1)
		MU_FAIL(MU_ERR_USAGE,
			"kv-store '%s' sums between the GPUs of one node, and the ranks are on %d "
			"nodes: use dist_sync, dist_sharded or dist_allreduce",
			config->type, t->num_nodes);
out:
	return st;
}

/* Elsewhere something needs gradients that were pushed, or there is nobody to take them early. */
static enum mu_status check_lives(const struct mu_kv_config *config, const struct mu_kv_type *is)
{
	enum mu_status st = MU_OK;

	if (!config->lives)
		goto out;
	if (!is->takes_lives || is->on_gpus)
		MU_FAIL(MU_ERR_USAGE,
			"shards of gradients with kv-store '%s'%s: they are for dist_sharded, with "
			"arrays on the CPU",
			config->type, is->on_gpus ? " on GPUs" : "");
	if (config->local_sgd.period > 1 || mu_compress_is_on(&config->compression))
		MU_FAIL(MU_ERR_USAGE,
			"shards of gradients with local SGD or compression, which keep whole "
			"arrays");
out:
	return st;
}

/* The same on every rank, so all of them fail or none. */
enum mu_status mu_kv_config_check(const struct mu_kv_config *config)
{
	enum mu_status st = MU_OK;
	const struct mu_members *m = config->members;
	struct mu_kv_type is;

	MU_TRY(mu_kv_type_check(config->type, &is));
	if (config->on_gpus && !is.takes_gpus)
		MU_FAIL(MU_ERR_USAGE,
			"kv-store '%s' with arrays on GPUs: in this build it has none there",
			config->type);
	MU_TRY(mu_store_check_ranks(config->type,
				    (is.has_servers ? MU_STORE_HAS_SERVERS : 0) |
					    (is.distributed ? 0 : MU_STORE_ONE_WORKER),
				    m));
	if (config->bounded && is.synchronous)
		MU_FAIL(MU_ERR_USAGE,
			"a bound of staleness with kv-store '%s', where all workers keep step: it "
			"is for dist_async and dist_device_async",
			config->type);
	MU_TRY(check_nodes(config, &is));
	is.on_gpus |= config->on_gpus;
	MU_TRY(check_compression(config, &is));
	MU_TRY(check_node_reduce(config, &is));
	MU_TRY(check_lives(config, &is));
	MU_TRY(mu_kv_local_sgd_check(config, &is));
	if (!is.synchronous && m->num_servers > 1 && mu_optim_needs_norms(&config->optim))
		MU_FAIL(MU_ERR_USAGE,
			"optimizer %s needs norms over whole keys%s; with kv-store '%s' and %d "
			"servers no server has them: use dist_sync, or one server",
			config->optim.name,
			config->optim.clip_global_norm > 0 ? " (clip_global_norm)" : "",
			config->type, m->num_servers);
out:
	return st;
}

/*
 * ---- are they the same on all ranks? ----
 * Each setting is compared with rank 0's, as text.
 */

enum type { TEXT, REAL, SIZE, FLAG, NODE, SCHEDULE };

struct setting {
	const char *name;
	enum type type;
	size_t offset;
};

#define AT(member) offsetof(struct mu_kv_config, member)

static const struct setting settings[] = {
	{"type", TEXT, AT(type)},
	{"on_gpus", FLAG, AT(on_gpus)},
	{"bucket_bytes", SIZE, AT(bucket_bytes)},
	{"message_bytes", SIZE, AT(message_bytes)},
	{"priority", FLAG, AT(priority)},
	{"node_reduce", NODE, AT(node_reduce)},
	{"bounded", FLAG, AT(bounded)},
	{"max_staleness", SIZE, AT(max_staleness)},
	{"local_sgd.period", SIZE, AT(local_sgd.period)},
	{"local_sgd.block_momentum", REAL, AT(local_sgd.block_momentum)},
	{"local_sgd.block_lr", REAL, AT(local_sgd.block_lr)},
	{"local_sgd.nesterov", FLAG, AT(local_sgd.nesterov)},
	{"compression.type", TEXT, AT(compression.type)},
	{"compression.threshold", REAL, AT(compression.threshold)},
	{"compression.ratio", REAL, AT(compression.ratio)},
	{"compression.pull", FLAG, AT(compression.pull)},
	{"progress", REAL, AT(progress)},
	{"optim.name", TEXT, AT(optim.name)},
	{"optim.mom", REAL, AT(optim.mom)},
	{"optim.wd", REAL, AT(optim.wd)},
	{"optim.beta1", REAL, AT(optim.beta1)},
	{"optim.beta2", REAL, AT(optim.beta2)},
	{"optim.eps", REAL, AT(optim.eps)},
	{"optim.clip_gradient", REAL, AT(optim.clip_gradient)},
	{"optim.wd_gamma", FLAG, AT(optim.wd_gamma)},
	{"optim.clip_global_norm", REAL, AT(optim.clip_global_norm)},
	{"optim.rho", REAL, AT(optim.rho)},
	{"optim.gamma1", REAL, AT(optim.gamma1)},
	{"optim.gamma2", REAL, AT(optim.gamma2)},
	{"optim.centered", FLAG, AT(optim.centered)},
	{"optim.decoupled", FLAG, AT(optim.decoupled)},
	{"optim.lamda1", REAL, AT(optim.lamda1)},
	{"optim.beta", REAL, AT(optim.beta)},
	{"optim.wd_lh", REAL, AT(optim.wd_lh)},
	{"optim.lars_eta", REAL, AT(optim.lars_eta)},
	{"optim.lamda", REAL, AT(optim.lamda)},
	{"optim.lower_bound", REAL, AT(optim.lower_bound)},
	{"optim.upper_bound", REAL, AT(optim.upper_bound)},
	{"schedule", SCHEDULE, AT(schedule)},
	{"schedule.lr", REAL, AT(schedule.lr)},
	{"schedule.factor", REAL, AT(schedule.factor)},
	{"schedule.n_steps", SIZE, AT(schedule.n_steps)},
	{"schedule.step", REAL, AT(schedule.step)},
	{"schedule.length", REAL, AT(schedule.length)},
	{"schedule.power", REAL, AT(schedule.power)},
	{"schedule.final_lr", REAL, AT(schedule.final_lr)},
	{"schedule.warmup", REAL, AT(schedule.warmup)},
	{"schedule.warmup_begin_lr", REAL, AT(schedule.warmup_begin_lr)},
	{"schedule.warmup_constant", FLAG, AT(schedule.warmup_constant)},
};

enum { N_SETTINGS = sizeof settings / sizeof *settings };
_Static_assert((int)N_SETTINGS <= (int)MU_SETTINGS_MAX, "settings that are compared");

/* Kind and boundaries; the other members have rows of their own. */
static void describe_schedule(char *text, const struct mu_schedule *s)
{
	double sum = 0;

	for (size_t i = 0; i < s->n_steps && i < MU_MAX_LR_STEPS; i++)
		sum = sum * 3 + s->steps[i];
	snprintf(text, MU_SETTING_BYTES, "kind %d, %.15g", (int)s->kind, sum);
}

static const char *name(size_t i)
{
	return settings[i].name;
}

static void describe(const void *config, size_t i, char text[MU_SETTING_BYTES])
{
	const void *p = (const char *)config + settings[i].offset;

	switch (settings[i].type) {
	case TEXT: {
		const char *const *word = p;

		snprintf(text, MU_SETTING_BYTES, "%s", *word ? *word : "none");
		break;
	}
	case REAL: mu_real_text(*(const double *)p, text, MU_SETTING_BYTES); break;
	case SIZE: snprintf(text, MU_SETTING_BYTES, "%zu", *(const size_t *)p); break;
	case FLAG: snprintf(text, MU_SETTING_BYTES, "%d", *(const bool *)p); break;
	case NODE: snprintf(text, MU_SETTING_BYTES, "%d", (int)*(const enum mu_kv_node *)p); break;
	case SCHEDULE: describe_schedule(text, p); break;
	}
}

enum mu_status mu_kv_config_agree(const struct mu_kv *kv, const struct mu_kv_config *config)
{
	const struct mu_store_settings all = {
		.call = "mu_kv_new", .n = N_SETTINGS, .name = name, .describe = describe};

	return mu_store_settings_agree(&all, config, kv->members, kv->comm);
}
