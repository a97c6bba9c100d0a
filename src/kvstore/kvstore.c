/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The public calls of the store: they check the order of calls, count the step's keys and buckets,
 * measure times, and call the functions of the kind of store.
 */
#include <stdlib.h>
#include <string.h>

#include "comm/store.h"
#include "kvstore/ps/dist.h"
#include "message_log.h"

/* The variable is for the store of keys. */
static void warn_of_bound(const struct mu_kv *kv)
{
	const char *bound = getenv("MXNET_KVSTORE_BIGARRAY_BOUND");

	if (kv->members->rank == 0 && bound && *bound)
		mu_log_info("MXNET_KVSTORE_BIGARRAY_BOUND=%s has no effect on a model: every "
			    "bucket of keys is cut evenly over all servers, whatever its size",
			    bound);
}

static void find_servers(struct mu_kv *kv)
{
	const struct mu_members *m = kv->members;

	kv->ends.n_servers = kv->kind.hosted ? m->num_workers : m->num_servers;
	kv->ends.n_workers = m->num_workers;
}

enum mu_status mu_kv_outline(struct mu_kv *kv, const struct mu_kv_config *config)
{
	enum mu_status st = MU_OK;

	kv->members = config->members;
	kv->kind = mu_kv_kind_of(config);
	kv->ops = kv->kind.ops;
	find_servers(kv);
	MU_TRY(mu_compress_open(&config->compression, &kv->push_coder, &kv->pull_coder));
	kv->own_weights = kv->kind.own_weights || kv->pull_coder.codec;
out:
	return st;
}

enum mu_status mu_kv_lay_out(struct mu_kv *kv, const struct mu_kv_config *config)
{
	enum mu_status st = MU_OK;
	const struct mu_kv_cut cut = {
		.bucket_bytes = config->bucket_bytes,
		.message_bytes = config->message_bytes,
		.n_servers = kv->ends.n_servers > 0 ? kv->ends.n_servers : 1,
		.blocks = mu_compress_has_blocks(&kv->push_coder) ||
			  mu_compress_has_blocks(&kv->pull_coder),
	};

	MU_TRY(mu_kv_plan_init(&kv->model.plan, kv->model.slices, kv->model.n_slices, &cut));
	MU_TRY(mu_kv_gradients_open(kv, config->lives));
	MU_TRY(mu_kv_nodes_open(kv, config->node_reduce));
out:
	return st;
}

static enum mu_status build(struct mu_kv *kv, const struct mu_kv_config *config)
{
	enum mu_status st = MU_OK;
	struct mu_kv_config inner = *config;

	warn_of_bound(kv);
	MU_TRY(mu_kv_lay_out(kv, config));
	kv->rules.replaces =
		config->local_sgd.period <= 1 && !kv->pull_coder.codec &&
		mu_optim_replaces(&config->optim, kv->model.slices, kv->model.n_slices);
	MU_TRY(mu_kv_arrays_open(kv, config->node_reduce));
	if (kv->members->role == MU_ROLE_WORKER) {
		MU_TRY(MU_ALLOC(kv->step.ready, kv->model.n_slices, "keys pushed"));
		MU_TRY(MU_ALLOC(kv->step.keys_left, kv->model.plan.n_buckets, "keys to push"));
		MU_TRY(MU_ALLOC(kv->step.versions, kv->model.n_slices, "versions of keys"));
		MU_TRY(MU_ALLOC(kv->step.pulled, kv->model.plan.n_buckets, "buckets pulled"));
	}
	if (inner.local_sgd.period > 1)
		MU_TRY(mu_kv_replica_open(kv, &inner));
	inner.optim.prior = !kv->kind.synchronous; /* as on the server ends */
	kv->saved.n_names = mu_optim_states(&inner.optim, kv->saved.names);
	if (kv->pull_coder.codec && kv->kind.synchronous && !kv->kind.workers_update)
		kv->saved.names[kv->saved.n_names++] = MU_KV_EXACT;
	MU_TRY(kv->ops->open(kv, &inner));
out:
	return st;
}

enum mu_status mu_kv_new(struct mu_kv **out, const struct mu_kv_config *config)
{
	enum mu_status st = MU_OK;
	struct mu_kv *kv = NULL;

