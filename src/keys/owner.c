/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Values of keys and their updates, block by block: a block's sum is still in the cache when the
 * update reads it. Values are held in float32 whatever the key's type.
 */
#include <stdio.h>
#include <string.h>

#include "compress/bits.h"
#include "owner.h"

enum mu_status mu_owner_init(struct mu_owner *o, const struct mu_keys_config *config,
			     struct mu_pool *pool, size_t max_sources)
{
	enum mu_status st = MU_OK;

	memset(o, 0, sizeof *o);
	o->pool = pool;
	o->updaters = config->updaters;
	o->n_updaters = config->n_updaters;
	o->max_sources = max_sources;
	MU_TRY(MU_ALLOC(o->blocks, (max_sources + 1) * MU_KEYS_BLOCK, "blocks of a sum"));
	MU_TRY(MU_ALLOC(o->sources, max_sources, "sources of a sum"));
out:
	return st;
}

void mu_owner_release(struct mu_owner *o)
{
	mu_free(o->blocks);
	mu_free(o->sources);
	o->blocks = NULL;
	o->sources = NULL;
}

/*
 * Elements [from, from + n) of a source as float32, followed by zeros up to a whole run of 16.
 * Where they are that already they stay in their place.
 */
static const float *load(const struct mu_source *s, size_t from, size_t n, float *block)
{
	const char *data = s->data;

	if (s->coding != MU_CODING_DENSE)
		mu_bits_decode(s->coding == MU_CODING_2BIT ? 2 : 1, s->threshold, from, n, s->data,
			       block);
	else if (s->dtype == MU_FLOAT32 && n % 16 == 0)
		return (const float *)s->data + from;
	else
		mu_dtype_to_float(s->dtype, block, data + from * mu_dtype_bytes(s->dtype), n);
	memset(block + n, 0, (mu_pad(n) - n) * sizeof *block);
	return block;
}

static const float *sum(struct mu_owner *o, const struct mu_source *sources, size_t n_sources,
			size_t from, size_t n)
{
	float *total = o->blocks + o->max_sources * MU_KEYS_BLOCK;

	for (size_t i = 0; i < n_sources; i++)
		o->sources[i] = load(&sources[i], from, n, o->blocks + i * MU_KEYS_BLOCK);
	if (n_sources == 1)
		return o->sources[0];
	mu_optim_sum(total, o->sources, n_sources, mu_pad(n));
	return total;
}

static size_t block_at(size_t from, size_t n)
{
	return n - from < MU_KEYS_BLOCK ? n - from : MU_KEYS_BLOCK;
}

void mu_owner_sum(struct mu_owner *o, enum mu_dtype dtype, void *out,
		  const struct mu_source *sources, size_t n_sources, size_t n)
{
	char *to = out;

	for (size_t from = 0; from < n; from += MU_KEYS_BLOCK) {
		size_t m = block_at(from, n);

		mu_dtype_from_float(dtype, to + from * mu_dtype_bytes(dtype),
				    sum(o, sources, n_sources, from, m), m);
	}
}

/* Give values the precision of the key's type. */
static void round_block(const struct mu_owner *o, const struct mu_owned *p, float *weights,
			size_t n)
{
	uint16_t rounded[MU_KEYS_BLOCK];

	if (p->dtype == MU_FLOAT32 || (o->kind == MU_RULE_OPTIM && o->optimizer.multi_precision))
		return;
	mu_dtype_from_float(p->dtype, rounded, weights, n);
	mu_dtype_to_float(p->dtype, weights, rounded, n);
}

enum mu_status mu_owner_add(struct mu_owner *o, struct mu_owned *p)
{
	enum mu_status st = MU_OK;

	MU_TRY(MU_ALLOC(p->weights, mu_pad(p->n), "values of a key"));
	MU_TRY(mu_owner_renew(o, p));
out:
	return st;
}

void mu_owner_drop(struct mu_owned *p)
{
	mu_free(p->weights);
	mu_optim_free(p->optim);
	p->weights = NULL;
	p->optim = NULL;
}

static void update_blocks(struct mu_owner *o, struct mu_owned *p, const struct mu_source *sources,
			  size_t n_sources)
{
	for (size_t from = 0; from < p->n; from += MU_KEYS_BLOCK) {
		size_t n = block_at(from, p->n);
		const float *g = sum(o, sources, n_sources, from, n);

		if (o->kind == MU_RULE_OPTIM)
			mu_optim_block(p->optim, 0, from, mu_pad(n), p->weights + from, g);
		else
			memcpy(p->weights + from, g, n * sizeof *g);
		round_block(o, p, p->weights + from, n);
	}
}

