/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of pairs of tokens: open addressing, at most half full. */
#include "map.h"

#include <string.h>

#define EMPTY UINT64_MAX

enum mu_status mu_token_grow(void **array, size_t *room, size_t n, size_t element)
{
	enum mu_status st = MU_OK;
	size_t larger = *room ? *room : 64;
	void *copy;

	if (n <= *room)
		goto out;
	while (larger < n)
		larger *= 2;
	if (larger > SIZE_MAX / element)
		MU_FAIL(MU_ERR_MEMORY, "%zu elements of %zu bytes do not fit in memory", n,
			element);
	MU_TRY(mu_alloc(&copy, larger * element, "tokens"));
	if (*room > 0)
		memcpy(copy, *array, *room * element);
	mu_free(*array);
	*array = copy;
	*room = larger;
out:
	return st;
}

static size_t find_slot(const struct token_map *m, uint64_t pair)
{
	uint64_t h = pair * 0x9e3779b97f4a7c15u;
	size_t slot = (size_t)(h ^ h >> 32) & (m->room - 1);

	while (m->keys[slot] != EMPTY && m->keys[slot] != pair)
		slot = (slot + 1) & (m->room - 1);
	return slot;
}

uint32_t mu_token_map_get(const struct token_map *m, uint64_t pair)
{
	size_t slot;

	if (m->n == 0)
		return TOKENS_NONE;
	slot = find_slot(m, pair);
	return m->keys[slot] == pair ? m->values[slot] : TOKENS_NONE;
}

static enum mu_status grow(struct token_map *m)
{
	enum mu_status st = MU_OK;
	struct token_map larger = {.n = m->n, .room = m->room ? 2 * m->room : 256};
	size_t slot;

	MU_TRY(MU_ALLOC(larger.keys, larger.room, "pairs of tokens"));
	MU_TRY(MU_ALLOC(larger.values, larger.room, "pairs of tokens"));
	memset(larger.keys, 0xff, larger.room * sizeof *larger.keys);
	for (size_t i = 0; i < m->room; i++) {
		if (m->keys[i] == EMPTY)
			continue;
		slot = find_slot(&larger, m->keys[i]);
		larger.keys[slot] = m->keys[i];
		larger.values[slot] = m->values[i];
	}
	mu_token_map_release(m);
	*m = larger;
	larger = (struct token_map){0};
out:
	mu_token_map_release(&larger);
	return st;
}

enum mu_status mu_token_map_set(struct token_map *m, uint64_t pair, uint32_t value)
{
	enum mu_status st = MU_OK;
	size_t slot;

	if (2 * m->n >= m->room)
		MU_TRY(grow(m));
	slot = find_slot(m, pair);
	m->n += m->keys[slot] == EMPTY;
	m->keys[slot] = pair;
	m->values[slot] = value;
out:
	return st;
}

void mu_token_map_release(struct token_map *m)
{
	mu_free(m->keys);
	mu_free(m->values);
	*m = (struct token_map){0};
}
