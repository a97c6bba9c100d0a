/* SPDX-License-Identifier: Apache-2.0 */
/* The log of messages of a store of keys. See keys/traffic.h. */
#include "traffic.h"

static const char *const codings[] = {
	[MU_CODING_NONE] = "pull",
	[MU_CODING_DENSE] = "push",
	[MU_CODING_2BIT] = "push in 2 bits",
	[MU_CODING_1BIT] = "push in 1 bit",
	[MU_CODING_ROWS] = "push of rows",
	[MU_CODING_ROW_IDS] = "pull of rows",
	[MU_CODING_VALUE_PUT] = "first value",
	[MU_CODING_STATE_GET] = "pull of a state",
	[MU_CODING_STATE_PUT] = "push of a state",
	[MU_CODING_UPDATES_GET] = "pull of the count of updates",
	[MU_CODING_UPDATES_PUT] = "push of the count of updates",
	[MU_CODING_ROUNDS_GET] = "pull of the count of rounds",
	[MU_CODING_WEIGHTS_GET] = "pull of weights",
	[MU_CODING_WEIGHTS_PUT] = "push of weights",
	[MU_CODING_MULTIPLIERS_PUT] = "push of multipliers",
};

static const char *const ops[] = {
	[KEYS_CALL] = "call",    [KEYS_MAKE] = "new keys", [KEYS_RULE] = "rule",
	[KEYS_FAIL] = "failure", [KEYS_FINISH] = "finish",
	[KEYS_LEAVE] = "leave",
};

void mu_keys_traffic_call(const struct mu_keys *keys, size_t owner, size_t n,
			  const struct mu_transfer *x, enum mu_traffic_direction direction,
			  double seconds)
{
	for (size_t i = 0; i < n; i++) {
		const struct mu_key_part *part = &keys->table.parts[x[i].part];
		const struct mu_key *key = &keys->table.keys[part->key];
		const bool out = direction == MU_TRAFFIC_OUT;

		if ((size_t)part->owner != owner || (!out && !x[i].out))
			continue;
		mu_traffic_write(&keys->traffic, direction, keys->owner_ranks[owner],
				 out ? x[i].nbytes : x[i].out_nbytes, seconds,
				 "%s, key %s from element %zu",
				 out ? codings[x[i].coding] : "value",
				 mu_key_text(key->number, key->name).text, part->from);
	}
}

void mu_keys_traffic_order(const struct mu_keys *keys, enum mu_traffic_direction direction,
			   int rank, enum keys_op op, size_t nbytes)
{
	mu_traffic_write(&keys->traffic, direction, rank, nbytes, -1, "%s", ops[op]);
}

void mu_keys_traffic_item(const struct mu_keys_server *s, const struct mu_keys_conn *c, size_t i,
			  enum mu_traffic_direction direction, size_t nbytes)
{
	const struct mu_owned *owned = &s->runs[c->items[i].part]->owned;

	mu_traffic_write(&s->keys->traffic, direction, c->rank, nbytes, -1,
			 "%s, key %s from element %zu",
			 direction == MU_TRAFFIC_IN ? codings[c->items[i].coding] : "value",
			 mu_key_text(owned->key, owned->name).text, owned->from);
}
