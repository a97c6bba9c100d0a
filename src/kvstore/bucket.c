/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Layout: keys into buckets, buckets into parts.
 *
 * Keys are added from the last to the first, the order in which backward computes their gradients.
 * A bucket ends before it would exceed its size; a key is never divided between buckets. The first
 * keys have a bucket of their own, at most a quarter as large: the next forward waits for it first,
 * and no computation overlaps that wait.
 *
 * A bucket is cut into one run per server, equal to within 64 elements, whatever its keys. The
 * server of the first run changes from bucket to bucket, and so does that of the longer runs. A run
 * is cut into messages.
 */
#include <stdio.h>
#include <string.h>

#include "kv.h"

#define BUCKET_MIN ((size_t)64 << 10)
#define BUCKET_MAX ((size_t)4 << 20)
#define FRONT_SHARE 4
#define GRAIN ((size_t)64) /* elements */

/* Where key k ends, including the gap after it: buckets cover the array. */
static size_t key_end(const struct mu_slice *slices, size_t n_slices, size_t k)
{
	return k + 1 < n_slices ? slices[k + 1].at : mu_pad(slices[k].at + slices[k].n_padded);
}

static size_t default_bucket_bytes(size_t nbytes)
{
	size_t b = nbytes / 16;

	return b < BUCKET_MIN ? BUCKET_MIN : b > BUCKET_MAX ? BUCKET_MAX : b;
}

static void add_bucket(struct mu_kv_plan *plan, const struct mu_slice *slices, size_t n_slices,
		       size_t first, size_t end)
{
	struct mu_kv_bucket *b = &plan->buckets[plan->n_buckets];

	b->at = slices[first].at;
	b->n = key_end(slices, n_slices, end - 1) - b->at;
	b->first_key = first;
	b->n_keys = end - first;
	snprintf(b->what, sizeof b->what, "bucket %zu from its servers", plan->n_buckets);
	for (size_t k = first; k < end; k++)
		plan->bucket_of[k] = plan->n_buckets;
	plan->n_buckets++;
}

static void make_buckets(struct mu_kv_plan *plan, const struct mu_slice *slices, size_t n_slices,
			 size_t n_max)
{
	size_t n_front = 1; /* keys of the front bucket */
	size_t end = n_slices;

	while (n_front < n_slices && key_end(slices, n_slices, n_front) <= n_max / FRONT_SHARE)
		n_front++;
	while (end > n_front) {
		size_t first = end - 1;
		size_t stop = key_end(slices, n_slices, end - 1);

		/* Running statistics are complete last in backward: they must not delay others. */
		while (first > n_front && stop - slices[first - 1].at <= n_max &&
		       slices[first - 1].rule == slices[end - 1].rule)
			first--;
		add_bucket(plan, slices, n_slices, first, end);
		end = first;
	}
	add_bucket(plan, slices, n_slices, 0, n_front);
}

/* Buckets are cut on multiples of grain, counted from the begin of the bucket or of the model. */
struct grid {
	size_t grain, n_servers, n_max;
	bool of_model;
};

static size_t begin_of(const struct grid *g, const struct mu_kv_bucket *b)
{
	return g->of_model ? b->at % g->grain : 0;
}

/* Server s's run of bucket i: [*at, *end) of the bucket. */
static void cut_run(const struct mu_kv_plan *plan, size_t i, size_t server, const struct grid *g,
		    size_t *at, size_t *end)
{
	const struct mu_kv_bucket *b = &plan->buckets[i];
	size_t begin = begin_of(g, b);
	size_t grains = (begin + b->n + g->grain - 1) / g->grain;
	size_t turn = (server + i) % g->n_servers;
	size_t from = grains * turn / g->n_servers * g->grain;
	size_t to = grains * (turn + 1) / g->n_servers * g->grain;

	*at = from > begin ? from - begin : 0;
	*end = to > begin ? to - begin : 0;
	if (*end > b->n)
		*end = b->n;
}

/* Elements and parts of a server so far. */
struct load {
	size_t n, n_parts;
};

