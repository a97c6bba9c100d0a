/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options about how workers keep step, the bound of staleness of dist_async and local SGD for the
 * synchronous stores; and about compression of what they send.
 */
#include "train/train.h"

#include <string.h>

#define GC_THRESHOLD 0.5 /* MXNet's, of 2bit */

static enum mu_status check_block(const struct mu_options *o, const struct conf *v)
{
	enum mu_status st = MU_OK;
	static const char *const names[] = {"block-momentum", "block-lr", "block-nesterov"};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (mu_options_given(o, names[i]) && v->sync_period == 1)
			MU_FAIL(MU_ERR_USAGE,
				"--%s needs --sync-period K above 1: it is about averages of the "
				"workers' weights",
				names[i]);
	if (v->block_momentum >= 1)
		MU_FAIL(MU_ERR_USAGE, "--block-momentum %g: it must be below 1", v->block_momentum);
	if (v->block_lr <= 0)
		MU_FAIL(MU_ERR_USAGE, "--block-lr %g: more than 0 is needed, or nothing is learnt",
			v->block_lr);
	if (v->block_nesterov && v->block_momentum == 0)
		MU_FAIL(MU_ERR_USAGE, "--block-nesterov 1 needs --block-momentum X above 0");
out:
	return st;
}

/* Defaults that depend on the type; settings of another type. */
static enum mu_status settle_compression(const struct mu_options *o, struct conf *v)
{
	enum mu_status st = MU_OK;
	struct mu_compression *c = &v->compression;
	const bool two = strcmp(c->type, "2bit") == 0, one = strcmp(c->type, "1bit") == 0;
	struct mu_coder push, pull;

	if (mu_options_given(o, "gc-threshold") && !two && !one)
		MU_FAIL(MU_ERR_USAGE, "--gc-threshold %g needs --gc-type 2bit or 1bit, not %s",
			c->threshold, c->type);
	if (mu_options_given(o, "gc-ratio") && strcmp(c->type, "topk") != 0)
		MU_FAIL(MU_ERR_USAGE, "--gc-ratio %g needs --gc-type topk, not %s", c->ratio,
			c->type);
	if (v->gc_pull && strcmp(c->type, "none") == 0)
		MU_FAIL(MU_ERR_USAGE, "--gc-pull 1 needs --gc-type: compressed how?");
	if (two && !mu_options_given(o, "gc-threshold"))
		c->threshold = GC_THRESHOLD;
	c->pull = v->gc_pull != 0;
	MU_TRY(mu_compress_open(c, &push, &pull));
out:
	return st;
}

enum mu_status mu_conf_store_settle(const struct mu_options *o, struct conf *v)
{
	enum mu_status st = MU_OK;

	MU_TRY(check_block(o, v));
	MU_TRY(settle_compression(o, v));
	if (v->sync_period > 1 && v->schedule.scale_with_workers)
		MU_FAIL(MU_ERR_USAGE,
			"--lr-scale-with-workers 1 with --sync-period %ld: an update is of one "
			"worker's batch there; --sync-period 1 sums all workers' gradients",
			v->sync_period);
out:
	return st;
}

/* Nobody waits for others inside an epoch, but MPI and its launcher end all of the job. */
static enum mu_status check_loss_of_workers(const struct train_run *run)
{
	enum mu_status st = MU_OK;
	char mpi[128];

	if (!run->options.tolerate_worker_loss)
		goto out;
	if (run->store.synchronous)
		MU_FAIL(MU_ERR_USAGE,
			"--tolerate-worker-loss 1 with --kv-store %s, where every update needs all "
			"workers: it is for dist_async",
			run->options.kv_store);
	mu_comm_version(mpi, sizeof mpi);
	MU_FAIL(MU_ERR_USAGE,
		"--tolerate-worker-loss 1: %s and its launcher end the whole job when a process "
		"dies; it would need an MPI that goes on without it (ULFM: MPIX_Comm_revoke, "
		"MPIX_Comm_shrink) and a Muster that uses this; jobs/supervise with --resume auto "
		"starts the job again from its newest checkpoint",
		mpi);
out:
	return st;
}

