/* SPDX-License-Identifier: Apache-2.0 */
/* Different strings of bytes, each with a number: open addressing, at most half full. */
#include "map.h"

#include <string.h>

static size_t start_of(const struct token_words *w, uint32_t number)
{
	return number == 0 ? 0 : w->ends[number - 1];
}

const char *mu_token_words_get(const struct token_words *w, uint32_t number, size_t *nbytes)
{
	const size_t start = start_of(w, number);

	*nbytes = w->ends[number] - start;
	return w->bytes + start;
}

/* Eight bytes at a time: words are most of the time of a text. */
static uint64_t hash(const char *word, size_t nbytes)
{
	uint64_t h = nbytes, part;

	for (; nbytes >= 8; nbytes -= 8, word += 8) {
		memcpy(&part, word, 8);
		h = (h ^ part) * 0x9e3779b97f4a7c15u;
		h ^= h >> 29;
	}
	for (part = 0; nbytes > 0; nbytes--)
		part = part << 8 | (unsigned char)*word++;
	h = (h ^ part) * 0x9e3779b97f4a7c15u;
	return h ^ h >> 32;
}

static size_t find_slot(const struct token_words *w, const char *word, size_t nbytes)
{
	size_t slot = (size_t)hash(word, nbytes) & (w->n_slots - 1), n;
	const char *other;

	for (; w->slots[slot]; slot = (slot + 1) & (w->n_slots - 1)) {
		other = mu_token_words_get(w, w->slots[slot] - 1, &n);
		if (n == nbytes && memcmp(other, word, n) == 0)
			break;
	}
	return slot;
}

uint32_t mu_token_words_find(const struct token_words *w, const char *word, size_t nbytes)
{
	size_t slot;

	if (w->n == 0)
		return TOKENS_NONE;
	slot = find_slot(w, word, nbytes);
	return w->slots[slot] ? w->slots[slot] - 1 : TOKENS_NONE;
}

static enum mu_status grow_slots(struct token_words *w)
{
	enum mu_status st = MU_OK;
	const size_t n_slots = w->n_slots ? 2 * w->n_slots : 256;
	uint32_t *slots;

	MU_TRY(MU_ALLOC(slots, n_slots, "words"));
	mu_free(w->slots);
	w->slots = slots;
	w->n_slots = n_slots;
	for (uint32_t i = 0; i < w->n; i++) {
		size_t n;
		const char *word = mu_token_words_get(w, i, &n);

		w->slots[find_slot(w, word, n)] = i + 1;
	}
out:
	return st;
}

enum mu_status mu_token_words_add(struct token_words *w, const char *word, size_t nbytes,
				  uint32_t *number)
{
	enum mu_status st = MU_OK;
	size_t slot;

	if (2 * w->n >= w->n_slots)
		MU_TRY(grow_slots(w));
	slot = find_slot(w, word, nbytes);
	if (w->slots[slot]) {
		*number = w->slots[slot] - 1;
		goto out;
	}
	if (w->n + 1 >= TOKENS_NONE)
		MU_FAIL(MU_ERR_UNSUPPORTED, "the texts have more than %d different words",
			TOKENS_NONE - 1);
	MU_TRY(TOKENS_GROW(w->ends, w->room, w->n + 1));
	MU_TRY(TOKENS_GROW(w->bytes, w->bytes_room, w->n_bytes + nbytes + 1));
	if (nbytes > 0)
		memcpy(w->bytes + w->n_bytes, word, nbytes);
	w->n_bytes += nbytes;
	w->ends[w->n] = w->n_bytes;
	*number = (uint32_t)w->n++;
	w->slots[slot] = *number + 1;
out:
	return st;
}

void mu_token_words_clear(struct token_words *w)
{
	w->n = w->n_bytes = 0;
	if (w->slots)
		memset(w->slots, 0, w->n_slots * sizeof *w->slots);
}

void mu_token_words_release(struct token_words *w)
{
	mu_free(w->bytes);
	mu_free(w->ends);
	mu_free(w->slots);
	*w = (struct token_words){0};
}