/* The caller's function takes a whole run. */
static enum mu_status call_updater(struct mu_owner *o, struct mu_owned *p,
				   const struct mu_source *sources, size_t n_sources)
{
	enum mu_status st = MU_OK;
	float *whole = NULL;

	MU_TRY(mu_pool_take(o->pool, (void **)&whole, p->n * sizeof *whole, "sum for an updater"));
	mu_owner_sum(o, MU_FLOAT32, whole, sources, n_sources, p->n);
	MU_TRY(o->updater->fn(o->updater->context, p->key, p->from, p->n, whole, p->weights));
	for (size_t from = 0; from < p->n; from += MU_KEYS_BLOCK)
		round_block(o, p, p->weights + from, block_at(from, p->n));
out:
	mu_pool_give(o->pool, whole);
	return st;
}

enum mu_status mu_owner_update(struct mu_owner *o, struct mu_owned *p,
			       const struct mu_source *sources, size_t n_sources)
{
	enum mu_status st = MU_OK;

	if (o->kind == MU_RULE_UPDATER) {
		st = call_updater(o, p, sources, n_sources);
	} else {
		if (o->kind == MU_RULE_OPTIM)
			mu_optim_begin(
				p->optim, 0,
				mu_schedule_lr(&o->optimizer.schedule, (double)p->updates, 1),
				1 / o->optimizer.rescale);
		update_blocks(o, p, sources, n_sources);
	}
	p->updates++;
	return st;
}

/* ---- rules ---- */

enum mu_status mu_owner_set_rule(struct mu_owner *o, const struct mu_rule_order *order)
{
	enum mu_status st = MU_OK;
	const struct mu_kv_updater *updater = NULL;

	if (order->kind == MU_RULE_UPDATER) {
		for (size_t i = 0; i < o->n_updaters; i++) {
			if (strcmp(o->updaters[i].name, order->name) == 0)
				updater = &o->updaters[i];
		}
		if (!updater)
			MU_FAIL(MU_ERR_ARGUMENT,
				"updater '%s' is not in the table that mu_keys_new was given",
				order->name);
	}
	o->kind = (enum mu_rule_kind)order->kind;
	o->updater = updater;
	o->optimizer = order->optimizer;
	snprintf(o->rule, sizeof o->rule, "%s", order->name);
	o->optimizer.optim.name = o->rule;
out:
	return st;
}

/* The whole run is one slice, under a name that decay applies to. */
static enum mu_status new_optim(const struct mu_owner *o, const struct mu_owned *p,
				struct mu_optim **out)
{
	const struct mu_slice slice = {.name = "key_weight",
				       .n = mu_pad(p->n),
				       .n_padded = mu_pad(p->n),
				       .has_lr_mult = p->has_multipliers,
				       .has_wd_mult = p->has_multipliers,
				       .lr_mult = p->multipliers[0],
				       .wd_mult = p->multipliers[1]};
	const struct mu_piece piece = {.n = mu_pad(p->n)};

	return mu_optim_new(out, &o->optimizer.optim, &slice, 1, &piece, 1);
}

/* States of the same names are copied. */
static void take_over(struct mu_optim *to, struct mu_optim *from)
{
	const char *name, *old;
	size_t n, m;

	for (int i = 0;; i++) {
		float *a = mu_optim_state(to, i, &name, &n);
		float *b = mu_optim_state(from, i, &old, &m);

		if (!a || !b)
			return;
		if (strcmp(name, old) == 0)
			memcpy(a, b, n * sizeof *a);
	}
}

enum mu_status mu_owner_renew(struct mu_owner *o, struct mu_owned *p)
{
	enum mu_status st = MU_OK;
	struct mu_optim *optim = NULL;
	bool same = o->kind == MU_RULE_OPTIM && p->optim && strcmp(p->rule, o->rule) == 0;

	if (o->kind == MU_RULE_OPTIM)
		MU_TRY(new_optim(o, p, &optim));
	if (same)
		take_over(optim, p->optim);
	mu_optim_free(p->optim);
	p->optim = optim;
	snprintf(p->rule, sizeof p->rule, "%s", o->rule);
	mu_owner_set_updates(p, same ? p->updates : 0);
out:
	return st;
}

void mu_owner_set_weights(const struct mu_owner *o, struct mu_owned *p, const float *weights)
{
	memcpy(p->weights, weights, p->n * sizeof *weights);
	for (size_t from = 0; from < p->n; from += MU_KEYS_BLOCK)
		round_block(o, p, p->weights + from, block_at(from, p->n));
}

void mu_owner_set_updates(struct mu_owned *p, uint64_t updates)
{
	p->updates = updates;
	if (p->optim)
		mu_optim_set_updates(p->optim, 0, updates);
}
