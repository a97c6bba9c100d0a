/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Local SGD (see kvstore.h): a worker's replica of the model, which it updates by itself, and the
 * average of all replicas from time to time. An average is one step of the store below: its
 * weights, kv->arrays.weights, are the last average; its gradients are the replica's change since
 * then, negated and times its samples; its rule is sgd with the block momentum. So averages have
 * the sums, bits and messages of that store, which does not see the steps between. The replica's
 * weights are a separate array: workers of a node may share the average, and others may still read
 * it.
 */
#include <stdio.h>
#include <string.h>

#include "kv.h"

struct mu_kv_replica {
	struct mu_kv_ops ops;          /* the store's, with the functions of this file */
	const struct mu_kv_ops *store; /* the store below */
	struct mu_schedule schedule;   /* of the worker's own updates */
	struct mu_kv_update update;
	bool whole_steps;
	size_t period, steps; /* steps since the last average */
	double count;         /* this worker's samples in them */
	double lr;            /* of the last of them */
	bool averaging;       /* an average is in flight */
	float *weights;       /* the replica's; the last average is in kv->arrays.weights */
};

enum mu_status mu_kv_local_sgd_check(const struct mu_kv_config *config,
				     const struct mu_kv_type *type)
{
	enum mu_status st = MU_OK;
	const struct mu_kv_local_sgd *l = &config->local_sgd;

	if (l->period > 1 && (!type->distributed || !type->synchronous || type->on_gpus))
		MU_FAIL(MU_ERR_USAGE,
			"local SGD with kv-store '%s': it is for the synchronous stores between "
			"ranks: dist_sync, dist_device_sync, dist_sharded, dist_allreduce",
			config->type);
	if (l->period <= 1 && (l->block_momentum != 0 || l->block_lr != 0 || l->nesterov))
		MU_FAIL(MU_ERR_USAGE,
			"block momentum %g without local SGD: it needs a period of more than 1 "
			"step",
			l->block_momentum);
	if (!(l->block_momentum >= 0 && l->block_momentum < 1) || !(l->block_lr >= 0))
		MU_FAIL(MU_ERR_USAGE,
			"local SGD with block momentum %g and block learning rate %g: a momentum "
			"from 0 to less than 1 and a positive rate are needed",
			l->block_momentum, l->block_lr);
out:
	return st;
}

/* ---- the average ---- */

MU_LOOP
static void scale_change(size_t n, float count, float *restrict out, const float *restrict from,
			 const float *restrict to)
{
	for (size_t i = 0; i < n; i++)
		out[i] = count * (from[i] - to[i]);
}

MU_LOOP
static void scale_weights(size_t n, float count, float *restrict out, const float *restrict in)
{
	for (size_t i = 0; i < n; i++)
		out[i] = count * in[i];
}

/* The replica's part of the average, in place of gradients. */
static void fill_gradients(struct mu_kv *kv, float count)
{
	const float *weights = kv->ends.replica->weights;

	for (size_t k = 0; k < kv->model.n_slices; k++) {
		const struct mu_slice *s = &kv->model.slices[k];
		size_t end = k + 1 < kv->model.n_slices ? s[1].at : kv->model.plan.n;

		if (s->rule == MU_SLICE_AVERAGE)
			scale_weights(end - s->at, count, kv->arrays.gradients + s->at,
				      weights + s->at);
		else
			scale_change(end - s->at, count, kv->arrays.gradients + s->at,
				     kv->arrays.weights + s->at, weights + s->at);
	}
}

static enum mu_status begin_average(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct mu_kv_replica *r = kv->ends.replica;

	fill_gradients(kv, (float)r->count);
	kv->step.number++;
	kv->step.count = r->count;
	r->steps = 0;
	r->count = 0;
	r->averaging = true;
	mu_clock_start(MU_CLOCK_PUSH);
	st = r->store->step_begin(kv);
	for (size_t b = 0; st == MU_OK && b < kv->model.plan.n_buckets; b++)
		st = r->store->push(kv, b);
	mu_clock_stop(MU_CLOCK_PUSH);
	MU_TRY(st);
out:
	return st;
}

/* ---- the functions of struct mu_kv_ops ---- */

static enum mu_status init_replica(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct mu_kv_replica *r = kv->ends.replica;

	if (kv->members->index == 0)
		memcpy(kv->arrays.weights, r->weights,
		       kv->model.plan.n * sizeof *kv->arrays.weights);
	MU_TRY(r->store->init(kv));
	memcpy(r->weights, kv->arrays.weights, kv->model.plan.n * sizeof *kv->arrays.weights);
out:
	return st;
}

static enum mu_status step_begin(struct mu_kv *kv)
{
	struct mu_kv_replica *r = kv->ends.replica;

	kv->step.number--; /* the store below counts averages */
	r->lr = kv->rates.factor * mu_schedule_lr(&r->schedule, mu_kv_replica_progress(kv),
						  kv->ends.n_workers * kv->step.count);
	kv->rates.lr = r->lr;
	r->count += kv->step.count;
	return MU_OK;
}

static enum mu_status push(struct mu_kv *kv, size_t bucket)
{
	enum mu_status st = MU_OK;
	struct mu_kv_replica *r = kv->ends.replica;