/* Stores of GPUs work on the GPUs' own arrays, which the trainer itself does not look into. */
static enum mu_status check_gpus(const struct train_run *run)
{
	enum mu_status st = MU_OK;
	const struct conf *v = &run->options;
	struct engine_device_list list;
	const char *why;

	if (!run->store.on_gpus)
		goto out;
	MU_TRY(mu_engine_device_list_read(&list, v));
	if (!list.kind->memory)
		MU_FAIL(MU_ERR_USAGE,
			"no GPU in this job: --kv-store %s sums between GPUs, and the devices are "
			"%s; name GPUs with --gpus (0, or 0,1, or auto), or use dist_sync, "
			"dist_sharded or dist_allreduce",
			v->kv_store, v->devices ? v->devices : list.kind->name);
	why = mu_engine_gpus_obstacle(v, list.split);
	if (why)
		MU_FAIL(MU_ERR_USAGE,
			"--kv-store %s keeps gradients and weights on the GPUs, and %s",
			v->kv_store, why);
out:
	return st;
}

/* How servers and messages are, for stores that have them. */
static enum mu_status check_messages(const struct train_run *run)
{
	enum mu_status st = MU_OK;
	const struct conf *v = &run->options;

	if (v->server_placement == CONF_PACKED && !run->store.has_servers)
		MU_FAIL(MU_ERR_USAGE, "--server-placement packed: --kv-store %s has no servers",
			v->kv_store);
	if (v->priority == 0 && (!run->store.synchronous || !run->store.distributed))
		MU_FAIL(MU_ERR_USAGE,
			"--priority 0 with --kv-store %s: it is about the order in which "
			"dist_sync, dist_sharded and dist_allreduce answer",
			v->kv_store);
	if (v->node_reduce != MU_KV_NODE_AUTO && !run->store.distributed)
		MU_FAIL(MU_ERR_USAGE,
			"--node-reduce %s with --kv-store %s, where nothing goes between ranks by "
			"MPI or in memory that they share",
			mu_conf_node_words[v->node_reduce], v->kv_store);
out:
	return st;
}

enum mu_status mu_conf_store_check(const struct train_run *run)
{
	enum mu_status st = MU_OK;
	const struct conf *v = &run->options;