/* Sets plan->parts, unless it is NULL; returns the number of parts. */
static size_t cut_parts(struct mu_kv_plan *plan, const struct grid *g, struct load *loads)
{
	size_t n_parts = 0;

	memset(loads, 0, g->n_servers * sizeof *loads);
	for (size_t b = 0; b < plan->n_buckets; b++) {
		plan->buckets[b].first_part = n_parts;
		for (size_t s = 0; s < g->n_servers; s++) {
			size_t at, end, n;

			cut_run(plan, b, s, g, &at, &end);
			for (; at < end; at += n) {
				n = g->n_max - (begin_of(g, &plan->buckets[b]) + at) % g->grain;
				n = end - at < n ? end - at : n;
				if (plan->parts)
					plan->parts[n_parts] = (struct mu_kv_part){
						.at = plan->buckets[b].at + at,
						.gradient = plan->buckets[b].at + at,
						.n = n,
						.local = loads[s].n,
						.number = loads[s].n_parts,
						.server = (int)s,
					};
				loads[s].n += n;
				loads[s].n_parts++;
				n_parts++;
			}
		}
		plan->buckets[b].n_parts = n_parts - plan->buckets[b].first_part;
	}
	return n_parts;
}

static enum mu_status check_slices(const struct mu_slice *slices, size_t n_slices)
{
	enum mu_status st = MU_OK;

	if (n_slices == 0)
		MU_FAIL(MU_ERR_ARGUMENT,
			"a model of no keys: there is nothing to train (mu_keys_new makes a store "
			"of keys that are added one by one)");
	for (size_t k = 0; k < n_slices; k++) {
		size_t before = k > 0 ? slices[k - 1].at + slices[k - 1].n_padded : 0;

		if (slices[k].at % 16 || slices[k].at < before ||
		    slices[k].n_padded < slices[k].n || !slices[k].n_padded)
			MU_FAIL(MU_ERR_ARGUMENT,
				"key %zu (%s) is at %zu with %zu of %zu elements: multiples of "
				"16 in rising order, not overlapping and not empty are needed",
				k, slices[k].name, slices[k].at, slices[k].n, slices[k].n_padded);
	}
	if (slices[0].at != 0)
		MU_FAIL(MU_ERR_ARGUMENT, "key 0 (%s) is at %zu, not at 0", slices[0].name,
			slices[0].at);
out:
	return st;
}

enum mu_status mu_kv_plan_init(struct mu_kv_plan *plan, const struct mu_slice *slices,
			       size_t n_slices, const struct mu_kv_cut *cut)
{
	enum mu_status st = MU_OK;
	struct grid grid = {
		.grain = cut->blocks ? MU_COMPRESS_BLOCK : GRAIN,
		.n_servers = (size_t)cut->n_servers,
		.of_model = cut->blocks,
	};
	size_t bucket = cut->bucket_bytes / sizeof(float);
	struct load *loads = NULL;

	memset(plan, 0, sizeof *plan);
	MU_TRY(check_slices(slices, n_slices));
	plan->n = key_end(slices, n_slices, n_slices - 1);
	if (cut->bucket_bytes == 0)
		bucket = default_bucket_bytes(plan->n * sizeof(float)) / sizeof(float);
	grid.n_max = cut->message_bytes / sizeof(float) / grid.grain * grid.grain;
	if (cut->message_bytes == 0 || grid.n_max > MU_MESSAGE_MAX)
		grid.n_max = MU_MESSAGE_MAX;
	if (grid.n_max == 0)
		grid.n_max = grid.grain;
	MU_TRY(MU_ALLOC(plan->buckets, n_slices, "buckets"));
	MU_TRY(MU_ALLOC(plan->bucket_of, n_slices, "bucket of every key"));
	make_buckets(plan, slices, n_slices, bucket);
	MU_TRY(MU_ALLOC(loads, (size_t)cut->n_servers, "load of the servers"));
	plan->n_parts = cut_parts(plan, &grid, loads);
	MU_TRY(MU_ALLOC(plan->parts, plan->n_parts, "parts of buckets"));
	cut_parts(plan, &grid, loads);
out:
	mu_free(loads);
	if (st != MU_OK)
		mu_kv_plan_release(plan);
	return st;
}

void mu_kv_plan_release(struct mu_kv_plan *plan)
{
	mu_free(plan->buckets);
	mu_free(plan->parts);
	mu_free(plan->bucket_of);
	memset(plan, 0, sizeof *plan);
}

size_t mu_kv_plan_bucket(const struct mu_kv_plan *plan, size_t at)
{
	size_t b = 0;

	while (b + 1 < plan->n_buckets &&
	       (at < plan->buckets[b].at || at >= plan->buckets[b].at + plan->buckets[b].n))
		b++;
	return b;
}

size_t mu_kv_plan_load(const struct mu_kv_plan *plan, int server)
{
	size_t n = 0;

	for (size_t i = 0; i < plan->n_parts; i++)
		n += plan->parts[i].server == server ? plan->parts[i].n : 0;
	return n;
}