	*out = NULL;
	MU_TRY(MU_ALLOC(kv, 1, "store"));
	kv->members = config->members;
	kv->comm = MPI_COMM_NULL;
	MU_TRY(mu_store_comm(kv->members, false, &kv->comm));
	MU_TRY(mu_agree(mu_kv_config_check(config), kv->comm));
	MU_TRY(mu_kv_outline(kv, config));
	kv->push_clock = MU_CLOCK_PUSH;
	kv->rates.schedule = config->schedule;
	kv->share = config->share;
	kv->rates.factor = 1;
	kv->rates.progress = config->progress;
	kv->rates.lr = mu_schedule_lr(&kv->rates.schedule, kv->rates.progress, 0);
	kv->rules.whole_steps = mu_optim_needs_norms(&config->optim);
	kv->rules.priority = config->priority;
	kv->rules.bounded = config->bounded;
	kv->rules.max_staleness = config->max_staleness;
	kv->rules.whole_pulls = config->local_sgd.period > 1 ? "local SGD"
				: kv->rules.bounded          ? "a bound of staleness"
				: kv->rules.whole_steps      ? "an optimizer that needs norms"
				: kv->kind.on_gpus           ? "buckets in one order on all GPUs"
							     : NULL;
	MU_TRY(mu_kv_model_share(kv, config));
	MU_TRY(mu_kv_config_agree(kv, config));
	MU_TRY(mu_traffic_open(&kv->traffic, kv->members, kv->comm, config->verbose));
	MU_TRY(mu_agree(build(kv, config), kv->comm));
	mu_kv_log_connections(kv);
	*out = kv;
	kv = NULL;
out:
	mu_kv_free(kv);
	return st;
}

void mu_kv_free(struct mu_kv *kv)
{
	if (!kv)
		return;
	mu_free(kv->step.pushed_at);
	if (kv->ops)
		mu_kv_leave_devices(kv);
	if (kv->ops && kv->ops->close)
		kv->ops->close(kv);
	mu_kv_update_close(&kv->update);
	mu_kv_replica_close(kv->ends.replica);
	mu_kv_worker_close(kv->ends.worker);
	mu_kv_server_close(kv->ends.server);
	mu_kv_nodes_close(&kv->nodes);
	mu_kv_arrays_close(kv);
	mu_kv_gradients_close(kv);
	mu_free(kv->step.ready);
	mu_free(kv->step.keys_left);
	mu_free(kv->step.pulled);
	mu_free(kv->step.versions);
	mu_kv_plan_release(&kv->model.plan);
	mu_free(kv->model.slices);
	mu_free(kv->model.names);
	mu_comm_close(&kv->comm);
	mu_free(kv);
}

float *mu_kv_weights(struct mu_kv *kv)
{
	return kv->ends.replica ? mu_kv_replica_weights(kv) : kv->arrays.weights;
}

float *mu_kv_gradients(struct mu_kv *kv)
{
	return kv->arrays.gradients;
}

size_t mu_kv_n(const struct mu_kv *kv)
{
	return kv->model.plan.n;
}

const uint64_t *mu_kv_versions(const struct mu_kv *kv)
{
	return kv->step.versions;
}

/* The weights of n keys may have changed. */
static void change(struct mu_kv *kv, size_t first, size_t n)
{
	for (size_t k = first; k < first + n; k++)
		kv->step.versions[k]++;
}

enum mu_status mu_kv_check_worker(const struct mu_kv *kv, const char *what)
{
	enum mu_status st = MU_OK;

	if (kv->members->role != MU_ROLE_WORKER)
		MU_FAIL(MU_ERR_ARGUMENT, "%s is for workers: a server calls mu_kv_serve", what);
out:
	return st;
}

enum mu_status mu_kv_weights_init(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_kv_check_worker(kv, "mu_kv_weights_init"));
	MU_SAME(kv->members->peers, kv->model.plan.n);
	if (kv->ops->init)
		MU_TRY(kv->ops->init(kv));
	change(kv, 0, kv->model.n_slices);
	kv->step.has_weights = true;
out:
	return st;
}

