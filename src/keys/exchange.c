/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A call of a worker on keys: the transfers that it is made of, with sums over devices and of
 * rows, and the call itself, which waits.
 */
#include <string.h>

#include "store.h"

/* ---- building a call ---- */

void mu_keys_begin(struct mu_keys *keys)
{
	keys->call.n = 0;
	keys->call.n_scratch = 0;
}

enum mu_status mu_keys_transfer(struct mu_keys *keys, struct mu_transfer **out)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_keys_grow((void **)&keys->call.transfers, keys->call.n, &keys->call.max,
			    sizeof *keys->call.transfers, "transfers of a call"));
	*out = &keys->call.transfers[keys->call.n++];
	memset(*out, 0, sizeof **out);
out:
	return st;
}

enum mu_status mu_keys_scratch(struct mu_keys *keys, void **out, size_t nbytes)
{
	enum mu_status st = MU_OK;

	MU_TRY(mu_keys_grow((void **)&keys->call.scratch, keys->call.n_scratch,
			    &keys->call.max_scratch, sizeof *keys->call.scratch,
			    "buffers of a call"));
	MU_TRY(mu_pool_take(&keys->pool, out, nbytes, "buffer of a call"));
	keys->call.scratch[keys->call.n_scratch++] = *out;
out:
	return st;
}

void mu_keys_end(struct mu_keys *keys)
{
	while (keys->call.n_scratch > 0)
		mu_pool_give(&keys->pool, keys->call.scratch[--keys->call.n_scratch]);
}

/* ---- dense calls ---- */

/* coded: each device's array goes through compression before it is added. */
static enum mu_status sum_devices(struct mu_keys *keys, struct mu_key *key,
				  const struct mu_kv_item *item, bool coded, void *out)
{
	enum mu_status st = MU_OK;
	struct mu_source *sources = NULL;

	if (item->n_arrays > keys->summer.max_sources) {
		struct mu_keys_config none = {0};

		mu_owner_release(&keys->summer);
		MU_TRY(mu_owner_init(&keys->summer, &none, &keys->pool, item->n_arrays));
	}
	MU_TRY(mu_keys_scratch(keys, (void **)&sources, item->n_arrays * sizeof *sources));
	for (size_t i = 0; i < item->n_arrays; i++) {
		sources[i] = (struct mu_source){.data = item->arrays[i].data,
						.coding = MU_CODING_DENSE,
						.dtype = key->dtype};
		if (coded)
			MU_TRY(mu_keys_compress_array(keys, key, i, &sources[i]));
	}
	mu_owner_sum(&keys->summer, key->dtype, out, sources, item->n_arrays, key->n);
out:
	return st;
}

enum mu_status mu_keys_add_dense(struct mu_keys *keys, const struct mu_kv_item *item,
				 enum mu_direction direction)
{
	enum mu_status st = MU_OK;
	struct mu_key *key = mu_key_find(&keys->table, item->key, item->name);
	const size_t nbytes = mu_dtype_bytes(key->dtype);
	const bool push = direction != MU_PULL, first = direction == MU_FIRST;
	bool coded = push && !first && mu_keys_compresses(keys, key);
	void *data = item->arrays[0].data;

	key->pushed += push && !first;

	if (push && item->n_arrays > 1) {
		const bool each = coded && keys->kind.one_worker;

		MU_TRY(mu_keys_scratch(keys, &data, key->n * nbytes));
		MU_TRY(sum_devices(keys, key, item, each, data));
		coded = coded && !each;
	}
	for (size_t i = key->first_part; i < key->first_part + key->n_parts; i++) {
		const struct mu_key_part *part = &keys->table.parts[i];
		struct mu_transfer *x;

		MU_TRY(mu_keys_transfer(keys, &x));
		x->part = i;
		if (push) {
			x->coding = first ? MU_CODING_VALUE_PUT : MU_CODING_DENSE;
			x->data = (char *)data + part->from * nbytes;
			x->nbytes = part->n * nbytes;
			if (coded)
				MU_TRY(mu_keys_compress(keys, x));
		}
		if (direction == MU_PULL || direction == MU_PUSHPULL) {
			x->out = (char *)item->arrays[0].data + part->from * nbytes;
			x->out_nbytes = part->n * nbytes;
		}
	}
out:
	return st;
}

/* ---- calls of rows ----
 *
 * A key is cut without regard to its rows: what of a row lies in a part goes to that part's owner,
 * and back.
 */

/* How many of the item's rows have elements in this part, and how many elements that is. */
static size_t count_rows(const struct mu_kv_item *item, const struct mu_key_part *part, size_t *n)
{
	size_t n_rows = 0;

	*n = 0;
	for (size_t i = 0; i < item->n_rows; i++) {
		size_t at;
		size_t m = mu_row_in_run(item->rows[i], item->row_length, part->from, part->n, &at);

		n_rows += m > 0;
		*n += m;
	}
	return n_rows;
}

/* Copy between the rows of the caller's array and what lies in a part, one after another. */
static void copy_rows(const struct mu_kv_item *item, const struct mu_key_part *part, size_t nbytes,
		      char *packed, bool pack)
{
	for (size_t i = 0; i < item->n_rows; i++) {
		char *rows = item->arrays[0].data; /* without rows there may be no array */
		size_t at;
		size_t n = mu_row_in_run(item->rows[i], item->row_length, part->from, part->n, &at);
		size_t start = (size_t)item->rows[i] * item->row_length;
		size_t skip = part->from > start ? part->from - start : 0;
		char *mine = rows + (i * item->row_length + skip) * nbytes;

		if (n == 0)
			continue;
		if (pack)
			memcpy(packed, mine, n * nbytes);
		else
			memcpy(mine, packed, n * nbytes);
		packed += n * nbytes;
	}
}

