/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of keys and where they lie. A small key lies whole on the owner that has the fewest
 * bytes (of several the lowest); a large one is cut evenly over all owners, and an owner's run of
 * it into parts, so that an owner sums one part while the next is on its way.
 */
#include <stdio.h>
#include <string.h>

#include "store.h"

#define GRAIN ((size_t)64)                  /* elements */
#define PART_MAX ((size_t)256 << 10)        /* elements of a large key's part */
#define GOLDEN UINT64_C(0x9e3779b97f4a7c15) /* 2^64 / golden ratio: multiplicative hashing */

enum mu_status mu_key_table_init(struct mu_key_table *t, int n_owners, size_t bound)
{
	enum mu_status st = MU_OK;

	memset(t, 0, sizeof *t);
	t->n_owners = n_owners;
	t->bound = bound;
	MU_TRY(MU_ALLOC(t->loads, (size_t)n_owners, "loads of the owners"));
out:
	return st;
}

void mu_key_table_release(struct mu_key_table *t)
{
	for (size_t k = 0; k < t->n_keys; k++) {
		mu_free(t->keys[k].residual);
		mu_free(t->keys[k].name);
	}
	mu_free(t->keys);
	mu_free(t->parts);
	mu_free(t->slots);
	mu_free(t->loads);
	memset(t, 0, sizeof *t);
}

enum mu_status mu_keys_grow(void **array, size_t n, size_t *max, size_t nbytes, const char *what)
{
	enum mu_status st = MU_OK;
	size_t more = *max ? 2 * *max : 64;
	void *p = NULL;

	if (n < *max)
		goto out;
	MU_TRY(mu_alloc(&p, more * nbytes, what));
	if (n > 0)
		memcpy(p, *array, n * nbytes);
	mu_free(*array);
	*array = p;
	*max = more;
out:
	return st;
}

static uint64_t hash(int number, const char *name)
{
	uint64_t h = (unsigned)number;

	for (h = name ? 0 : h; name && *name; name++)
		h = (h ^ (unsigned char)*name) * GOLDEN;
	return (h * GOLDEN) >> 32;
}

static bool is_key(const struct mu_key *key, int number, const char *name)
{
	return name ? strcmp(key->name, name) == 0 : key->number == number;
}

/* A key's slot: its own, or the free one where it would go. n_slots is a power of two. */
static size_t *slot_of(const struct mu_key_table *t, int number, const char *name)
{
	size_t i = (size_t)hash(number, name) & (t->n_slots - 1);

	while (t->slots[i] && !is_key(&t->keys[t->slots[i] - 1], number, name))
		i = (i + 1) & (t->n_slots - 1);
	return &t->slots[i];
}

struct mu_key *mu_key_find(const struct mu_key_table *t, int number, const char *name)
{
	size_t *slot;

	if (t->n_slots == 0 || t->named != (name != NULL))
		return NULL;
	slot = slot_of(t, number, name);
	return *slot ? &t->keys[*slot - 1] : NULL;
}

struct mu_key_text mu_key_text(int number, const char *name)
{
	struct mu_key_text k;

	if (name && *name)
		snprintf(k.text, sizeof k.text, "'%s'", name);
	else
		snprintf(k.text, sizeof k.text, "%d", number);
	return k;
}

/* At most half of the slots are used. */
static enum mu_status grow_slots(struct mu_key_table *t)
{
	enum mu_status st = MU_OK;

	if (2 * (t->n_keys + 1) <= t->n_slots)
		goto out;
	mu_free(t->slots);
	t->slots = NULL;
	t->n_slots = t->n_slots ? 2 * t->n_slots : 128;
	MU_TRY(MU_ALLOC(t->slots, t->n_slots, "slots of keys"));
	for (size_t k = 0; k < t->n_keys; k++)
		*slot_of(t, t->keys[k].number, t->keys[k].name) = k + 1;
out:
	return st;
}

static enum mu_status add_part(struct mu_key_table *t, size_t from, size_t n, int owner)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_keys_grow((void **)&t->parts, t->n_parts, &t->max_parts, sizeof *t->parts,
			    "parts of keys"));
	t->parts[t->n_parts++] = (struct mu_key_part){t->n_keys, from, n, owner};
out:
	return st;
}

static int least_loaded(const struct mu_key_table *t)
{
	int least = 0;

	for (int o = 1; o < t->n_owners; o++) {
		if (t->loads[o] < t->loads[least])
			least = o;
	}
	return least;
}

static enum mu_status place(struct mu_key_table *t, size_t n, enum mu_dtype dtype)
{
	enum mu_status st = MU_OK;
	size_t grains = (n + GRAIN - 1) / GRAIN;
	size_t owners = (size_t)t->n_owners;

	if (n < t->bound) {
		int owner = least_loaded(t);

		t->loads[owner] += n * mu_dtype_bytes(dtype);
		MU_TRY(add_part(t, 0, n, owner));
		goto out;
	}
	for (size_t o = 0; o < owners; o++) {
		size_t end = grains * (o + 1) / owners * GRAIN;
		size_t from = grains * o / owners * GRAIN;

		if (end > n)
			end = n;
		t->loads[o] += (end - from) * mu_dtype_bytes(dtype);
		for (size_t m; from < end; from += m) {
			m = end - from < PART_MAX ? end - from : PART_MAX;
			MU_TRY(add_part(t, from, m, (int)o));
		}
	}
out:
	return st;
}

enum mu_status mu_key_add(struct mu_key_table *t, const struct mu_kv_item *item)
{
	enum mu_status st = MU_OK;
	const struct mu_array *array = &item->arrays[0];
	const int number = item->name ? (int)t->n_keys : item->key;
	size_t first = t->n_parts;
	char *name = NULL;

	MU_TRY(mu_keys_grow((void **)&t->keys, t->n_keys, &t->max_keys, sizeof *t->keys, "keys"));
	MU_TRY(grow_slots(t));
	if (item->name) {
		MU_TRY(MU_ALLOC(name, strlen(item->name) + 1, "name of a key"));
		memcpy(name, item->name, strlen(item->name) + 1);
	}
	MU_TRY(place(t, array->n, array->dtype));
	t->named = name != NULL;
	*slot_of(t, number, name) = t->n_keys + 1;
	t->keys[t->n_keys++] = (struct mu_key){.number = number,
					       .name = name,
					       .dtype = array->dtype,
					       .n = array->n,
					       .first_part = first,
					       .n_parts = t->n_parts - first};
	name = NULL;
out:
	mu_free(name);
	return st;
}

void mu_key_table_layout(const struct mu_key_table *t, struct mu_keys_layout *layout)
{
	*layout = (struct mu_keys_layout){.n_keys = t->n_keys};
	for (int o = 0; o < t->n_owners; o++) {
		layout->bytes += t->loads[o];
		if (o == 0 || t->loads[o] < layout->bytes_per_owner_min)
			layout->bytes_per_owner_min = t->loads[o];
		if (t->loads[o] > layout->bytes_per_owner_max)
			layout->bytes_per_owner_max = t->loads[o];
	}
}