static enum mu_status begin(struct mu_kv *kv, size_t count)
{
	enum mu_status st = MU_OK;

	kv->step.open = true;
	kv->step.number++;
	kv->step.begun++;
	kv->step.count = (double)count;
	memset(kv->step.ready, 0, kv->model.n_slices * sizeof *kv->step.ready);
	memset(kv->step.pulled, 0, kv->model.plan.n_buckets * sizeof *kv->step.pulled);
	for (size_t b = 0; b < kv->model.plan.n_buckets; b++)
		kv->step.keys_left[b] = kv->model.plan.buckets[b].n_keys;
	kv->step.buckets_left = kv->model.plan.n_buckets;
	MU_TRY(kv->ops->step_begin(kv));
out:
	return st;
}

enum mu_status mu_kv_step_begin(struct mu_kv *kv, size_t count)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_kv_check_worker(kv, "mu_kv_step_begin"));
	if (!kv->step.has_weights)
		MU_FAIL(MU_ERR_ARGUMENT,
			"mu_kv_step_begin on rank %d before mu_kv_weights_init: the store has no "
			"weights",
			kv->members->rank);
	if (kv->step.open)
		MU_TRY(mu_kv_step_end(kv));
	mu_clock_start(kv->push_clock);
	st = begin(kv, count);
	mu_clock_stop(kv->push_clock);
	MU_TRY(st);
out:
	return st;
}

static enum mu_status poll(struct mu_kv *kv)
{
	return kv->ops->poll ? kv->ops->poll(kv) : MU_OK;
}

enum mu_status mu_kv_poll(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_kv_check_worker(kv, "mu_kv_poll"));
	MU_TRY(poll(kv));
out:
	return st;
}

static enum mu_status push_ready(struct mu_kv *kv, size_t key)
{
	enum mu_status st = MU_OK;
	size_t bucket = kv->model.plan.bucket_of[key];

	kv->step.ready[key] = true;
	if (--kv->step.keys_left[bucket] == 0) {
		kv->step.buckets_left--;
		MU_TRY(kv->ops->push(kv, bucket));
	}
	MU_TRY(poll(kv));
out:
	return st;
}

enum mu_status mu_kv_push_ready(struct mu_kv *kv, size_t key)
{
	enum mu_status st = MU_OK;

	if (!kv->step.open) {
		MU_TRY(mu_kv_check_worker(kv, "mu_kv_push_ready"));
		MU_FAIL(MU_ERR_ARGUMENT,
			"push of key %zu on rank %d outside a step: mu_kv_step_begin comes first",
			key, kv->members->rank);
	}
	if (key >= kv->model.n_slices)
		MU_FAIL(MU_ERR_ARGUMENT, "push of key %zu on rank %d, and there are %zu keys", key,
			kv->members->rank, kv->model.n_slices);
	if (kv->step.ready[key])
		MU_FAIL(MU_ERR_ARGUMENT, "key %zu (%s) is pushed twice in step %llu on rank %d",
			key, kv->model.slices[key].name, (unsigned long long)kv->step.begun,
			kv->members->rank);
	if (kv->model.places && kv->step.claimed[kv->model.plan.bucket_of[key]] != kv->step.begun)
		MU_FAIL(MU_ERR_ARGUMENT, "push of key %zu on rank %d without mu_kv_gradients_begin",
			key, kv->members->rank);
	mu_clock_start(kv->push_clock);
	st = push_ready(kv, key);
	mu_clock_stop(kv->push_clock);
	MU_TRY(st);
out:
	return st;
}

static enum mu_status pull_bucket(struct mu_kv *kv, size_t bucket)
{
	enum mu_status st = MU_OK;

