/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A store of keys with one worker: it is its own owner, and nothing travels. The first failure is
 * the store's: every later call fails with it, as in a store of several ranks.
 */
#include <stdio.h>
#include <string.h>

#include "store.h"
#include "wire.h"

struct local {
	struct mu_owner owner;
	struct mu_owned *parts; /* by the table's number of the part */
	size_t n_parts, max_parts;
	enum mu_status status; /* of the store */
	char failure[KEYS_TEXT_BYTES];
};

static enum mu_status check_failure(const struct local *l)
{
	enum mu_status st = MU_OK;

	if (l->status != MU_OK)
		MU_FAIL(l->status, "%s", l->failure);
out:
	return st;
}

/* Keep what has failed; returns st. */
static enum mu_status keep_failure(struct local *l, enum mu_status st)
{
	if (st == MU_OK || l->status != MU_OK)
		return st;
	l->status = st;
	snprintf(l->failure, sizeof l->failure, "%s", mu_trace_message());
	return st;
}

static enum mu_status open_local(struct mu_keys *keys, const struct mu_keys_config *config)
{
	enum mu_status st = MU_OK;
	struct local *l = NULL;

	MU_TRY(MU_ALLOC(l, 1, "local store of keys"));
	keys->end = l;
	MU_TRY(mu_owner_init(&l->owner, config, &keys->pool, 1));
out:
	return st;
}

static void close_local(struct mu_keys *keys)
{
	struct local *l = keys->end;

	for (size_t i = 0; i < l->n_parts; i++)
		mu_owner_drop(&l->parts[i]);
	mu_free(l->parts);
	mu_owner_release(&l->owner);
	mu_free(l);
}

static enum mu_status make(struct mu_keys *keys, size_t first_part)
{
	enum mu_status st = MU_OK;
	struct local *l = keys->end;

	MU_TRY(check_failure(l));
	for (size_t i = first_part; i < keys->table.n_parts; i++) {
		const struct mu_key_part *part = &keys->table.parts[i];
		const struct mu_key *key = &keys->table.keys[part->key];

		MU_TRY(mu_keys_grow((void **)&l->parts, l->n_parts, &l->max_parts, sizeof *l->parts,
				    "runs of keys"));
		l->parts[l->n_parts] = (struct mu_owned){
			.key = key->number, .from = part->from, .n = part->n, .dtype = key->dtype};
		MU_TRY(mu_owner_add(&l->owner, &l->parts[l->n_parts++]));
	}
out:
	return keep_failure(l, st);
}

static enum mu_status update(struct mu_keys *keys, struct mu_owned *p, const struct mu_transfer *x)
{
	enum mu_status st = MU_OK;
	struct local *l = keys->end;
	const struct mu_key *key = &keys->table.keys[keys->table.parts[x->part].key];
	struct mu_source source = {x->data, x->coding, key->dtype, x->threshold};
	float *expanded = NULL;

	if (x->coding == MU_CODING_ROWS) {
		MU_TRY(mu_pool_take(&keys->pool, (void **)&expanded, p->n * sizeof *expanded,
				    "rows of a push"));
		mu_coding_expand(p, x->data, x->n_rows, x->row_length, expanded);
		source = (struct mu_source){expanded, MU_CODING_DENSE, MU_FLOAT32, 0};
	}
	MU_TRY(mu_owner_update(&l->owner, p, &source, 1));
out:
	if (st != MU_OK)
		mu_trace_prefix("update of key %s on rank %d: ",
				mu_key_text(key->number, key->name).text, keys->members->rank);
	mu_pool_give(&keys->pool, expanded);
	return st;
}

static enum mu_status transfer(struct mu_keys *keys, struct mu_owned *p,
			       const struct mu_transfer *x)
{
	enum mu_status st = MU_OK;
	struct local *l = keys->end;

	if (mu_coding_is_push(x->coding))
		MU_TRY(update(keys, p, x));
	else
		MU_TRY(mu_coding_put(&l->owner, p, x));
	if (x->out)
		MU_TRY(mu_coding_answer(p, x, x->out));
out:
	return st;
}

static enum mu_status call(struct mu_keys *keys, size_t n, const struct mu_transfer *transfers)
{
	enum mu_status st = MU_OK;
	struct local *l = keys->end;

	MU_TRY(check_failure(l));
	for (size_t i = 0; i < n; i++)
		MU_TRY(transfer(keys, &l->parts[transfers[i].part], &transfers[i]));
out:
	return keep_failure(l, st);
}

static enum mu_status rule(struct mu_keys *keys, const struct mu_rule_order *order)
{
	enum mu_status st = MU_OK;
	struct local *l = keys->end;

	MU_TRY(check_failure(l));
	MU_TRY(mu_owner_set_rule(&l->owner, order));
	for (size_t i = 0; i < l->n_parts; i++)
		MU_TRY(mu_owner_renew(&l->owner, &l->parts[i]));
out:
	return keep_failure(l, st);
}

static enum mu_status gather(struct mu_keys *keys, const void *mine, void *all, size_t nbytes)
{
	(void)keys;
	memcpy(all, mine, nbytes);
	return MU_OK;
}

static enum mu_status bcast(struct mu_keys *keys, void *data, size_t nbytes)
{
	(void)keys;
	(void)data;
	(void)nbytes;
	return MU_OK;
}

static enum mu_status finish(struct mu_keys *keys)
{
	return check_failure(keys->end);
}

const struct mu_keys_ops mu_keys_local = {
	.open = open_local,
	.close = close_local,
	.make = make,
	.call = call,
	.rule = rule,
	.gather = gather,
	.bcast = bcast,
	.finish = finish,
};
