/* SPDX-License-Identifier: Apache-2.0 */
/* Options about the store: its kind, its ranks, and compression. */
#include "conf.h"
#include "rules.h"

#include <stdlib.h>
#include <string.h>

#define GC_THRESHOLD 0.5 /* of 2bit, as in MXNet */

enum mu_status mu_conf_compression_settle(const struct mu_options *o, struct conf *v)
{
	enum mu_status st = MU_OK;
	struct mu_compression *c = &v->compression;
	struct mu_coder push, pull;

	if (strcmp(c->type, "2bit") == 0 && !mu_options_given(o, "gc-threshold"))
		c->threshold = GC_THRESHOLD;
	c->pull = v->gc_pull != 0;
	MU_TRY(mu_compress_open(c, &push, &pull));
out:
	return st;
}

/* Do the options put layers on several ranks? "embed=0,lstm=1" does. */
static bool makes_teams(const struct conf *v)
{
	for (const char *p = v->group2rank; p && (p = strchr(p, '=')); p++)
		if (strtoul(p + 1, NULL, 10) > 0)
			return true;
	return v->model_parallel_ranks > 1;
}

static void find_facts(struct conf *v)
{
	const struct mu_kv_type *s = &v->store;
	struct conf_facts *f = &v->facts;

	f->servers = s->has_servers;
	f->distributed = s->distributed;
	f->synchronous = s->synchronous;
	f->lockstep = s->synchronous && s->distributed;
	f->one_by_one = s->has_servers && !s->synchronous;
	f->scaled = v->scale.dynamic || v->scale.start > 0;
	f->scaled_lockstep = s->synchronous && f->scaled;
	f->team = makes_teams(v);
	f->sharded = s->takes_lives;
	f->sums_elsewhere = !s->has_servers && !f->sharded;
	f->peers = s->distributed && !s->has_servers && !s->on_gpus;
}

static enum mu_status check_ranks(const struct conf *v, int ranks)
{
	enum mu_status st = MU_OK;

	if (v->store.has_servers && ranks == 1)
		MU_FAIL(MU_ERR_USAGE,
			"--kv-store %s needs a worker and a server, and there is one rank: start "
			"more with mpirun -np N, or use --kv-store local",
			v->kv_store);
	if (v->store.has_servers && v->num_servers >= ranks)
		MU_FAIL(MU_ERR_USAGE,
			"--num-servers %ld leaves no worker of %d rank%s: at most %d server%s, or "
			"at least mpirun -np %ld",
			v->num_servers, ranks, MU_S(ranks), ranks - 1,
			MU_S(ranks - 1), v->num_servers + 1);
	if (!v->store.distributed && ranks > 1)
		MU_FAIL(MU_ERR_USAGE,
			"--kv-store %s is for one rank, not %d; use dist_sync or another dist_ "
			"store",
			v->kv_store, ranks);
out:
	return st;
}

/* Servers that update by each push compute norms alone, and none of several has whole keys. */
static enum mu_status check_norms(const struct conf *v)
{
	enum mu_status st = MU_OK;

	if (v->facts.one_by_one && v->num_servers > 1 && mu_optim_needs_norms(&v->optim))
		MU_FAIL(MU_ERR_USAGE,
			"--optimizer %s needs norms over whole keys%s; with --kv-store %s and %ld "
			"servers no server has them: use dist_sync, or --num-servers 1",
			v->optim.name,
			v->optim.clip_global_norm > 0 ? " (--clip-global-norm)" : "", v->kv_store,
			v->num_servers);
out:
	return st;
}

/* Servers where an option asks for them, or where they leave three quarters of the ranks to train;
 * of three ranks on one node two. */
static const char *default_store(const struct conf *v, const struct conf_ranks *ranks)
{
	const bool asked = v->num_servers > 0 || v->server_placement == CONF_PACKED;
	const bool few = 4 * ranks->nodes <= ranks->n || (ranks->nodes == 1 && ranks->n > 2);

	if (ranks->n == 1)
		return "device";
	return makes_teams(v) || (!few && !asked) ? "dist_sharded" : "dist_sync";
}

bool mu_conf_sums_up_job(const struct conf *v, int ranks)
{
	struct mu_kv_type is;

	if (!v->summary || v->facts.split || makes_teams(v))
		return false;
	if (!v->kv_store || ranks > 1)
		return true;
	if (mu_kv_type_check(v->kv_store, &is) != MU_OK)
		mu_trace_clear(); /* the job's settings say it again */
	return !is.has_servers;
}

enum mu_status mu_conf_job_settle(const struct mu_options *o, const struct conf_ranks *ranks,
				  struct conf *v)
{
	enum mu_status st = MU_OK;

	v->default_store = !v->kv_store;
	if (!v->kv_store)
		v->kv_store = default_store(v, ranks);
	MU_TRY(mu_kv_type_check(v->kv_store, &v->store));
	/* Servers inside workers: dist_sharded has the same sums, bits and updates as dist_sync. */
	if (v->server_placement == CONF_COLOCATED && v->store.has_servers &&
	    v->store.synchronous) {
		v->kv_store = "dist_sharded";
		MU_TRY(mu_kv_type_check(v->kv_store, &v->store));
	}
	find_facts(v);
	MU_TRY(mu_option_rules_check(o, &mu_conf_job_rules));
	MU_TRY(check_ranks(v, ranks->n));
	MU_TRY(check_norms(v));
	if (v->node_reduce == MU_KV_NODE_NCCL && !v->store.has_servers)
		v->inter_node = CONF_INTER_NODE_MPI;
out:
	return st;
}

void mu_conf_store_config(const struct conf *v, struct mu_kv_config *config)
{
	config->compression = v->compression;
	config->bounded = v->max_staleness >= 0;
	config->max_staleness = config->bounded ? (size_t)v->max_staleness : 0;
	if (v->sync_period > 1)
		config->local_sgd = (struct mu_kv_local_sgd){
			.period = (size_t)v->sync_period,
			.block_momentum = v->block_momentum,
			.block_lr = v->block_lr,
			.nesterov = v->block_nesterov != 0,
		};
}