static void copy_ids(const struct mu_kv_item *item, const struct mu_key_part *part, uint64_t *ids)
{
	for (size_t i = 0; i < item->n_rows; i++) {
		size_t at;

		if (mu_row_in_run(item->rows[i], item->row_length, part->from, part->n, &at) > 0)
			*ids++ = item->rows[i];
	}
}

/* One part's transfer: the rows of the item that lie in it, with or without their elements. */
static enum mu_status add_part(struct mu_keys *keys, const struct mu_kv_item *item, size_t i,
			       bool push)
{
	enum mu_status st = MU_OK;
	const struct mu_key_part *part = &keys->table.parts[i];
	const size_t nbytes = mu_dtype_bytes(keys->table.keys[part->key].dtype);
	struct mu_transfer *x;
	uint64_t *ids;
	size_t n;
	size_t n_rows = count_rows(item, part, &n);

	if (!push && n_rows == 0)
		goto out;
	MU_TRY(mu_keys_scratch(keys, (void **)&ids,
			       n_rows * sizeof *ids + (push ? n * nbytes : 0)));
	copy_ids(item, part, ids);
	MU_TRY(mu_keys_transfer(keys, &x));
	x->part = i;
	x->coding = push ? MU_CODING_ROWS : MU_CODING_ROW_IDS;
	x->data = ids;
	x->nbytes = n_rows * sizeof *ids + (push ? n * nbytes : 0);
	x->n_rows = n_rows;
	x->row_length = item->row_length;
	if (push) {
		copy_rows(item, part, nbytes, (char *)(ids + n_rows), true);
	} else {
		void *out;

		MU_TRY(mu_keys_scratch(keys, &out, n * nbytes));
		x->out = out;
		x->out_nbytes = n * nbytes;
	}
out:
	return st;
}

/* Every part gets its own, of no rows too: it counts this worker's push. */
static enum mu_status add_rows(struct mu_keys *keys, const struct mu_kv_item *item)
{
	enum mu_status st = MU_OK;
	struct mu_key *key = mu_key_find(&keys->table, item->key, item->name);

	key->pushed++;
	for (size_t i = 0; i < key->n_parts; i++)
		MU_TRY(add_part(keys, item, key->first_part + i, true));
out:
	return st;
}

/* ---- whole calls ---- */

/* The first array of every item is filled: the other devices' are copies. */
static void copy_to_devices(const struct mu_keys *keys, size_t n, const struct mu_kv_item *items)
{
	for (size_t i = 0; i < n; i++) {
		const struct mu_key *key = mu_key_find(&keys->table, items[i].key, items[i].name);

		for (size_t d = 1; d < items[i].n_arrays; d++)
			memcpy(items[i].arrays[d].data, items[i].arrays[0].data,
			       key->n * mu_dtype_bytes(key->dtype));
	}
}

enum mu_status mu_keys_add_items(struct mu_keys *keys, size_t n, const struct mu_kv_item *items,
				 enum mu_direction direction)
{
	enum mu_status st = MU_OK;

	for (size_t i = 0; i < n; i++) {
		if (items[i].row_length > 0)
			MU_TRY(add_rows(keys, &items[i]));
		else
			MU_TRY(mu_keys_add_dense(keys, &items[i], direction));
	}
out:
	return st;
}

enum mu_status mu_keys_exchange(struct mu_keys *keys, size_t n, const struct mu_kv_item *items,
				enum mu_direction direction)
{
	enum mu_status st = MU_OK;
	const enum mu_clock clock = direction == MU_PUSH ? keys->push_clock : MU_CLOCK_PULL;

	mu_clock_start(clock);
	mu_keys_begin(keys);
	MU_TRY(mu_keys_add_items(keys, n, items, direction));
	MU_TRY(keys->ops->call(keys, keys->call.n, keys->call.transfers));
	if (direction != MU_PUSH)
		copy_to_devices(keys, n, items);
out:
	mu_keys_end(keys);
	mu_clock_stop(clock);
	return st;
}

enum mu_status mu_keys_exchange_rows(struct mu_keys *keys, size_t n,
				     const struct mu_kv_item *items)
{
	enum mu_status st = MU_OK;
	size_t next = 0;

	mu_clock_start(MU_CLOCK_PULL);
	mu_keys_begin(keys);
	for (size_t i = 0; i < n; i++) {
		const struct mu_key *key = mu_key_find(&keys->table, items[i].key, items[i].name);

		for (size_t p = 0; p < key->n_parts; p++)
			MU_TRY(add_part(keys, &items[i], key->first_part + p, false));
	}
	MU_TRY(keys->ops->call(keys, keys->call.n, keys->call.transfers));
	for (size_t i = 0; i < n; i++) {
		const struct mu_key *key = mu_key_find(&keys->table, items[i].key, items[i].name);
		const size_t end = key->first_part + key->n_parts;

		for (; next < keys->call.n && keys->call.transfers[next].part < end &&
		       keys->call.transfers[next].part >= key->first_part;
		     next++)
			copy_rows(&items[i], &keys->table.parts[keys->call.transfers[next].part],
				  mu_dtype_bytes(key->dtype), keys->call.transfers[next].out,
				  false);
	}
out:
	mu_keys_end(keys);
	mu_clock_stop(MU_CLOCK_PULL);
	return st;
}