	if (!r->whole_steps)
		mu_kv_update_bucket(kv, &r->update, bucket, kv->step.count, kv->arrays.gradients);
	if (kv->step.buckets_left > 0)
		goto out;
	if (r->whole_steps)
		MU_TRY(mu_kv_update_all(kv, &r->update, kv->step.count, kv->arrays.gradients));
	if (++r->steps == r->period)
		MU_TRY(begin_average(kv));
out:
	return st;
}

static enum mu_status pull(struct mu_kv *kv, size_t bucket)
{
	enum mu_status st = MU_OK;
	const struct mu_kv_bucket *b = &kv->model.plan.buckets[bucket];
	struct mu_kv_replica *r = kv->ends.replica;

	if (!r->averaging)
		goto out;
	MU_TRY(r->store->pull(kv, bucket));
	memcpy(r->weights + b->at, kv->arrays.weights + b->at, b->n * sizeof *kv->arrays.weights);
out:
	return st;
}

static enum mu_status step_end(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;
	struct mu_kv_replica *r = kv->ends.replica;

	if (!r->averaging)
		goto out;
	MU_TRY(r->store->step_end(kv));
	r->averaging = false;
out:
	return st;
}

/* Averages now, if there were steps since the last average. */
static enum mu_status fetch(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;

	if (kv->ends.replica->steps == 0)
		goto out;
	MU_TRY(begin_average(kv));
	for (size_t b = kv->model.plan.n_buckets; b-- > 0;)
		MU_TRY(pull(kv, b));
	MU_TRY(step_end(kv));
out:
	return st;
}

static enum mu_status finish(struct mu_kv *kv)
{
	enum mu_status st = MU_OK;

	MU_TRY(fetch(kv));
	MU_TRY(kv->ends.replica->store->finish(kv));
out:
	return st;
}

float *mu_kv_replica_weights(const struct mu_kv *kv)
{
	return kv->ends.replica->weights;
}

double mu_kv_replica_lr(const struct mu_kv *kv)
{
	return kv->ends.replica->lr;
}

double mu_kv_replica_progress(const struct mu_kv *kv)
{
	return kv->rates.progress + kv->ends.n_workers * kv->ends.replica->count;
}

/* ---- checkpoints ---- */

void mu_kv_replica_own(const struct mu_kv *kv, struct mu_kv_own *own)
{
	struct mu_kv_replica *r = kv->ends.replica;
	struct mu_kv_own_array *a = &own->arrays[own->n++];
	const char *name;
	float *state;
	size_t n;

	snprintf(a->name, sizeof a->name, "weights");
	a->data = r->weights;
	for (int i = 0; (state = mu_optim_state(r->update.optim, i, &name, &n)); i++) {
		a = &own->arrays[own->n++];
		snprintf(a->name, sizeof a->name, "state/%s", name);
		a->data = state;
	}
	own->counts.steps = r->steps;
	own->counts.samples = r->count;
	mu_optim_counts(r->update.optim, &own->counts.updates, &own->counts.last_lr);
}

void mu_kv_replica_set_counts(struct mu_kv *kv, const struct mu_kv_own_counts *counts)
{
	struct mu_kv_replica *r = kv->ends.replica;

	r->steps = counts->steps;
	r->count = counts->samples;
	mu_optim_set_counts(r->update.optim, counts->updates, counts->last_lr);
}

/* ---- open, close ---- */

static enum mu_status open_replica(struct mu_kv *kv, const struct mu_kv_config *config)
{
	enum mu_status st = MU_OK;
	struct mu_kv_replica *r = NULL;

	MU_TRY(MU_ALLOC(r, 1, "replica of the model"));
	kv->ends.replica = r;
	r->store = kv->ops;
	r->schedule = config->schedule;
	r->lr = kv->rates.lr;
	r->whole_steps = kv->rules.whole_steps;
	r->period = config->local_sgd.period;
	MU_TRY(MU_ALLOC(r->weights, kv->model.plan.n, "weights of local SGD"));
	MU_TRY(mu_kv_update_open(kv, &r->update, &config->optim));
	r->update.weights = r->weights;
	r->ops = *kv->ops;
	kv->push_clock = MU_CLOCK_UPDATE;
	r->ops.init = init_replica;
	r->ops.step_begin = step_begin;
	r->ops.push = push;
	r->ops.pull = pull;
	r->ops.step_end = step_end;
	r->ops.fetch = fetch;
	r->ops.finish = finish;
	kv->ops = &r->ops;
out:
	return st;
}

enum mu_status mu_kv_replica_open(struct mu_kv *kv, struct mu_kv_config *config)
{
	enum mu_status st = MU_OK;
	const struct mu_kv_local_sgd *l = &config->local_sgd;

	if (kv->members->role == MU_ROLE_WORKER)
		MU_TRY(open_replica(kv, config));
	MU_TRY(mu_optim_defaults(&config->optim, l->nesterov ? "nag" : "sgd"));
	config->optim.mom = l->block_momentum;
	kv->rates.schedule =
		(struct mu_schedule){.lr = l->block_lr > 0 ? l->block_lr : 1, .factor = 1};
	kv->rules.whole_steps = false;
	for (size_t k = 0; k < kv->model.n_slices; k++) {
		kv->model.slices[k].momentum = 0; /* their average is the value itself */
		kv->model.slices[k].has_lr_mult = kv->model.slices[k].has_wd_mult = false;
	}
out:
	return st;
}

void mu_kv_replica_close(struct mu_kv_replica *r)
{
	if (!r)
		return;
	mu_kv_update_close(&r->update);
	mu_free(r->weights);
	mu_free(r);
}
