/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The settings of a store: are they consistent, valid for the kind of store, and the same on
 * all ranks?
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

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
	const struct mu_topology *t = config->topology;

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
	const struct mu_topology *t = config->topology;
	struct mu_kv_type is;

	MU_TRY(mu_kv_type_check(config->type, &is));
	if (config->on_gpus && !is.takes_gpus)
		MU_FAIL(MU_ERR_USAGE,
			"kv-store '%s' with arrays on GPUs: in this build it has none there",
			config->type);
	if (!is.distributed && t->num_workers > 1)
		MU_FAIL(MU_ERR_USAGE,
			"kv-store '%s' is for one worker, and there are %d: use dist_sync or "
			"another "
			"dist_ store",
			config->type, t->num_workers);
	if (is.has_servers && t->num_servers == 0)
		MU_FAIL(MU_ERR_USAGE, "kv-store '%s' needs at least one server", config->type);
	if (!is.has_servers && t->num_servers > 0)
		MU_FAIL(MU_ERR_USAGE, "kv-store '%s' has no servers, and %d are asked for",
			config->type, t->num_servers);
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
	if (!is.synchronous && t->num_servers > 1 && mu_optim_needs_norms(&config->optim))
		MU_FAIL(MU_ERR_USAGE,
			"optimizer %s needs norms over whole keys%s; with kv-store '%s' and %d "
			"servers no server has them: use dist_sync, or one server",
			config->optim.name,
			config->optim.clip_global_norm > 0 ? " (clip_global_norm)" : "",
			config->type, t->num_servers);
out:
	return st;
}

/*
 * ---- are they the same on all ranks? ----
 *
 * Each setting is compared with rank 0's, as text. That takes two small collectives; a third only
 * if a rank differs, so that every rank can report which one and its value.
 */

#define VALUE_BYTES 32

enum type { TEXT, REAL, SIZE, FLAG, NODE, SCHEDULE };

struct setting {
	const char *name;
	enum type type;
	size_t offset;
	bool of_keys; /* also of a store of keys */
};

#define AT(member) offsetof(struct mu_kv_config, member)

static const struct setting settings[] = {
	{"type", TEXT, AT(type), true},
	{"on_gpus", FLAG, AT(on_gpus), true},
	{"n_updaters", SIZE, AT(n_updaters), true},
	{"bucket_bytes", SIZE, AT(bucket_bytes), false},
	{"message_bytes", SIZE, AT(message_bytes), false},
	{"priority", FLAG, AT(priority), false},
	{"node_reduce", NODE, AT(node_reduce), false},
	{"bounded", FLAG, AT(bounded), false},
	{"max_staleness", SIZE, AT(max_staleness), false},
	{"local_sgd.period", SIZE, AT(local_sgd.period), false},
	{"local_sgd.block_momentum", REAL, AT(local_sgd.block_momentum), false},
	{"local_sgd.block_lr", REAL, AT(local_sgd.block_lr), false},
	{"local_sgd.nesterov", FLAG, AT(local_sgd.nesterov), false},
	{"compression.type", TEXT, AT(compression.type), false},
	{"compression.threshold", REAL, AT(compression.threshold), false},
	{"compression.ratio", REAL, AT(compression.ratio), false},
	{"compression.pull", FLAG, AT(compression.pull), false},
	{"progress", REAL, AT(progress), false},
	{"optim.name", TEXT, AT(optim.name), false},
	{"optim.mom", REAL, AT(optim.mom), false},
	{"optim.wd", REAL, AT(optim.wd), false},
	{"optim.beta1", REAL, AT(optim.beta1), false},
	{"optim.beta2", REAL, AT(optim.beta2), false},
	{"optim.eps", REAL, AT(optim.eps), false},
	{"optim.clip_gradient", REAL, AT(optim.clip_gradient), false},
	{"optim.wd_gamma", FLAG, AT(optim.wd_gamma), false},
	{"optim.clip_global_norm", REAL, AT(optim.clip_global_norm), false},
	{"optim.rho", REAL, AT(optim.rho), false},
	{"optim.gamma1", REAL, AT(optim.gamma1), false},
	{"optim.gamma2", REAL, AT(optim.gamma2), false},
	{"optim.centered", FLAG, AT(optim.centered), false},
	{"optim.decoupled", FLAG, AT(optim.decoupled), false},
	{"optim.lamda1", REAL, AT(optim.lamda1), false},
	{"optim.beta", REAL, AT(optim.beta), false},
	{"optim.wd_lh", REAL, AT(optim.wd_lh), false},
	{"optim.lars_eta", REAL, AT(optim.lars_eta), false},
	{"optim.lamda", REAL, AT(optim.lamda), false},
	{"optim.lower_bound", REAL, AT(optim.lower_bound), false},
	{"optim.upper_bound", REAL, AT(optim.upper_bound), false},
	{"schedule", SCHEDULE, AT(schedule), false},
	{"schedule.lr", REAL, AT(schedule.lr), false},
	{"schedule.factor", REAL, AT(schedule.factor), false},
	{"schedule.n_steps", SIZE, AT(schedule.n_steps), false},
	{"schedule.step", REAL, AT(schedule.step), false},
	{"schedule.length", REAL, AT(schedule.length), false},
	{"schedule.power", REAL, AT(schedule.power), false},
	{"schedule.final_lr", REAL, AT(schedule.final_lr), false},
	{"schedule.warmup", REAL, AT(schedule.warmup), false},
	{"schedule.warmup_begin_lr", REAL, AT(schedule.warmup_begin_lr), false},
	{"schedule.warmup_constant", FLAG, AT(schedule.warmup_constant), false},
};