	MU_TRY(check_gpus(run));
	MU_TRY(check_messages(run));
	if (v->max_staleness >= 0 && run->store.synchronous)
		MU_FAIL(MU_ERR_USAGE,
			"--max-staleness %ld with --kv-store %s, where all workers keep step: it "
			"is for dist_async and dist_device_async",
			v->max_staleness, v->kv_store);
	MU_TRY(check_loss_of_workers(run));
	if (v->verify_steps > 0 && !run->store.synchronous)
		MU_FAIL(MU_ERR_USAGE,
			"--verify-steps %ld with --kv-store %s: its workers hold different weights "
			"at all times; it is for the synchronous stores",
			v->verify_steps, v->kv_store);
	if (v->verify_steps % v->sync_period != 0)
		MU_FAIL(MU_ERR_USAGE,
			"--verify-steps %ld: workers hold the same weights after each average "
			"only; a multiple of --sync-period %ld is needed",
			v->verify_steps, v->sync_period);
	if (v->sync_period > 1 && (!run->store.synchronous || !run->store.distributed))
		MU_FAIL(MU_ERR_USAGE,
			"--sync-period %ld with --kv-store %s: averages are for dist_sync, "
			"dist_device_sync, dist_sharded and dist_allreduce",
			v->sync_period, v->kv_store);
	if (mu_compress_is_on(&v->compression) && !run->store.distributed)
		MU_FAIL(MU_ERR_USAGE,
			"--gc-type %s with --kv-store %s, where nothing goes between ranks by MPI: "
			"it is for dist_sync, dist_async, dist_sharded and dist_allreduce",
			v->compression.type, v->kv_store);
	if (mu_compress_is_on(&v->compression) && run->store.synchronous &&
	    mu_train_loss_scale_is_on(v))
		MU_FAIL(MU_ERR_USAGE,
			"--gc-type %s with --kv-store %s and a loss scale: where a batch is left "
			"out, what compression keeps for later would be lost; --loss-scale none, "
			"or --gc-type none",
			v->compression.type, v->kv_store);
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

static void report_compression(const struct conf *v, const struct mu_kv_layout *layout)
{
	const struct mu_compression *c = &v->compression;
	char setting[48] = "";

	if (strstr(c->type, "bit"))
		snprintf(setting, sizeof setting, " (threshold %g)", c->threshold);
	else if (strcmp(c->type, "topk") == 0)
		snprintf(setting, sizeof setting, " (ratio %g)", c->ratio);
	mu_log_info("compression %s%s: gradients %.3f MB, what comes back %.3f MB, of %.3f MB "
		    "each",
		    c->type, setting, (double)layout->bytes_pushed / 1e6,
		    (double)layout->bytes_pulled / 1e6, (double)layout->bytes / 1e6);
}

void mu_conf_store_report(const struct train_run *run)
{
	const struct conf *v = &run->options;
	struct mu_kv_layout layout;

	mu_kv_layout(run->kv, &layout);
	if (run->store.on_gpus && run->store.distributed)
		mu_log_info("sums %sare NCCL's, in an order of its own: their last bits depend on "
			    "the GPUs, NCCL and the size of buckets",
			    mu_engine_gpus_by_nodes(v, &run->store) ? "of a node's GPUs " : "");
	if (!run->store.synchronous)
		mu_log_info("weights as the workers have pulled them: %.3f MB on the servers (none "
			    "for a worker that shares memory with its server)",
			    (double)layout.bytes_copies / 1e6);
	if (v->max_staleness >= 0)
		mu_log_info("staleness is bounded: no worker starts a step before all have pushed "
			    "the step %ld before it",
			    v->max_staleness + 1);
	if (mu_compress_is_on(&v->compression))
		report_compression(v, &layout);
	if (v->sync_period <= 1)
		return;
	mu_log_info("local SGD: every worker updates by its own gradients; after every %ld updates "
		    "and at the end of an epoch the weights are averaged by samples",
		    v->sync_period);
	mu_log_info("local SGD: weights of its own on every worker: %.3f MB",
		    (double)layout.bytes / 1e6);
	if (v->block_momentum > 0 || v->block_lr != 1)
		mu_log_info("averages: block momentum %g%s, block learning rate %g",
			    v->block_momentum, v->block_nesterov ? " (Nesterov)" : "", v->block_lr);
}

/* "0: 12, 1: 30, 11 or more: 2", without what there was none of. */
static void list_counts(const struct mu_kv_staleness *s, char *text, size_t nbytes)
{
	size_t n = 0;

	text[0] = '\0';
	for (size_t i = 0; i < MU_KV_STALENESS_BINS && n < nbytes; i++)
		if (s->counts[i] > 0)
			n += (size_t)snprintf(text + n, nbytes - n, "%s%zu%s: %.0f", n ? ", " : "",
					      i, i + 1 < MU_KV_STALENESS_BINS ? "" : " or more",
					      s->counts[i]);
}

void mu_conf_store_report_end(const struct train_run *run)
{
	struct mu_kv_staleness s;
	char counts[512];

	if (mu_compress_is_on(&run->options.compression))
		mu_log_info("worker 0's seconds: compression %.3f",
			    mu_clock_seconds(MU_CLOCK_COMPRESS));
	if (run->store.synchronous)
		return;
	mu_kv_staleness(run->kv, &s);
	list_counts(&s, counts, sizeof counts);
	mu_log_info("staleness: mean %.2f, max %.0f updates by others between a pull and the next "
		    "push (%.0f pushes)",
		    s.mean, s.max, s.pushes);
	mu_log_info("pushes by staleness: %s", counts);
	if (run->options.max_staleness >= 0)
		mu_log_info("held back by the bound of staleness: %.0f pushes, %.3f s in all",
			    s.held_back, s.held_back_seconds);
}
