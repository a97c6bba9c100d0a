/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Options about how workers keep step: the bound of staleness of dist_async, and local SGD for the
 * synchronous stores.
 */
#include "train.h"

static enum mu_status check_block(const struct mu_options *o, const struct train_options *v)
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

enum mu_status mu_train_store_settle(const struct mu_options *o, const struct train_options *v)
{
	enum mu_status st = MU_OK;

	MU_TRY(check_block(o, v));
	if (v->sync_period > 1 && v->schedule.scale_with_workers)
		MU_FAIL(MU_ERR_USAGE,
			"--lr-scale-with-workers 1 with --sync-period %ld: an update is of one "
			"worker's batch there; --sync-period 1 sums all workers' gradients",
			v->sync_period);
out:
	return st;
}

enum mu_status mu_train_store_check(const struct train_run *run)
{
	enum mu_status st = MU_OK;
	const struct train_options *v = &run->options;

	if (v->max_staleness >= 0 && run->store.synchronous)
		MU_FAIL(MU_ERR_USAGE,
			"--max-staleness %ld with --kv-store %s, where all workers keep step: it "
			"is for dist_async and dist_device_async",
			v->max_staleness, v->kv_store);
	if (v->sync_period > 1 && !(run->store.synchronous && run->store.distributed))
		MU_FAIL(MU_ERR_USAGE,
			"--sync-period %ld with --kv-store %s: averages are for dist_sync, "
			"dist_device_sync, dist_sharded and dist_allreduce",
			v->sync_period, v->kv_store);
out:
	return st;
}

void mu_train_store_config(const struct train_options *v, struct mu_kv_config *config)
{
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

void mu_train_store_report(const struct train_run *run)
{
	const struct train_options *v = &run->options;
	struct mu_kv_layout layout;

	mu_kv_layout(run->kv, &layout);
	if (!run->store.synchronous)
		mu_log_info("weights as the workers have pulled them: %.3f MB on the servers (none "
			    "for a worker that shares memory with its server)",
			    (double)layout.bytes_copies / 1e6);
	if (v->max_staleness >= 0)
		mu_log_info("staleness is bounded: no worker starts a step before all have pushed "
			    "the step %ld before it",
			    v->max_staleness + 1);
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

void mu_train_store_report_end(const struct train_run *run)
{
	struct mu_kv_staleness s;
	char counts[512];

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