enum { N_SETTINGS = sizeof settings / sizeof *settings };

/* Kind and boundaries; the other members have rows of their own. */
static void describe_schedule(char *text, const struct mu_schedule *s)
{
	double sum = 0;

	for (size_t i = 0; i < s->n_steps && i < MU_MAX_LR_STEPS; i++)
		sum = sum * 3 + s->steps[i];
	snprintf(text, VALUE_BYTES, "kind %d, %.15g", (int)s->kind, sum);
}

static void describe(char *text, const struct setting *s, const struct mu_kv_config *config)
{
	const void *p = (const char *)config + s->offset;

	switch (s->type) {
	case TEXT: {
		const char *const *word = p;

		snprintf(text, VALUE_BYTES, "%s", *word ? *word : "none");
		break;
	}
	case REAL: mu_real_text(*(const double *)p, text, VALUE_BYTES); break;
	case SIZE: snprintf(text, VALUE_BYTES, "%zu", *(const size_t *)p); break;
	case FLAG: snprintf(text, VALUE_BYTES, "%d", *(const bool *)p); break;
	case NODE: snprintf(text, VALUE_BYTES, "%d", (int)*(const enum mu_kv_node *)p); break;
	case SCHEDULE: describe_schedule(text, p); break;
	}
}

/* A rank that differs, its value, and rank 0's. */
struct difference {
	int rank, setting;
	char value[VALUE_BYTES];
};

/* This rank's first setting that differs from rank 0's; rank is INT_MAX if there is none. */
static struct difference find(const struct mu_kv *kv, const struct mu_kv_config *config,
			      char (*first)[VALUE_BYTES])
{
	struct difference d = {.rank = INT_MAX};

	for (int i = 0; i < N_SETTINGS; i++) {
		if (kv->n_slices == 0 && !settings[i].of_keys)
			continue;
		memset(d.value, 0, sizeof d.value);
		describe(d.value, &settings[i], config);
		if (strcmp(d.value, first[i]) != 0) {
			d.rank = kv->topology->rank;
			d.setting = i;
			break;
		}
	}
	return d;
}

enum mu_status mu_kv_config_agree(struct mu_kv *kv, const struct mu_kv_config *config)
{
	enum mu_status st = MU_OK;
	char first[N_SETTINGS][VALUE_BYTES] = {{0}};
	struct difference d;
	long lowest;

	for (int i = 0; kv->topology->rank == 0 && i < N_SETTINGS; i++)
		describe(first[i], &settings[i], config);
	MU_TRY(mu_bcast(first, sizeof first, 0, kv->comm));
	d = find(kv, config, first);
	lowest = d.rank;
	MU_TRY(mu_allreduce_long(&lowest, 1, MPI_MIN, kv->comm));
	if (lowest == INT_MAX)
		goto out;
	MU_TRY(mu_bcast(&d, sizeof d, (int)lowest, kv->comm));
	MU_FAIL(MU_ERR_ARGUMENT,
		"mu_kv_new: %s is %s on rank %d, and %s on rank 0: it must be the same on all "
		"ranks",
		settings[d.setting].name, d.value, d.rank, first[d.setting]);
out:
	return st;
}
