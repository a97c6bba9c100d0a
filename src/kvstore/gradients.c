/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shards of gradients (mu_kv_config.lives): a worker has memory for some buckets of gradients at a
 * time (slots.c). A bucket that follows another one in its slot waits until the server ends have
 * used the other's gradients.
 */
#include <string.h>

#include "kv.h"

/* The life of each bucket: the lives of its keys together. */
static enum mu_status find_lives(const struct mu_kv_plan *plan, const struct mu_kv_life *lives,
				 struct mu_kv_life **out)
{
	enum mu_status st = MU_OK;

	MU_TRY(MU_ALLOC(*out, plan->n_buckets, "lives of buckets"));
	for (size_t b = 0; b < plan->n_buckets; b++) {
		const struct mu_kv_bucket *bucket = &plan->buckets[b];
		struct mu_kv_life *life = &(*out)[b];

		*life = lives[bucket->first_key];
		for (size_t k = bucket->first_key + 1; k < bucket->first_key + bucket->n_keys;
		     k++) {
			life->from = lives[k].from < life->from ? lives[k].from : life->from;
			life->to = lives[k].to > life->to ? lives[k].to : life->to;
		}
	}
out:
	return st;
}

static enum mu_status slots_of_worker(struct mu_kv_slots *slots, const struct mu_kv_plan *plan,
				      const struct mu_kv_life *lives)
{
	enum mu_status st = MU_OK;
	size_t *sizes = NULL;

	MU_TRY(MU_ALLOC(sizes, plan->n_buckets, "sizes of buckets"));
	for (size_t b = 0; b < plan->n_buckets; b++)
		sizes[b] = plan->buckets[b].n;
	MU_TRY(mu_kv_slots_init(slots, lives, sizes, plan->n_buckets));
out:
	mu_free(sizes);
	return st;
}

enum mu_status mu_kv_slots_of_inbox(struct mu_kv_slots *slots, const struct mu_kv_plan *plan,
				    const struct mu_kv_life *lives, int server)
{
	enum mu_status st = MU_OK;
	struct mu_kv_life *arrivals = NULL; /* a bucket arrives as a whole */
	size_t *sizes = NULL;

	MU_TRY(MU_ALLOC(arrivals, plan->n_buckets, "arrivals of buckets"));
	MU_TRY(MU_ALLOC(sizes, plan->n_buckets, "sizes of buckets"));
	for (size_t b = 0; b < plan->n_buckets; b++) {
		const struct mu_kv_part *parts = plan->parts + plan->buckets[b].first_part;

		arrivals[b] = (struct mu_kv_life){lives[b].to, lives[b].to};
		for (size_t p = 0; p < plan->buckets[b].n_parts; p++)
			sizes[b] += parts[p].server == server ? parts[p].n : 0;
	}
	MU_TRY(mu_kv_slots_init(slots, arrivals, sizes, plan->n_buckets));
out:
	mu_free(arrivals);
	mu_free(sizes);
	return st;
}

/* The places of keys and parts in the slots. */
static void find_places(struct mu_kv *kv)
{
	const struct mu_kv_plan *plan = &kv->model.plan;

	for (size_t b = 0; b < plan->n_buckets; b++) {
		const struct mu_kv_bucket *bucket = &plan->buckets[b];

		for (size_t i = 0; i < bucket->n_parts; i++) {
			struct mu_kv_part *part = &plan->parts[bucket->first_part + i];

			part->gradient = kv->model.slots.at[b] + part->at - bucket->at;
		}
	}
	for (size_t k = 0; k < kv->model.n_slices; k++) {
		const size_t b = plan->bucket_of[k];

		kv->model.places[k] =
			kv->model.slots.at[b] + kv->model.slices[k].at - plan->buckets[b].at;
	}
}

enum mu_status mu_kv_gradients_open(struct mu_kv *kv, const struct mu_kv_life *lives)
{
	enum mu_status st = MU_OK;

	kv->model.n_gradients = kv->model.plan.n;
	if (!lives)
		goto out;
	MU_TRY(find_lives(&kv->model.plan, lives, &kv->model.lives));
	MU_TRY(slots_of_worker(&kv->model.slots, &kv->model.plan, kv->model.lives));
	MU_TRY(MU_ALLOC(kv->model.places, kv->model.n_slices, "places of gradients"));
	MU_TRY(MU_ALLOC(kv->step.claimed, kv->model.plan.n_buckets,
			"buckets whose gradients are written"));
	find_places(kv);
	kv->model.n_gradients = kv->model.slots.n;
out:
	return st;
}

void mu_kv_gradients_close(struct mu_kv *kv)
{
	mu_kv_slots_release(&kv->model.slots);
	mu_free(kv->model.lives);
	mu_free(kv->model.places);
	mu_free(kv->step.claimed);
}

const size_t *mu_kv_gradient_places(const struct mu_kv *kv)
{
	return kv->model.places;
}

/* Kernels write all of a key but its padding, which is 0, and where another bucket was before. */
static void clear_padding(const struct mu_kv *kv, const struct mu_kv_bucket *b)
{
	const size_t last = b->first_key + b->n_keys;

	for (size_t k = b->first_key; k < last; k++) {
		const struct mu_slice *s = &kv->model.slices[k];
		const size_t end = k + 1 < last ? kv->model.slices[k + 1].at : b->at + b->n;
		const size_t from = s->n_padded > s->n ? 0 : s->n; /* a layout may mix it in */

		memset(kv->arrays.gradients + kv->model.places[k] + from, 0,
		       (end - s->at - from) * sizeof(float));
	}
}

static enum mu_status claim(struct mu_kv *kv, size_t bucket)
{
	enum mu_status st = MU_OK;
	const size_t before = kv->model.slots.before[bucket];

	if (before != MU_KV_NO_BUCKET && kv->step.keys_left[before] > 0)
		MU_FAIL(MU_ERR_ARGUMENT,
			"gradients of key %zu are written in step %llu on rank %d before key %zu, "
			"which has the same memory, is pushed: the order must be that of the lives",
			kv->model.plan.buckets[bucket].first_key,
			(unsigned long long)kv->step.begun, kv->members->rank,
			kv->model.plan.buckets[before].first_key);
	if (before != MU_KV_NO_BUCKET)
		MU_TRY(kv->ops->taken(kv, before));
	clear_padding(kv, &kv->model.plan.buckets[bucket]);
	kv->step.claimed[bucket] = kv->step.begun;
out:
	return st;
}

enum mu_status mu_kv_gradients_begin(struct mu_kv *kv, size_t key)
{
	enum mu_status st = MU_OK;
	size_t bucket;

	if (!kv->model.places)
		goto out;
	if (!kv->step.open || key >= kv->model.n_slices)
		MU_FAIL(MU_ERR_ARGUMENT,
			"gradients of key %zu of %zu on rank %d outside a step: mu_kv_step_begin "
			"comes first",
			key, kv->model.n_slices, kv->members->rank);
	bucket = kv->model.plan.bucket_of[key];
	if (kv->step.claimed[bucket] == kv->step.begun)
		goto out;
	mu_clock_start(kv->push_clock);
	st = claim(kv, bucket);
	mu_clock_stop(kv->push_clock);
	MU_TRY(st);
out:
	return st;
}