	if (kv->step.pulled[bucket])
		goto out;
	if (kv->step.keys_left[bucket] > 0)
		MU_FAIL(MU_ERR_ARGUMENT,
			"%s is pulled in step %llu on rank %d before all of its keys are pushed: "
			"%zu of keys %zu to %zu are missing",
			kv->model.plan.buckets[bucket].what, (unsigned long long)kv->step.begun,
			kv->members->rank, kv->step.keys_left[bucket],
			kv->model.plan.buckets[bucket].first_key,
			kv->model.plan.buckets[bucket].first_key +
				kv->model.plan.buckets[bucket].n_keys - 1);
	if (kv->rules.whole_pulls && kv->step.buckets_left > 0)
		MU_FAIL(MU_ERR_ARGUMENT,
			"%s is pulled in step %llu before all keys of the step are pushed: with %s "
			"there is nothing to pull before",
			kv->model.plan.buckets[bucket].what, (unsigned long long)kv->step.begun,
			kv->rules.whole_pulls);
	if (kv->ops->pull)
		MU_TRY(kv->ops->pull(kv, bucket));
	change(kv, kv->model.plan.buckets[bucket].first_key, kv->model.plan.buckets[bucket].n_keys);
	kv->step.pulled[bucket] = true;
out:
	return st;
}

enum mu_status mu_kv_pull_end(struct mu_kv *kv, size_t key)
{
	enum mu_status st = MU_OK;

	if (key >= kv->model.n_slices)
		MU_FAIL(MU_ERR_ARGUMENT, "pull of key %zu on rank %d, and there are %zu keys", key,
			kv->members->rank, kv->model.n_slices);
	if (!kv->step.open)
		goto out;
	mu_clock_start(MU_CLOCK_PULL);
	st = pull_bucket(kv, kv->model.plan.bucket_of[key]);
	mu_clock_stop(MU_CLOCK_PULL);
	MU_TRY(st);
out:
	return st;
}

static enum mu_status end(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;

	for (size_t b = kv->model.plan.n_buckets; b-- > 0;)
		MU_TRY(pull_bucket(kv, b));
	if (kv->ops->step_end)
		MU_TRY(kv->ops->step_end(kv));
	kv->step.open = false;
out:
	return st;
}

enum mu_status mu_kv_step_end(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_kv_check_worker(kv, "mu_kv_step_end"));
	if (!kv->step.open)
		goto out;
	mu_clock_start(MU_CLOCK_PULL);
	st = end(kv);
	mu_clock_stop(MU_CLOCK_PULL);
	MU_TRY(st);
out:
	return st;
}

enum mu_status mu_kv_fetch(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_kv_check_worker(kv, "mu_kv_fetch"));
	MU_TRY(mu_kv_step_end(kv));
	if (kv->ops->fetch) {
		mu_clock_start(MU_CLOCK_PULL);
		st = kv->ops->fetch(kv);
		mu_clock_stop(MU_CLOCK_PULL);
		MU_TRY(st);
		change(kv, 0, kv->model.n_slices);
	}
out:
	return st;
}

enum mu_status mu_kv_meet(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_kv_check_worker(kv, "mu_kv_meet"));
	MU_TRY(mu_kv_step_end(kv));
	MU_TRY(kv->ops->meet ? kv->ops->meet(kv) : mu_peers_meet(kv->members));
out:
	return st;
}

void mu_kv_set_rate(struct mu_kv *kv, double rate)
{
	kv->rates.factor = rate;
}

double mu_kv_lr(const struct mu_kv *kv)
{
	return kv->ends.replica ? mu_kv_replica_lr(kv) : kv->rates.lr;
}

double mu_kv_progress(const struct mu_kv *kv)
{
	return kv->ends.replica ? mu_kv_replica_progress(kv) : kv->rates.progress;
}

void mu_kv_say(struct mu_kv *kv, mu_kv_say_fn *fn, void *context)
{
	kv->notices.say = fn;
	kv->notices.context = context;
}

uint64_t mu_kv_notice(const struct mu_kv *kv)
{
	return kv->notices.received;
}

enum mu_status mu_kv_serve(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;

	if (kv->members->role != MU_ROLE_SERVER)
		MU_FAIL(MU_ERR_ARGUMENT, "mu_kv_serve is for servers");
	MU_TRY(kv->ops->serve(kv));
out:
	return st;
}

enum mu_status mu_kv_finish(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_kv_check_worker(kv, "mu_kv_finish"));
	MU_TRY(mu_kv_step_end(kv));
	if (kv->ops->finish)
		MU_TRY(kv->ops->finish(kv));
	change(kv, 0, kv->model.n_slices);
out:
	return st;
}
