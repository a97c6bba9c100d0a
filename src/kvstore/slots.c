/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Slots: memory that several buckets have one after the other, since the order of backward is
 * always the same. A bucket takes the slot that has to grow least; of those that grow equally the
 * one that is free for longest. Between two buckets of a slot at least SLACK others are complete,
 * so that their messages overlap with backward.
 */
#include <stdlib.h>
#include <string.h>

#include "kv.h"

#define SLACK ((size_t)2)

/* A slot so far: its size, and its last bucket. */
struct slot {
	size_t n, last;
};

struct item {
	struct mu_kv_life life;
	size_t bucket;
};

static int compare(const void *a, const void *b)
{
	const struct item *x = a, *y = b;

	if (x->life.from != y->life.from)
		return x->life.from < y->life.from ? -1 : 1;
	return x->bucket < y->bucket ? -1 : x->bucket > y->bucket;
}

/* Is bucket x complete before bucket y? */
static bool ends_before(const struct mu_kv_life *lives, size_t x, size_t y)
{
	return lives[x].to < lives[y].to || (lives[x].to == lives[y].to && x < y);
}

/* Of n items: those that are complete after the slot's last bucket, and before b begins. */
static size_t count_between(const struct mu_kv_life *lives, const struct item *items, size_t n,
			    size_t last, size_t b)
{
	size_t between = 0;

	for (size_t i = n; i-- > 0 && between < SLACK;)
		between += lives[items[i].bucket].to < lives[b].from &&
			   ends_before(lives, last, items[i].bucket);
	return between;
}

/* The slot for item i; *n_slots: a new one. */
static size_t choose(const struct slot *all, size_t n_slots, const struct mu_kv_life *lives,
		     const struct item *items, size_t i, const size_t *sizes)
{
	const size_t b = items[i].bucket;
	size_t best = n_slots, least = SIZE_MAX;

	for (size_t s = 0; s < n_slots; s++) {
		const size_t growth = sizes[b] > all[s].n ? sizes[b] - all[s].n : 0;

		if (lives[all[s].last].to >= lives[b].from ||
		    count_between(lives, items, i, all[s].last, b) < SLACK)
			continue;
		if (growth > least ||
		    (growth == least && !ends_before(lives, all[s].last, all[best].last)))
			continue;
		best = s;
		least = growth;
	}
	return best;
}

/* slot_of[b]: the slot of bucket b. Sets before and next, and returns the number of slots. */
static size_t assign(struct mu_kv_slots *slots, struct slot *all, size_t *slot_of,
		     const struct mu_kv_life *lives, const struct item *items, const size_t *sizes,
		     size_t n)
{
	size_t n_slots = 0;

	for (size_t i = 0; i < n; i++) {
		const size_t b = items[i].bucket, s = choose(all, n_slots, lives, items, i, sizes);

		slots->before[b] = s < n_slots ? all[s].last : MU_KV_NO_BUCKET;
		slots->next[b] = b;
		if (s < n_slots) { /* the last one is followed by the first */
			slots->next[b] = slots->next[all[s].last];
			slots->next[all[s].last] = b;
		}
		n_slots += s == n_slots;
		slot_of[b] = s;
		all[s].last = b;
		all[s].n = sizes[b] > all[s].n ? sizes[b] : all[s].n;
	}
	return n_slots;
}

enum mu_status mu_kv_slots_init(struct mu_kv_slots *slots, const struct mu_kv_life *lives,
				const size_t *sizes, size_t n)
{
	enum mu_status st = MU_OK;
	struct item *items = NULL;
	struct slot *all = NULL;
	size_t *slot_of = NULL, n_slots;

	MU_TRY(MU_ALLOC(items, n, "buckets in the order of backward"));
	MU_TRY(MU_ALLOC(all, n, "slots"));
	MU_TRY(MU_ALLOC(slot_of, n, "slots of buckets"));
	MU_TRY(MU_ALLOC(slots->at, n, "places of buckets"));
	MU_TRY(MU_ALLOC(slots->before, n, "earlier buckets of slots"));
	MU_TRY(MU_ALLOC(slots->next, n, "next buckets of slots"));
	for (size_t b = 0; b < n; b++)
		items[b] = (struct item){lives[b], b};
	qsort(items, n, sizeof *items, compare);
	n_slots = assign(slots, all, slot_of, lives, items, sizes, n);
	slots->n = 0;
	for (size_t s = 0; s < n_slots; s++)
		for (size_t b = 0, end = slots->n += mu_pad(all[s].n); b < n; b++)
			if (slot_of[b] == s)
				slots->at[b] = end - mu_pad(all[s].n);
out:
	mu_free(items);
	mu_free(all);
	mu_free(slot_of);
	if (st != MU_OK)
		mu_kv_slots_release(slots);
	return st;
}

void mu_kv_slots_release(struct mu_kv_slots *slots)
{
	mu_free(slots->at);
	mu_free(slots->before);
	mu_free(slots->next);
	memset(slots, 0, sizeof *slots);
}
