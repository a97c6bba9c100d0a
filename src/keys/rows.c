/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Push and pull of rows of keys that are matrices. A key is cut without regard to its rows: what of
 * a row lies in a part goes to that part's owner, and back.
 */
#include <string.h>

#include "keys.h"

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
enum mu_status mu_keys_add_rows(struct mu_keys *keys, const struct mu_kv_item *item)
{
	enum mu_status st = MU_OK;
	struct mu_key *key = mu_key_find(&keys->table, item->key, item->name);

	key->pushed++;
	for (size_t i = 0; i < key->n_parts; i++)
		MU_TRY(add_part(keys, item, key->first_part + i, true));
out:
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
	MU_TRY(keys->ops->call(keys, keys->n_transfers, keys->transfers));
	for (size_t i = 0; i < n; i++) {
		const struct mu_key *key = mu_key_find(&keys->table, items[i].key, items[i].name);
		const size_t end = key->first_part + key->n_parts;

		for (; next < keys->n_transfers && keys->transfers[next].part < end &&
		       keys->transfers[next].part >= key->first_part;
		     next++)
			copy_rows(&items[i], &keys->table.parts[keys->transfers[next].part],
				  mu_dtype_bytes(key->dtype), keys->transfers[next].out, false);
	}
out:
	mu_keys_end(keys);
	mu_clock_stop(MU_CLOCK_PULL);
	return st;
}
